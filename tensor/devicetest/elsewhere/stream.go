//go:build linux

package elsewhere

import "sync"

// stream runs operations one after the other, on a goroutine of its own, some time after
// they were called.
type stream struct {
	mu struct {
		sync.Mutex
		queue  []func()
		busy   bool
		closed bool
		failed any // the first panic: sync raises it again
	}
	changed *sync.Cond
	ended   sync.WaitGroup
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	s.ended.Go(s.run)
	return s
}

// do queues an operation.
func (s *stream) do(op func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.queue = append(s.mu.queue, op)
	s.changed.Broadcast()
}

// sync waits until the queue is empty.
func (s *stream) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.mu.queue) > 0 || s.mu.busy {
		s.changed.Wait()
	}
	if s.mu.failed != nil {
		panic(s.mu.failed)
	}
}

func (s *stream) close() {
	s.mu.Lock()
	s.mu.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.ended.Wait()
}

func (s *stream) run() {
	for {
		op := s.next()
		if op == nil {
			return
		}
		failed := try(op)
		s.mu.Lock()
		if s.mu.busy = false; failed != nil && s.mu.failed == nil {
			s.mu.failed = failed
		}
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// next waits for an operation; nil: there is no more.
func (s *stream) next() (op func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.mu.queue) == 0 && !s.mu.closed {
		s.changed.Wait()
	}
	if len(s.mu.queue) == 0 {
		return nil
	}
	op, s.mu.queue = s.mu.queue[0], s.mu.queue[1:]
	s.mu.busy = true
	return op
}

func try(op func()) (failed any) {
	defer func() { failed = recover() }()
	op()
	return nil
}
