package execution

import (
	"os"
	"runtime"
	"slices"
	"unsafe"

	"starling/tensor/cuda/driver"
)

// graphsNamed is the variable that, with the value off, has every operation launched by itself.
const graphsNamed = "STARLING_CUDA_GRAPHS"

// queue is the operations between two points where the host waits. A launch costs the host 6 µs, and a node of a
// captured graph half a microsecond, so a sequence of operations that comes again is replayed as a graph: it is held
// back until it is complete, compared with the one that was captured, and launched with the arguments that have
// changed (dropout's key, the learning rate). A sequence that is new is launched one by one, as it comes.
//
// Kernels, shapes and arguments of every replay are those that were called, so results are equal to the bit.
type queue struct {
	off  bool // nothing is held back
	held bool // the last sequence was known, so this one waits until it is complete
	now  sequence
	sum  uint64 // of what makes up the sequence, for finding it
	n    int    // its length; now has the operations of a held one only
	most int    // where it is cut

	seen     map[uint64]bool
	graphs   map[uint64]*replay
	replayed int
}

// sequence is operations with their arguments.
type sequence struct {
	ops  []operation
	args []uint64
}

// operation is a kernel, or a call of a library that queues something on the stream.
type operation struct {
	name   string
	f      uintptr
	kernel bool
	shape  [6]uint32 // blocks and threads of a kernel
	shared uint32    // bytes of shared memory that go with its name
	lo, hi int       // its arguments
	// explain says in words what a library's code means; nil: it is the driver's.
	explain func(code uintptr) error
}

// A sequence is cut so that the GPU has something to do while the host goes on: after leastCut operations, and then
// after twice as many each time. What is shorter than leastReplay is not worth a graph.
const (
	leastCut    = 8
	leastReplay = 4
	mostGraphs  = 64
	mostSeen    = 1024
)

func newQueue(off bool) queue {
	return queue{off: off || os.Getenv(graphsNamed) == "off", most: leastCut, seen: map[uint64]bool{},
		graphs: map[uint64]*replay{}}
}

// mixed adds a word to a sum of words.
func mixed(sum, word uint64) uint64 {
	return (sum^word)*0x9e3779b97f4a7c15>>7 ^ (sum^word)*0xbf58476d1ce4e5b9
}

// enqueue launches an operation, now or as part of a sequence.
func (s *Stream) enqueue(op operation, args []uint64) {
	if s.Failed() {
		return
	}
	if s.Aside() {
		s.issue(op, args)
		return
	}
	q := &s.queue
	q.sum = mixed(q.sum, uint64(op.f))
	if op.kernel {
		for i := 0; i < len(op.shape); i += 2 {
			q.sum = mixed(q.sum, uint64(op.shape[i])<<32|uint64(op.shape[i+1]))
		}
	} else {
		for _, w := range args {
			q.sum = mixed(q.sum, w)
		}
	}
	if q.n++; q.held {
		op.lo = len(q.now.args)
		q.now.args = append(q.now.args, args...)
		op.hi = len(q.now.args)
		q.now.ops = append(q.now.ops, op)
	} else {
		s.issue(op, args)
	}
	if q.n >= q.most {
		q.most *= 2
		s.endSequence()
	}
}

// Settle launches what is held back, before the host waits or does something on the stream by itself.
func (s *Stream) Settle() {
	s.Bind()
	s.endSequence()
	s.queue.most = leastCut
}

// endSequence launches what is held back, and remembers the sequence.
func (s *Stream) endSequence() {
	q := &s.queue
	if q.n == 0 {
		return
	}
	known := q.seen[q.sum] && !q.off
	if q.held {
		s.Bind()
		s.launchHeld(known)
	}
	if len(q.seen) > mostSeen {
		clear(q.seen)
	}
	q.seen[q.sum] = true
	q.held = known
	q.now.ops, q.now.args, q.sum, q.n = q.now.ops[:0], q.now.args[:0], 0, 0
}

// launchHeld launches a sequence: as its graph, which is made when it has come for the second time, or one by one.
func (s *Stream) launchHeld(known bool) {
	q := &s.queue
	g := q.graphs[q.sum]
	if g == nil && known && len(q.now.ops) >= leastReplay {
		if g = s.capture(q.now); g == nil {
			q.off = true // the driver or a library cannot: one by one from now on
		} else {
			if len(q.graphs) >= mostGraphs {
				s.dropGraphs()
			}
			q.graphs[q.sum] = g
		}
	}
	if g != nil && g.launch(s, q.now) {
		q.replayed++
		return
	}
	for _, op := range q.now.ops {
		s.issue(op, q.now.args[op.lo:op.hi])
	}
}

// Replayed is how many sequences of operations were launched as captured graphs.
func (s *Stream) Replayed() int { return s.queue.replayed }

// issue queues an operation on the stream. REQUIRES: the thread is the GPU's.
func (s *Stream) issue(op operation, args []uint64) {
	if s.Failed() {
		return
	}
	done := s.Timed(op.name)
	if code := s.start(op, args); code != 0 {
		s.Fail(s.failureOf(op, code))
	}
	done()
}

// start is issue, with the code of the driver or library.
func (s *Stream) start(op operation, args []uint64) uintptr {
	defer runtime.KeepAlive(args)
	if !op.kernel {
		words := unsafe.Slice((*uintptr)(unsafe.Pointer(unsafe.SliceData(args))), len(args))
		return driver.Call(op.f, words...)
	}
	params := &[1]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(args))}
	n := op.shape
	code := driver.Call(s.GPU.LaunchKernel, op.f, uintptr(n[0]), uintptr(n[1]), uintptr(n[2]), uintptr(n[3]), uintptr(n[4]),
		uintptr(n[5]), uintptr(op.shared), s.Handle, driver.Address(&params[0]), 0)
	runtime.KeepAlive(params)
	return code
}

// failureOf is the code of an operation in words.
func (s *Stream) failureOf(op operation, code uintptr) error {
	switch {
	case op.explain != nil:
		return op.explain(code)
	case op.kernel:
		return s.GPU.Failure("cuLaunchKernel of "+op.name, code)
	}
	return s.GPU.Failure(op.name, code)
}

// Library queues a call of a library.
func (s *Stream) Library(name string, f uintptr, args ...uint64) {
	s.enqueue(operation{name: name, f: f}, args)
}

// LibraryOf is Library for another library than the driver's: explain has its codes in words.
func (s *Stream) LibraryOf(explain func(code uintptr) error, name string, f uintptr, args ...uint64) {
	s.enqueue(operation{name: name, f: f, explain: explain}, args)
}

// NoGraphs has every operation launched by itself from now on.
func (s *Stream) NoGraphs() { s.queue.off = true }

// same reports whether sequences differ in the arguments of kernels only.
func (s *sequence) same(t *sequence) bool {
	return slices.EqualFunc(s.ops, t.ops, func(a, b operation) bool {
		return a.f == b.f && a.kernel == b.kernel && a.shape == b.shape && a.hi-a.lo == b.hi-b.lo &&
			(a.kernel || slices.Equal(s.args[a.lo:a.hi], t.args[b.lo:b.hi]))
	})
}
