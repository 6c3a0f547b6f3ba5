package cuda

import "sync/atomic"

// failure is why a device failed. The first error stays: after it no call reaches the driver, so that operations do
// nothing and matrices have no memory.
type failure struct {
	err   atomic.Pointer[error]
	known chan struct{} // closed with the first error
}

func newFailure() failure { return failure{known: make(chan struct{})} }

// Err is the first error of the driver or of a library; nil while the device works.
func (d *Device) Err() error {
	if e := d.failure.err.Load(); e != nil {
		return *e
	}
	return nil
}

func (d *Device) failed() bool { return d.failure.err.Load() != nil }

// fail keeps the first error. Any goroutine may call it.
func (d *Device) fail(err error) {
	if d.failure.err.CompareAndSwap(nil, &err) {
		close(d.failure.known)
	}
}

// do calls the driver, unless the device has failed, and reports whether that succeeded.
func (d *Device) do(name string, f uintptr, args ...uintptr) bool {
	return !d.failed() && d.check(name, call(f, args...))
}

// check reports whether a call succeeded, by its code.
func (d *Device) check(name string, code uintptr) bool {
	if code != 0 {
		d.fail(d.card.failure(name, code))
	}
	return code == 0
}
