package rows

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is an io_uring, by its system calls: entries of what is to be done in one ring, and of what was done in
// another, both shared with the kernel (io_uring_setup(2)).
type ring struct {
	fd                      int
	submissions, entries    []byte
	completions             []byte
	sqTail, sqArray, cqHead *uint32
	cqTail                  *uint32
	sqMask, cqMask          uint32
	cqes                    *completion
	queued                  uint32 // entries that the kernel was not told of
	running                 map[uint64]*request
	next                    uint64
}

// ringParams is struct io_uring_params.
type ringParams struct {
	sqEntries, cqEntries, flags, cpu, idle, features, wqFd uint32
	_                                                      [3]uint32
	sq                                                     struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// submission is struct io_uring_sqe, completion struct io_uring_cqe.
type submission struct {
	op, flags byte
	priority  uint16
	fd        int32
	at        uint64
	address   uint64
	length    uint32
	rwFlags   uint32
	user      uint64
	_         [3]uint64
}

type completion struct {
	user  uint64
	res   int32
	flags uint32
}

const (
	opRead, opWrite = 22, 23
	ringSubmissions = 0
	ringCompletions = 0x8000000
	ringEntries     = 0x10000000
	enterGetEvents  = 1
)

func newRing() (engine, error) {
	var p ringParams
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 4*depth, uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		return nil, fmt.Errorf("io_uring: %w", e)
	}
	r := &ring{fd: int(fd), running: map[uint64]*request{}}
	return r, r.share(&p)
}

// share maps what the kernel shares.
func (r *ring) share(p *ringParams) (err error) {
	for _, m := range []struct {
		to   *[]byte
		at   int64
		size uint32
	}{{&r.submissions, ringSubmissions, p.sq.array + 4*p.sqEntries},
		{&r.completions, ringCompletions, p.cq.cqes + uint32(unsafe.Sizeof(completion{}))*p.cqEntries},
		{&r.entries, ringEntries, uint32(unsafe.Sizeof(submission{})) * p.sqEntries}} {
		*m.to, err = unix.Mmap(r.fd, m.at, int(m.size), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return errors.Join(fmt.Errorf("io_uring: %w", err), r.close())
		}
	}
	word := func(b []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&b[at])) }
	r.sqTail, r.sqArray, r.sqMask = word(r.submissions, p.sq.tail), word(r.submissions, p.sq.array),
		*word(r.submissions, p.sq.mask)
	r.cqHead, r.cqTail, r.cqMask = word(r.completions, p.cq.head), word(r.completions, p.cq.tail),
		*word(r.completions, p.cq.mask)
	r.cqes = (*completion)(unsafe.Pointer(&r.completions[p.cq.cqes]))
	return nil
}

func (r *ring) start(q *request) error {
	for len(r.running) > int(r.sqMask) { // as many as the ring has
		if err := r.wait(); err != nil {
			return err
		}
	}
	r.next++
	r.running[r.next] = q
	r.put(r.next, q)
	return nil
}

// put queues what is left of a request.
func (r *ring) put(user uint64, q *request) {
	tail := atomic.LoadUint32(r.sqTail)
	at := tail & r.sqMask
	s := (*submission)(unsafe.Add(unsafe.Pointer(&r.entries[0]), uintptr(at)*unsafe.Sizeof(submission{})))
	*s = submission{op: opRead, fd: int32(q.file.Fd()), at: uint64(q.at + int64(q.got)), user: user,
		address: uint64(uintptr(unsafe.Pointer(&q.buf[q.got]))), length: uint32(len(q.buf) - q.got)}
	if q.write {
		s.op = opWrite
	}
	*(*uint32)(unsafe.Add(unsafe.Pointer(r.sqArray), 4*uintptr(at))) = at
	atomic.StoreUint32(r.sqTail, tail+1)
	r.queued++
}

func (r *ring) wait() error {
	for {
		if r.take() {
			return nil
		}
		n, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.queued), 1, enterGetEvents, 0, 0)
		switch {
		case e == 0:
			r.queued -= uint32(n)
		case e != unix.EINTR && e != unix.EAGAIN && e != unix.EBUSY:
			return fmt.Errorf("io_uring: %w", e)
		}
	}
}

// take takes what the kernel has done, and reports whether a request has become done.
func (r *ring) take() (some bool) {
	head := atomic.LoadUint32(r.cqHead)
	for ; head != atomic.LoadUint32(r.cqTail); head++ {
		c := (*completion)(unsafe.Add(unsafe.Pointer(r.cqes), uintptr(head&r.cqMask)*unsafe.Sizeof(completion{})))
		q, user, n, err := r.running[c.user], c.user, int(c.res), error(nil)
		if n < 0 {
			n, err = 0, unix.Errno(-n)
		}
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || q.again(n, err) {
			r.put(user, q)
			continue
		}
		q.done = true
		delete(r.running, user)
		some = true
	}
	atomic.StoreUint32(r.cqHead, head)
	return some
}

// close waits for what is under way, since the kernel writes to its memory.
func (r *ring) close() (err error) {
	for len(r.running) > 0 && err == nil {
		err = r.wait()
	}
	for _, b := range [][]byte{r.submissions, r.completions, r.entries} {
		if b != nil {
			err = errors.Join(err, unix.Munmap(b))
		}
	}
	return errors.Join(err, unix.Close(r.fd))
}
