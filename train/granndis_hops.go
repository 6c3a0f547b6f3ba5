package train

import (
	"cmp"
	"encoding/binary"
	"slices"

	"starling/graph"
)

// surroundings are what lies beyond a server's border, hop by hop: hop 1 are the
// in-neighbours, on other servers, of the server's own vertices, hop 2 those of hop 1,
// and so on. Every vertex is given to one worker of the server, which will compute it
// for all of them.
type surroundings struct {
	*lookup
	first, last int // workers of this server: first to last-1
	hops        []hop
	where       map[uint32]int // who has a vertex from beyond, of the workers of this server
	hopOf       map[uint32]int
	marks       map[uint32]mark  // of those vertices
	size        []size           // of the workers of the server
	works       []work           // of layers
	k           int              // layers that will be preloaded; -1: not known yet
	received    []float64        // by worker of the server, the share of its hop 1 that is received all the same
	links       map[uint32]int64 // edges into the server that were seen, for sampling
	pick        *sampling        // nil: everything
	grown       growth
	needed      map[uint32]bool // rows of other workers of the server
}

// hop is this worker's share of one; hop 0 are its own vertices.
type hop struct {
	ids  []uint32   // ascending
	in   *graph.CSR // in-edges by number in the partition, once they are known
	kept []float64  // the share of them that sampling left, of each vertex; nil: all
}

// size is how many vertices and in-edges a worker has of its own.
type size struct{ vertices, edges int64 }

// newSurroundings knows of nothing beyond the border yet. k layers will be preloaded;
// -1: that is to be found out.
func newSurroundings(l *lookup, k int, works []work, pick *sampling) (*surroundings, error) {
	first, last := l.server()
	s := &surroundings{lookup: l, first: first, last: last, where: map[uint32]int{}, hopOf: map[uint32]int{}, marks: map[uint32]mark{},
		links: map[uint32]int64{}, k: k, works: works, pick: pick, needed: map[uint32]bool{}}
	own := hop{in: l.edges()}
	for v := range uint32(l.part.Core()) {
		own.ids = append(own.ids, l.global(v))
	}
	s.hops = []hop{own}
	if err := s.grown.begin(s); err != nil {
		return nil, err
	}
	all, err := l.agree(float64(len(own.ids)), float64(own.in.Edges()))
	for q := s.first; q < s.last && err == nil; q++ {
		s.size = append(s.size, size{int64(all[q][0]), int64(all[q][1])})
	}
	return s, err
}

// beyond tells whether another server owns a vertex.
func (s *surroundings) beyond(v uint32) bool {
	at := s.part.Book.Offsets
	return int64(v) < at[s.first] || int64(v) >= at[s.last]
}

// holder is the worker that computes a vertex for this server.
func (s *surroundings) holder(v uint32) int {
	if q, ok := s.where[v]; ok {
		return q
	}
	return s.part.Book.Owner(v)
}

// next finds one more hop. It reports whether any server has grown by it.
func (s *surroundings) next() (bool, error) {
	if err := s.edgesOf(len(s.hops) - 1); err != nil {
		return false, err
	}
	last := &s.hops[len(s.hops)-1]
	fresh, err := s.marked(s.fresh(last))
	if err != nil {
		return false, err
	}
	news, err := s.share(fresh)
	if err != nil {
		return false, err
	}
	if s.pick != nil {
		if news, err = s.sample(last, news); err != nil {
			return false, err
		}
	}
	s.hops = append(s.hops, hop{ids: s.place(news)})
	s.grown.add(s)
	found, err := s.agree(float64(len(news)))
	any := slices.ContainsFunc(found, func(n []float64) bool { return n[0] > 0 })
	if err == nil && !any {
		s.hops = s.hops[:len(s.hops)-1]
	}
	return any, err
}

// edgesOf looks up the in-edges of a hop, if they are not known.
func (s *surroundings) edgesOf(i int) (err error) {
	if s.hops[i].in == nil {
		s.hops[i].in, err = s.inEdges(s.hops[i].ids)
	}
	return err
}

