// Package execution is the layer of tensor/cuda that runs things on a GPU: a stream, the thread that calls the driver,
// kernels and their launches, sequences of them that are replayed as graphs, and the first error, which stays.
package execution

import (
	"runtime"
	"unsafe"

	"starling/tensor/cuda/driver"
)

// Stream is one worker's: operations run in the order of their calls. One goroutine at a time calls it.
type Stream struct {
	GPU    *driver.GPU
	Handle uintptr
	// Waited is called when the host has waited for all operations.
	Waited func()

	failure   failure
	ptx       func(module string) []byte
	functions map[string]uintptr // kernels that were used
	queue     queue
	depth     int      // of Enter
	leaves    func()   // leave, made once
	bound     bool     // the thread is the GPU's
	profile   *profile // nil unless it is asked for
	main      uintptr  // the stream itself, while Handle is the one beside it
}

// nonBlocking is a stream's that does not wait for the driver's own.
const nonBlocking = 1

// New is a stream on a GPU. ptx is the code of its kernels.
func New(gpu *driver.GPU, ptx func(module string) []byte) (*Stream, error) {
	return newStream(gpu, ptx, func(handle *uintptr) error {
		if code := driver.Call(gpu.StreamCreate, driver.Address(handle), nonBlocking); code != 0 {
			return gpu.Failure("cuStreamCreate", code)
		}
		return nil
	})
}

// NewFirst is a stream whose kernels begin before those of others that wait.
func NewFirst(gpu *driver.GPU, ptx func(module string) []byte) (*Stream, error) {
	if gpu.StreamFirst == 0 {
		return New(gpu, ptx)
	}
	return newStream(gpu, ptx, func(handle *uintptr) error {
		highest := -100 // the driver takes the highest that there is
		code := driver.Call(gpu.StreamFirst, driver.Address(handle), nonBlocking, uintptr(highest))
		if code != 0 {
			return gpu.Failure("cuStreamCreateWithPriority", code)
		}
		return nil
	})
}

func newStream(gpu *driver.GPU, ptx func(module string) []byte, create func(handle *uintptr) error) (*Stream, error) {
	s := &Stream{GPU: gpu, ptx: ptx, profile: newProfile(), functions: map[string]uintptr{}, failure: newFailure(),
		Waited: func() {}}
	s.queue, s.leaves = newQueue(s.profile != nil), s.leave
	return s, gpu.OnThread(gpu.Context, func() error { return create(&s.Handle) })
}

// Drain waits for the stream, whatever its state, before it is closed. REQUIRES: the thread is the GPU's.
func (s *Stream) Drain() {
	driver.Call(s.GPU.StreamSync, s.Handle)
	s.profile.write()
	s.dropGraphs()
}

// Close gives the stream back. REQUIRES: Drain.
func (s *Stream) Close() { driver.Call(s.GPU.StreamDestroy, s.Handle) }

// Enter begins an operation; what it returns ends it. One that is held back needs no thread.
func (s *Stream) Enter() (leave func()) {
	if s.depth++; !s.queue.held {
		s.Bind()
	}
	return s.leaves
}

// Bind makes this thread the GPU's until the operation ends.
func (s *Stream) Bind() {
	if s.bound {
		return
	}
	runtime.LockOSThread()
	s.bound = true
	s.Do("cuCtxSetCurrent", s.GPU.ContextSet, s.GPU.Context)
}

func (s *Stream) leave() {
	if s.depth--; s.depth == 0 && s.bound {
		s.bound = false
		runtime.UnlockOSThread()
	}
}

// Sync waits for all operations.
func (s *Stream) Sync() {
	s.Settle()
	s.Wait()
}

// Wait is for what has been queued on the stream. REQUIRES: nothing is held back.
func (s *Stream) Wait() {
	if s.Do("cuStreamSynchronize", s.GPU.StreamSync, s.Handle) && !s.Aside() {
		s.Waited()
	}
}

// Aside reports whether operations go to the stream beside this one.
func (s *Stream) Aside() bool { return s.main != 0 }

// Beside has the operations of f run on another stream, one by one.
func (s *Stream) Beside(handle uintptr, f func()) {
	s.main, s.Handle = s.Handle, handle
	defer func() { s.Handle, s.main = s.main, 0 }()
	f()
}

// WaitMain waits for this stream while operations go to the one beside it.
func (s *Stream) WaitMain() { s.Do("cuStreamSynchronize", s.GPU.StreamSync, s.main) }

// Event is one that streams and hosts wait for. blocking: the host's thread sleeps. 0 where the device failed.
func (s *Stream) Event(blocking bool) (e uintptr) {
	flags := uintptr(2) // no timing
	if blocking {
		flags |= 1
	}
	s.Do("cuEventCreate", s.GPU.EventCreate, driver.Address(&e), flags)
	return e
}

// Record has an event come to pass when the stream, or the one beside it, comes here.
func (s *Stream) Record(event, stream uintptr) bool {
	return s.Do("cuEventRecord", s.GPU.EventRecord, event, stream)
}

// After has a stream wait for an event.
func (s *Stream) After(event, stream uintptr) {
	s.Do("cuStreamWaitEvent", s.GPU.WaitEvent, stream, event, 0)
}

// Size is a number of blocks or threads in each direction.
type Size struct{ X, Y, Z int }

// Launch queues a kernel. Its arguments are one struct, which the driver copies.
func Launch[A any](s *Stream, module, name string, grid, block Size, args *A) {
	LaunchShared(s, module, name, grid, block, 0, 0, args)
}

// LaunchShared is Launch with bytes of shared memory that the kernel does not name itself. most is the most that it is
// ever launched with.
func LaunchShared[A any](s *Stream, module, name string, grid, block Size, shared, most int, args *A) {
	if grid.X <= 0 || grid.Y < 0 || s.Failed() {
		return
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(args)), unsafe.Sizeof(*args)/8)
	s.enqueue(operation{name: name, f: s.function(module, name, most), kernel: true, shared: uint32(shared),
		shape: [6]uint32{uint32(grid.X), uint32(max(grid.Y, 1)), uint32(max(grid.Z, 1)), uint32(block.X),
			uint32(max(block.Y, 1)), uint32(max(block.Z, 1))}}, words)
}

// function is a kernel by its name; 0 where the device failed.
func (s *Stream) function(module, name string, shared int) uintptr {
	f := s.functions[name]
	if f == 0 {
		s.Bind()
		var err error
		if f, err = s.GPU.Function(module, name, shared, s.ptx); err != nil {
			s.Fail(err)
			return 0
		}
		s.functions[name] = f
	}
	return f
}
