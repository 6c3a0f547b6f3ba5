package paths

import (
	"errors"
	"fmt"
	"slices"
)

const (
	// segmentSize is the most that a segment has: what a stream is cut into, and what goes by one path. A chunk of
	// 64 KiB of package wire fits with its head. Files describe segments of nominalSize.
	segmentSize = nominalSize + 1<<10
	nominalSize = 64 << 10
	// window is how many bytes of memory the segments take that a receiver holds and that were not read yet.
	window = 8 << 20
	// listed is what the lists of a segment take beside its data.
	listed = 256
	// flightTime is how long the bytes under way on a path may take, beyond a few segments: more would wait in the
	// kernel, where an urgent message cannot overtake them.
	flightTime, flightSegments = 10e-3, 4
)

// errStream is what a peer sent that is no part of the stream.
var errStream = errors.New("not a valid segment")

// memoryOf is what a segment takes where it is held: below half of the largest it has a buffer of its size, else one of
// the buffers that serve again. Both ends count it so: small segments far apart fill the window as quickly as their
// memory does, and not as slowly as their bytes.
func memoryOf(bytes int) uint64 {
	if bytes > segmentSize/2 {
		bytes = segmentSize
	}
	return uint64(bytes + listed)
}

// segment is a part of the stream, until it was acknowledged.
type segment struct {
	offset uint64
	data   []byte
	stream uint64 // which of the process's
	id     int32  // in the request state table
	sent   float64
}

// sender has one direction of a stream over several paths: which segment goes where, and what has to go again. It is
// pure: time is an argument, and what is to be sent is fetched. Every call is made with the connection's lock held.
type sender struct {
	paths    []sendPath
	chooser  *chooser
	stream   uint64     // which of the process's
	next     uint64     // the offset of the next byte
	spent    uint64     // memory of all segments so far, where they are held
	limit    uint64     // how much of it the receiver has space for
	stranded []*segment // of paths that have failed, while there is no other
}

// sendPath is one path's part.
type sendPath struct {
	up      bool
	most    int        // bytes under way
	bytes   int        // of both lists
	waiting []*segment // to be sent
	flight  []*segment // sent, in their order, and not acknowledged
	acked   uint32     // how many were acknowledged since the path is up
}

// newSender has no path yet.
func newSender(c *chooser) *sender {
	s := &sender{chooser: c, stream: c.streams.Add(1), paths: make([]sendPath, len(c.plan.File.Paths)), limit: window}
	for i := range s.paths {
		s.paths[i].most = flightSegments * segmentSize
		if at := c.plan.Choice(0, i); at >= 0 {
			s.paths[i].most = max(s.paths[i].most, int(flightTime*nominalSize*c.plan.Capacity(0, at)))
		}
	}
	return s
}

// takes reports whether a segment of n bytes can be sent soon.
func (s *sender) takes(now float64, size int) bool {
	if s.spent+memoryOf(size) > s.limit || !s.anyUp() {
		return false
	}
	p := &s.paths[s.chooser.preferred(now, size, s.paths)]
	return p.bytes == 0 || p.bytes+size <= p.most
}

// put takes a segment. It keeps data until it is acknowledged.
func (s *sender) put(now float64, data []byte) {
	s.assign(now, &segment{stream: s.stream, offset: s.next, data: data})
	s.next += uint64(len(data))
	s.spent += memoryOf(len(data))
}

func (s *sender) anyUp() bool {
	return slices.ContainsFunc(s.paths, func(p sendPath) bool { return p.up })
}

// assign gives a segment a path.
func (s *sender) assign(now float64, g *segment) {
	p := &s.paths[s.chooser.begin(now, g, s.paths)]
	p.waiting = append(p.waiting, g)
	p.bytes += len(g.data)
}

// take returns the segments to be sent on a path now, bounded in bytes but at least one.
func (s *sender) take(path, most int, into []*segment) []*segment {
	p := &s.paths[path]
	n := 0
	for bytes := 0; n < len(p.waiting) && (n == 0 || bytes+len(p.waiting[n].data) <= most); n++ {
		bytes += len(p.waiting[n].data)
	}
	into = append(into, p.waiting[:n]...)
	p.flight = append(p.flight, p.waiting[:n]...)
	p.waiting = slices.Delete(p.waiting, 0, n)
	return into
}

// acknowledged is told how many segments have arrived since the path is up, and up to where the receiver has space.
// drop is given each segment that is done with; their number is returned.
func (s *sender) acknowledged(now float64, path int, count uint32, limit uint64, drop func(*segment)) (int, error) {
	p := &s.paths[path]
	n := int(count - p.acked)
	if n > len(p.flight) {
		return 0, fmt.Errorf("%w: %d segments acknowledged of %d", errStream, n, len(p.flight))
	}
	for _, g := range p.flight[:n] {
		s.chooser.end(now, g, path)
		p.bytes -= len(g.data)
		drop(g)
	}
	p.flight = slices.Delete(p.flight, 0, n)
	p.acked = count
	s.limit = max(s.limit, limit)
	return n, nil
}