// finding is a vertex from beyond and how many edges of a worker's hop it is at the
// other end of.
type finding struct {
	v      uint32
	need   uint32
	worker int // of the server
	mark
}

const findingBytes = 8 + markBytes

// fresh are the vertices that a hop's edges lead to for the first time, ascending.
func (s *surroundings) fresh(h *hop) (out []finding) {
	need := map[uint32]uint32{}
	for _, u := range h.in.Indices {
		if s.beyond(u) {
			need[u]++
		}
	}
	for v, n := range need {
		if _, ok := s.where[v]; !ok {
			out = append(out, finding{v: v, need: n})
		}
	}
	slices.SortFunc(out, func(a, b finding) int { return cmp.Compare(a.v, b.v) })
	return out
}

// marked adds the marks of vertices, from the part where it has them.
func (s *surroundings) marked(f []finding) ([]finding, error) {
	var ask []uint32
	var to []int
	for i := range f {
		if at, ok := slices.BinarySearch(s.part.Halo, f[i].v); ok {
			f[i].mark = s.markOf(uint32(s.part.Core() + at))
		} else {
			ask, to = append(ask, f[i].v), append(to, i)
		}
	}
	got, err := s.lookup.marks(ask)
	for i := range got {
		f[to[i]].mark = got[i]
	}
	return f, err
}

// share tells the other workers of the server what this one found, and returns what
// all of them found, by vertex and worker.
func (s *surroundings) share(mine []finding) (all []finding, err error) {
	var b []byte
	for _, f := range mine {
		b, _ = binary.Append(b, binary.LittleEndian, []uint32{f.v, f.need})
		b = f.mark.append(b)
	}
	in, err := s.toServer(s.first, s.last, b)
	if err != nil {
		return nil, err
	}
	for q, b := range in {
		r := &reader{b: b}
		for range len(b) / findingBytes {
			all = append(all, finding{v: r.number(), need: r.number(), worker: q - s.first, mark: r.mark()})
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int { return cmp.Compare(a.v, b.v) })
	return all, nil
}

// copies are those of this worker if k layers are preloaded.
func (s *surroundings) copies(k int) *copies {
	c := &copies{lookup: s.lookup, marks: s.marks, first: s.first, last: s.last, in: &graph.CSR{Indptr: []int64{0}, EdgeDim: s.part.In.EdgeDim}}
	own := &s.hops[0]
	for i := range own.ids {
		c.addEdges(own, i)
	}
	for depth := k - 1; depth >= 0; depth-- {
		for j := 1; j <= min(k, len(s.hops)-1); j++ {
			h := &s.hops[j]
			for i, v := range h.ids {
				if s.depth(k, j, v) != depth {
					continue
				}
				c.ids, c.depth = append(c.ids, v), append(c.depth, depth)
				if depth > 0 { // else only the features are here
					c.addEdges(h, i)
				}
			}
		}
	}
	return c
}

// depth is how many layers of a vertex of hop j are computed here if k are preloaded.
func (s *surroundings) depth(k, j int, v uint32) int {
	if j == 1 && k > 1 && s.receives(v) {
		return k - 2
	}
	return k - j
}

// addEdges adds the in-edges of row i of a hop.
func (c *copies) addEdges(h *hop, i int) {
	lo, hi := h.in.Indptr[i], h.in.Indptr[i+1]
	c.in.Indices = append(c.in.Indices, h.in.Indices[lo:hi]...)
	if h.in.Weights != nil {
		c.in.Weights = append(c.in.Weights, h.in.Weights[lo:hi]...)
	}
	c.in.EdgeFeatures = append(c.in.EdgeFeatures, h.in.EdgeRows(lo, hi)...)
	if h.kept != nil {
		c.kept = append(c.kept, h.kept[i])
	}
	c.in.Indptr = append(c.in.Indptr, int64(len(c.in.Indices)))
}
