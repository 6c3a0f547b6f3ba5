package rows

import "sync/atomic"

// window is batches that were planned together. packed is where the rows that they miss are; nil: in the files.
type window struct {
	needs  []*need
	packed *packed
}

// staged is a batch whose rows were read.
type staged struct {
	*need
	rows []byte // those that were read, in the order of need.read
}

// staging is memory for rows that were read, in bytes. Any number of bytes is lent where nothing is.
type staging struct {
	limit int64
	lent  int64
	back  chan int64
}

// take takes bytes for some batches, and waits until they are there; false: the feed has ended.
func (s *staging) take(n int64, end <-chan struct{}) bool {
	for len(s.back) > 0 {
		s.lent -= <-s.back
	}
	for s.lent > 0 && s.lent+n > s.limit {
		select {
		case b := <-s.back:
			s.lent -= b
		case <-end:
			return false
		}
	}
	s.lent += n
	return true
}

// reader brings rows of batches into memory.
type reader struct {
	layout  *layout
	e       engine
	buffers [][]byte
	stats   *Stats
	staging staging
	memory  *lender
	ended   *atomic.Bool
}

// groups cuts a window into batches whose rows are read together: as many as half of the staging memory holds, so
// that others can be read meanwhile.
func (l *layout) groups(needs []*need, limit int64) (out [][]*need) {
	for len(needs) > 0 {
		n, bytes := 0, int64(0)
		for ; n < len(needs); n++ {
			if bytes += l.bytesOf(needs[n]); n > 0 && bytes > limit/2 {
				break
			}
		}
		out, needs = append(out, needs[:n]), needs[n:]
	}
	return out
}

// bytesOf is the memory for the rows that a batch misses.
func (l *layout) bytesOf(n *need) int64 { return up(int64(len(n.read)) * int64(l.width)) }

// directly reports whether reading a window's rows from the files is cheaper than packing them.
func (l *layout) directly(needs []*need, limit int64) bool {
	all := make([][]uint32, len(needs))
	packed := int64(0)
	for k, n := range needs {
		all[k] = n.read
		packed += 2 * (l.bytesOf(n) + gapBytes*(1+l.bytesOf(n)/pieceBytes))
	}
	packed += l.cost(all)
	direct := int64(0)
	for _, g := range l.groups(needs, limit) {
		direct += l.cost(readsOf(g))
	}
	return direct <= packed
}

// cost is costOf of the pieces with the rows of sorted lists.
func (l *layout) cost(lists [][]uint32) (n int64) {
	g := &grower{of: l, each: func(p piece) { n += int64(p.bytes) + gapBytes }}
	merged(lists, g.add)
	g.finish()
	return n
}

func readsOf(needs []*need) [][]uint32 {
	lists := make([][]uint32, len(needs))
	for k, n := range needs {
		lists[k] = n.read
	}
	return lists
}

// group reads the rows that some batches miss from the files.
func (r *reader) group(needs []*need) ([]*staged, error) {
	out, left := make([]*staged, len(needs)), readsOf(needs)
	for k, n := range needs {
		b, err := r.memory.take(r.layout.bytesOf(n))
		if err != nil {
			return nil, err
		}
		out[k] = &staged{n, b}
	}
	width := r.layout.width
	return out, r.layout.sweep(r.e, r.buffers, r.layout.piecesOf(left), r.stats, func(p *piece, b []byte) error {
		for k := range left {
			for ; len(left[k]) > 0 && left[k][0] < p.hi; left[k] = left[k][1:] {
				i := len(needs[k].read) - len(left[k])
				copy(out[k].rows[i*width:], r.layout.row(p, b, left[k][0]))
			}
		}
		if r.ended.Load() {
			return errEnded
		}
		return nil
	})
}

// unpack reads the rows that a batch misses from where they were packed.
func (r *reader) unpack(n *need, from *packed, k int) (*staged, error) {
	b, err := r.memory.take(r.layout.bytesOf(n))
	if err != nil {
		return nil, err
	}
	const each = 4 * pieceBytes
	list := make([]request, 0, len(b)/each+1)
	for at := 0; at < len(b); at += each {
		end := min(at+each, len(b))
		list = append(list, request{file: from.f, at: from.at[k] + int64(at), buf: b[at:end], need: end - at})
		r.stats.read(end - at)
		if failed := r.e.start(&list[len(list)-1]); failed != nil {
			err, list = failed, list[:len(list)-1]
			break
		}
	}
	for i := range list { // all have to end before their memory is used for others
		if failed := finish(r.e, &list[i]); err == nil {
			err = failed
		}
	}
	return &staged{n, b}, err
}