// down is told that a path has failed: what it did not acknowledge goes by others, before anything newer.
func (s *sender) down(now float64, path int) {
	p := &s.paths[path]
	if !p.up {
		return
	}
	lost := append(p.flight, p.waiting...)
	*p = sendPath{most: p.most}
	for _, g := range lost {
		s.chooser.drop(g.id)
	}
	s.stranded = append(s.stranded, lost...)
	s.resend(now)
}

// raise is told that a path works (again).
func (s *sender) raise(now float64, path int) {
	p := &s.paths[path]
	*p = sendPath{up: true, most: p.most}
	s.resend(now)
}

// resend gives stranded segments a path, if there is one.
func (s *sender) resend(now float64) {
	if len(s.stranded) == 0 || !s.anyUp() {
		return
	}
	newer := make([]int, len(s.paths)) // how many wait already
	for i := range s.paths {
		newer[i] = len(s.paths[i].waiting)
	}
	slices.SortFunc(s.stranded, func(a, b *segment) int { return int(int64(a.offset - b.offset)) })
	for _, g := range s.stranded {
		s.assign(now, g)
	}
	s.stranded = nil
	for i := range s.paths { // the receiver waits for the oldest
		w := s.paths[i].waiting
		s.paths[i].waiting = append(slices.Clone(w[newer[i]:]), w[:newer[i]]...)
	}
}

// abandon drops everything: the connection has failed.
func (s *sender) abandon() {
	for i := range s.paths {
		for _, g := range append(s.paths[i].flight, s.paths[i].waiting...) {
			s.chooser.drop(g.id)
		}
		s.paths[i] = sendPath{most: s.paths[i].most}
	}
	s.stranded = nil
}

// idle reports whether everything was acknowledged.
func (s *sender) idle() bool {
	return len(s.stranded) == 0 &&
		!slices.ContainsFunc(s.paths, func(p sendPath) bool { return len(p.waiting)+len(p.flight) > 0 })
}

// receiver puts the segments of all paths into one order.
type receiver struct {
	next     uint64            // the first byte that has not come
	consumed uint64            // the first that was not read
	held     map[uint64][]byte // segments that came before others, by offset
	ready    [][]byte          // those to be read
	begun    int               // bytes of the first that were
	taken    uint64            // memory of held and ready
	freed    uint64            // memory of all that were read
	end      uint64            // where the stream ends, once that is known
	ended    bool
}

// arrived takes a segment. What came before is dropped, and it reports whether the buffer was kept.
func (r *receiver) arrived(offset uint64, data []byte) (kept bool, err error) {
	switch {
	case offset+uint64(len(data)) > r.consumed+window || offset+uint64(len(data)) < offset:
		return false, fmt.Errorf("%w: bytes %d to %d, of which %d can be held", errStream, offset,
			offset+uint64(len(data)), r.consumed+window)
	case r.ended && offset+uint64(len(data)) > r.end:
		return false, fmt.Errorf("%w: bytes up to %d after the end at %d", errStream, offset+uint64(len(data)), r.end)
	case offset < r.next || r.held[offset] != nil || len(data) == 0:
		return false, nil
	case r.taken+memoryOf(len(data)) > window:
		return false, fmt.Errorf("%w: segments that take more than %d bytes of memory", errStream, window)
	}
	r.taken += memoryOf(len(data))
	if offset > r.next {
		if r.held == nil {
			r.held = map[uint64][]byte{}
		}
		r.held[offset] = data
		return true, nil
	}
	for data != nil {
		r.ready = append(r.ready, data)
		r.next += uint64(len(data))
		data = r.held[r.next]
		delete(r.held, r.next)
	}
	return true, nil
}

// read copies what is ready. drop is given each buffer that is done with.
func (r *receiver) read(into []byte, drop func([]byte)) (n int) {
	for n < len(into) && len(r.ready) > 0 {
		first := r.ready[0]
		k := copy(into[n:], first[r.begun:])
		n += k
		r.consumed += uint64(k)
		if r.begun += k; r.begun < len(first) {
			break
		}
		r.taken -= memoryOf(len(first))
		r.freed += memoryOf(len(first))
		drop(first)
		r.ready[0], r.begun = nil, 0
		r.ready = r.ready[1:]
	}
	return n
}

// limit is how much memory the sender's segments may have taken so far.
func (r *receiver) limit() uint64 { return r.freed + window }

// finished reports whether everything up to the end was read.
func (r *receiver) finished() bool { return r.ended && r.consumed == r.end }
