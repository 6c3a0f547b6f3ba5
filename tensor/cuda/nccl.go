package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"starling/tensor"
	"starling/tensor/cuda/driver"
)

// ncclNamed is the variable that names NCCL's library; none: do without.
const ncclNamed = "STARLING_NCCL"

// ncclLibrary is NCCL's, by the addresses of its functions.
type ncclLibrary struct {
	path                                              string
	uniqueID, init, asyncError, abort                 uintptr
	allReduce, groupStart, groupEnd, errorText, error uintptr
}

// Of nccl.h.
const (
	ncclIDBytes    = 128
	ncclInProgress = 7
	ncclFloat32    = 7
	ncclFloat64    = 8
	ncclSum        = 0
)

// ncclConfig is ncclConfig_t of NCCL 2.14, of which later ones know what it lacks.
type ncclConfig struct {
	size           uint64
	magic, version uint32
	blocking       int32
	_              int32
}

func newConfig() *ncclConfig {
	return &ncclConfig{size: 24, magic: 0xcafebeef, version: 21400, blocking: 0}
}

var foundNCCL struct {
	once sync.Once
	lib  *ncclLibrary
}

// findNCCL opens the first library that can be opened; nil where there is none.
func findNCCL() *ncclLibrary {
	foundNCCL.once.Do(func() {
		for _, path := range candidates(ncclNamed, []string{"libnccl.so.2"}, "libnccl.so.2") {
			l := &ncclLibrary{path: path}
			err := driver.OpenLibrary(path, map[string]*uintptr{"ncclGetUniqueId": &l.uniqueID,
				"ncclCommInitRankConfig": &l.init, "ncclCommGetAsyncError": &l.asyncError, "ncclCommAbort": &l.abort,
				"ncclAllReduce": &l.allReduce, "ncclGroupStart": &l.groupStart,
				"ncclGroupEnd": &l.groupEnd, "ncclGetErrorString": &l.errorText, "ncclGetLastError": &l.error})
			if err == nil {
				foundNCCL.lib = l
				return
			}
		}
	})
	return foundNCCL.lib
}

// NCCL is where its library was found; "" where it was not.
func NCCL() string {
	if l := findNCCL(); l != nil {
		return l.path
	}
	return ""
}

var errNoNCCL = errors.New("NCCL's library libnccl.so.2, of 2.14 or newer, was not found; install it (pip: " +
	"nvidia-nccl-cu12), or name the file with " + ncclNamed)

// communicator is one of NCCL's.
type communicator struct {
	*ncclLibrary
	comm uintptr
}

var _ tensor.Reducer = (*Device)(nil)

func (d *Device) ReducerCard() ([]byte, error) {
	if findNCCL() == nil {
		return nil, errNoNCCL
	}
	id := process().host
	uuid := &[16]byte{}
	if d.run.GPU.DeviceUUID == 0 {
		return nil, errors.New("the driver does not name its GPUs; update NVIDIA's driver")
	}
	if code := driver.Call(d.run.GPU.DeviceUUID, driver.Address(uuid), uintptr(d.run.GPU.Handle)); code != 0 {
		return nil, d.run.GPU.Failure("cuDeviceGetUuid", code)
	}
	return append(id[:], uuid[:]...), nil
}

func (d *Device) NewReduction() ([]byte, error) {
	l := findNCCL()
	if l == nil {
		return nil, errNoNCCL
	}
	id := make([]byte, ncclIDBytes)
	if code := driver.Call(l.uniqueID, driver.Address(&id[0])); code != 0 {
		return nil, l.failure("ncclGetUniqueId", code)
	}
	return id, nil
}

func (d *Device) JoinReduction(id []byte, rank, size int, within time.Duration) error {
	l := findNCCL()
	switch {
	case l == nil:
		return errNoNCCL
	case len(id) != ncclIDBytes:
		return fmt.Errorf("found a name of %d bytes for a group of NCCL, want %d", len(id), ncclIDBytes)
	}
	defer d.enter()()
	d.run.Bind()
	c := &communicator{ncclLibrary: l}
	code := l.join(&c.comm, id, rank, size)
	if c.comm == 0 && code != 0 {
		return l.failure("ncclCommInitRankConfig", code)
	}
	if err := c.settle("ncclCommInitRankConfig", code, nil, time.Now().Add(within)); err != nil {
		driver.Call(l.abort, c.comm)
		return err
	}
	d.reduction = c
	return nil
}

