package execution

import (
	"sync/atomic"

	"starling/tensor/cuda/driver"
)

// failure is why a device failed. The first error stays: after it no call reaches the driver, so that operations do
// nothing and matrices have no memory.
type failure struct {
	err   atomic.Pointer[error]
	known chan struct{} // closed with the first error
}

func newFailure() failure { return failure{known: make(chan struct{})} }

// Err is the first error of the driver or of a library; nil while the device works.
func (s *Stream) Err() error {
	if e := s.failure.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Failed reports whether it has.
func (s *Stream) Failed() bool { return s.failure.err.Load() != nil }

// Known is closed when the device has failed.
func (s *Stream) Known() <-chan struct{} { return s.failure.known }

// Fail keeps the first error. Any goroutine may call it.
func (s *Stream) Fail(err error) {
	if s.failure.err.CompareAndSwap(nil, &err) {
		close(s.failure.known)
	}
}

// Do calls the driver, unless the device has failed, and reports whether that succeeded.
func (s *Stream) Do(name string, f uintptr, args ...uintptr) bool {
	return !s.Failed() && s.Check(name, driver.Call(f, args...))
}

// Check reports whether a call succeeded, by its code.
func (s *Stream) Check(name string, code uintptr) bool {
	if code != 0 {
		s.Fail(s.GPU.Failure(name, code))
	}
	return code == 0
}
