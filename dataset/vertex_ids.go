package dataset

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"sync/atomic"
)

// idMap turns the ids of files into vertices 0..n-1.
type idMap struct {
	n     int
	ints  []int64  // ids of the vertices, when they are numbers other than 0..n-1
	texts []string // or when they are names
	find  func(id string) (uint32, bool)
}

// name is the id of vertex v in the files.
func (m *idMap) name(v int) string {
	switch {
	case m.ints != nil:
		return strconv.FormatInt(m.ints[v], 10)
	case m.texts != nil:
		return m.texts[v]
	}
	return strconv.Itoa(v)
}

// numericIDs numbers ids that are all whole numbers below 2^32: as they are if
// they are 0..N-1 or opt.Nodes says so, else by rank.
func numericIDs(e *edges, ranks *ranks, t *tables, opt ImportOptions) (*idMap, error) {
	extra, err := t.numbers()
	if err != nil {
		return nil, err
	}
	if e.total > 0 && opt.Nodes == 0 {
		inEdges := func(id string) bool {
			x, ok := smallNumber([]byte(id))
			return ok && ranks.has(x)
		}
		if err := t.match(inEdges, func() string { return fmt.Sprint(ranks.list()[0]) }); err != nil {
			return nil, err
		}
	}
	ranks.add(extra)
	most := ranks.count()
	if opt.Nodes > 0 {
		if most >= opt.Nodes {
			return nil, badFile("", "ids", fmt.Sprint(most), fmt.Sprintf("0 to %d, as --nodes says", opt.Nodes-1),
				"give a larger --nodes or leave it out")
		}
		return asTheyAre(int(opt.Nodes)), nil
	}
	if ranks.n == int(most)+1 {
		return asTheyAre(ranks.n), nil
	}
	e.to = ranks.of
	return &idMap{n: ranks.n, ints: ranks.list(), find: func(id string) (uint32, bool) {
		x, ok := smallNumber([]byte(id))
		if !ok || !ranks.has(x) {
			return 0, false
		}
		return ranks.of(x), true
	}}, nil
}

func asTheyAre(n int) *idMap {
	return &idMap{n: n, find: func(id string) (uint32, bool) {
		x, ok := smallNumber([]byte(id))
		return x, ok && int64(x) < int64(n)
	}}
}

// ranks is a set of numbers: one bit each, in pages that exist only where there
// are any, and the count of those before every word. Numbers may be added on all
// cores until they are counted.
type ranks struct {
	pages [1 << 16]atomic.Pointer[rankPage]
	n     int
}

const pageBits = 1 << 16

type rankPage struct {
	bits   [pageBits / 64]uint64
	before [pageBits / 64]uint32
}

func (r *ranks) add(ids []uint32) {
	if r == nil {
		return // not needed
	}
	for _, x := range ids {
		p := r.pages[x/pageBits].Load()
		if p == nil {
			r.pages[x/pageBits].CompareAndSwap(nil, &rankPage{})
			p = r.pages[x/pageBits].Load()
		}
		// Most are there already, and a read costs far less than an atomic write.
		word, bit := &p.bits[x%pageBits/64], uint64(1)<<(x%64)
		if atomic.LoadUint64(word)&bit == 0 {
			atomic.OrUint64(word, bit)
		}
	}
}

// count numbers the members and returns the largest, -1 if there is none.
func (r *ranks) count() (most int64) {
	most, r.n = -1, 0
	for i := range r.pages {
		p := r.pages[i].Load()
		if p == nil {
			continue
		}
		for j, w := range p.bits {
			p.before[j] = uint32(r.n)
			r.n += bits.OnesCount64(w)
			if w != 0 {
				most = int64(i)*pageBits + int64(j)*64 + int64(bits.Len64(w)) - 1
			}
		}
	}
	return most
}

func (r *ranks) has(x uint32) bool {
	p := r.pages[x/pageBits].Load()
	return p != nil && p.bits[x%pageBits/64]>>(x%64)&1 == 1
}

// of is how many members are smaller.
func (r *ranks) of(x uint32) uint32 {
	p := r.pages[x/pageBits].Load()
	w := x % pageBits / 64
	return p.before[w] + uint32(bits.OnesCount64(p.bits[w]&(1<<(x%64)-1)))
}

func (r *ranks) list() []int64 {
	out := make([]int64, 0, r.n)
	for i := range r.pages {
		p := r.pages[i].Load()
		if p == nil {
			continue
		}
		for j, w := range p.bits {
			for ; w != 0; w &= w - 1 {
				out = append(out, int64(i)*pageBits+int64(j)*64+int64(bits.TrailingZeros64(w)))
			}
		}
	}
	return out
}

// namedIDs numbers names in order of first appearance, or by value if all of them
// turn out to be whole numbers after all (too large or negative for numericIDs).
func namedIDs(e *edges, t *nameTable, tab *tables) (*idMap, error) {
	if e.total > 0 {
		inEdges := func(id string) bool { _, ok := t.find([]byte(id)); return ok }
		first := func() string { names, _ := t.inOrder(); return names[0] }
		if err := tab.match(inEdges, first); err != nil {
			return nil, err
		}
	}
	seen := uint64(len(e.blocks)) << 32
	for _, id := range tab.ids() {
		if _, ok := t.number([]byte(id), seen); !ok {
			return nil, errTooManyNames
		}
		seen++
	}
	names, to := t.inOrder()
	values, numbers := wholeNumbers(names)
	if numbers {
		sortByValue(values, to)
	}
	e.to = func(x uint32) uint32 { return to[x] }
	m := &idMap{n: len(names), find: func(id string) (uint32, bool) {
		x, ok := t.find([]byte(id))
		if !ok {
			return 0, false
		}
		return to[x], true
	}}
	if numbers {
		m.ints = values
	} else {
		m.texts = names
	}
	return m, nil
}

// wholeNumbers reads every name as a number; false if one is not written as one.
func wholeNumbers(names []string) ([]int64, bool) {
	values := make([]int64, len(names))
	for v, name := range names {
		x, err := strconv.ParseInt(name, 10, 64)
		if err != nil || strconv.FormatInt(x, 10) != name {
			return nil, false
		}
		values[v] = x
	}
	return values, true
}

// sortByValue sorts values and updates to accordingly.
func sortByValue(values []int64, to []uint32) {
	order := make([]uint32, len(values))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(values[a], values[b]) })
	rank := make([]uint32, len(values))
	for i, v := range order {
		rank[v] = uint32(i)
	}
	slices.Sort(values)
	for i, v := range to {
		to[i] = rank[v]
	}
}