// join calls ncclCommInitRankConfig, whose third argument is a struct by value: see openHandle.
func (l *ncclLibrary) join(comm *uintptr, id []byte, rank, size int) uintptr {
	config, own := newConfig(), [ncclIDBytes]byte(id)
	defer runtime.KeepAlive(&own)
	defer runtime.KeepAlive(config)
	if runtime.GOARCH != "amd64" {
		return driver.Call(l.init, driver.Address(comm), uintptr(size), driver.Address(&own), uintptr(rank), driver.Address(config))
	}
	args := []uintptr{driver.Address(comm), uintptr(size), uintptr(rank), driver.Address(config), 0, 0}
	for i := 0; i < len(own); i += 8 {
		args = append(args, uintptr(binary.NativeEndian.Uint64(own[i:])))
	}
	return driver.Call(l.init, args...)
}

// settle waits until a call of NCCL, which does not block, is over.
func (c *communicator) settle(name string, code uintptr, stop <-chan struct{}, deadline time.Time) error {
	for code == ncclInProgress {
		select {
		case <-stop:
			return fmt.Errorf("%s was given up", name)
		case <-time.After(50 * time.Microsecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("found %s not done in time, want all workers to call it; see NCCL_DEBUG=INFO", name)
		}
		var state int32
		if code = driver.Call(c.asyncError, c.comm, driver.Address(&state)); code == 0 {
			code = uintptr(uint32(state))
		}
	}
	if code != 0 {
		return c.failure(name, code)
	}
	return nil
}

// failure is a code in words.
func (l *ncclLibrary) failure(name string, code uintptr) error {
	text, last := driver.Call64(l.errorText, code), driver.Call64(l.error, 0)
	detail := ""
	if last != 0 {
		if detail = driver.CString(last); detail != "" {
			detail = ": " + detail
		}
	}
	return fmt.Errorf("found %q from %s%s (%s); see NCCL_DEBUG=INFO", driver.CString(text), name, detail, l.path)
}

func (d *Device) Reduce(all []Matrix, stop <-chan struct{}, within time.Duration) (err error) {
	c, deadline := d.reduction, time.Now().Add(within)
	tensor.Need(c != nil, "cuda: Reduce without JoinReduction")
	defer d.enter()()
	defer func() {
		if err != nil {
			d.LeaveReduction()
		}
	}()
	if d.run.Settle(); d.run.Failed() {
		return d.Err()
	}
	if err := c.settle("ncclGroupStart", driver.Call(c.groupStart), stop, deadline); err != nil {
		return err
	}
	for _, m := range all {
		if m.Rows*m.Cols == 0 {
			continue
		}
		tensor.Need(m.Contiguous() && (m.Type() == F32 || m.Type() == F64), "cuda: Reduce of %v", m)
		kind := uintptr(ncclFloat32)
		if m.Type() == F64 {
			kind = ncclFloat64
		}
		code := driver.Call(c.allReduce, at(m), at(m), uintptr(m.Rows*m.Cols), kind, ncclSum, c.comm, d.run.Handle)
		if code != 0 && code != ncclInProgress {
			driver.Call(c.groupEnd)
			return c.failure("ncclAllReduce", code)
		}
	}
	if err := c.settle("ncclGroupEnd", driver.Call(c.groupEnd), stop, deadline); err != nil {
		return err
	}
	return d.waitUntil(stop, deadline)
}

// waitUntil waits for the stream, but not for ever: a worker that is gone leaves the others' kernels waiting for it.
func (d *Device) waitUntil(stop <-chan struct{}, deadline time.Time) error {
	done := make(chan struct{})
	d.After(func() { close(done) })
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case <-done:
		d.run.Wait() // which is over
		return d.Err()
	case <-d.run.Known():
		return d.Err()
	case <-stop:
		return errors.New("the sum of gradients by NCCL was given up")
	case <-late.C:
		return errors.New("found the sum of gradients by NCCL not done in time, want all workers to take part; see " +
			"NCCL_DEBUG=INFO, or use --all-reduce host")
	}
}

// LeaveReduction aborts the group, which ends kernels that wait for others.
func (d *Device) LeaveReduction() {
	if c := d.reduction; c != nil {
		driver.Call(c.abort, c.comm)
		d.reduction = nil
	}
}
