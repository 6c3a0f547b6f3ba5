package cpu

import (
	"slices"
	"sort"
	"unsafe"
)

// region is a long row of addresses, with memory only where it has been used. Blocks are
// cut from the first gap that is large enough, and gaps that touch become one, so that what is in
// use lies together whatever the sizes: layers of an epoch, batches of all lengths. It ends
// up with little more than is in use at the widest moment. Blocks kept by size, for
// requests of about that size only, took a tenth more of three layers of attention, and
// twice as much of mini-batches.
type region struct {
	bytes []byte
	gaps  []span // between blocks, ascending
	top   int    // where blocks have been up to
	ready int    // up to where the kernel lets us write
}

// span is bytes from and up to a place in a region.
type span struct{ from, to int }

// pageBytes is what blocks of a region are multiples of.
const pageBytes = 4096

// readyStep is how many bytes are made ready at once.
const readyStep = 64 << 20

// newRegion holds at least n bytes.
func newRegion(n int) (*region, error) {
	b, err := reserve(n)
	return &region{bytes: b}, err
}

// take cuts a block of n bytes, of which the first used may hold anything, the others
// zeros. It is nil where the region is full.
func (r *region) take(n int) (block []byte, used int, err error) {
	for i, g := range r.gaps {
		if g.to-g.from >= n {
			if r.gaps[i].from += n; r.gaps[i].from == g.to {
				r.gaps = slices.Delete(r.gaps, i, i+1)
			}
			return r.block(g.from, n), n, nil
		}
	}
	from, last := r.top, len(r.gaps)-1
	before := last >= 0 && r.gaps[last].to == r.top
	if before {
		from = r.gaps[last].from
	}
	if n > len(r.bytes)-from {
		return nil, 0, nil
	}
	if err := r.makeReady(from + n); err != nil {
		return nil, 0, err
	}
	if before {
		r.gaps = r.gaps[:last]
	}
	used, r.top = r.top-from, from+n
	return r.block(from, n), used, nil
}

func (r *region) block(from, n int) []byte { return r.bytes[from : from+n : from+n] }

// makeReady asks for addresses up to a place.
func (r *region) makeReady(to int) error {
	if to <= r.ready {
		return nil
	}
	to = min((to+readyStep-1)/readyStep*readyStep, len(r.bytes))
	if err := writable(r.bytes[r.ready:to]); err != nil {
		return err
	}
	r.ready = to
	return nil
}

// holds reports whether a block is one of this region's.
func (r *region) holds(block []byte) bool {
	at, start := uintptr(unsafe.Pointer(&block[0])), uintptr(unsafe.Pointer(&r.bytes[0]))
	return at >= start && at-start < uintptr(len(r.bytes))
}

// give makes a block a gap again.
func (r *region) give(block []byte) {
	from := int(uintptr(unsafe.Pointer(&block[0])) - uintptr(unsafe.Pointer(&r.bytes[0])))
	g := span{from, from + len(block)}
	i := sort.Search(len(r.gaps), func(i int) bool { return r.gaps[i].from > from })
	if i < len(r.gaps) && r.gaps[i].from == g.to {
		g.to = r.gaps[i].to
		r.gaps = slices.Delete(r.gaps, i, i+1)
	}
	if i > 0 && r.gaps[i-1].to == g.from {
		r.gaps[i-1].to = g.to
		return
	}
	r.gaps = slices.Insert(r.gaps, i, g)
}
