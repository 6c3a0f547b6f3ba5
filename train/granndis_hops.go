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
	load        []int64          // edges of each worker of the server; -1: it has no vertices
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

func newSurroundings(l *lookup, pick *sampling) (*surroundings, error) {
	each := l.part.Book.Parts / max(l.part.Book.Servers, 1)
	first := l.part.Book.Server(l.end.Rank()) * each
	s := &surroundings{lookup: l, first: first, last: first + each, where: map[uint32]int{}, hopOf: map[uint32]int{}, marks: map[uint32]mark{},
		links: map[uint32]int64{}, pick: pick, needed: map[uint32]bool{}}
	in := *l.part.In
	in.Indices = make([]uint32, len(in.Indices))
	own := hop{in: &in}
	for e, u := range l.part.In.Indices {
		own.in.Indices[e] = l.global(u)
	}
	for v := range uint32(l.part.Core()) {
		own.ids = append(own.ids, l.global(v))
	}
	s.hops = []hop{own}
	if err := s.grown.begin(s); err != nil {
		return nil, err
	}
	edges, err := l.agree(float64(own.in.Edges()), float64(len(own.ids)))
	for q := s.first; q < s.last && err == nil; q++ {
		s.load = append(s.load, int64(edges[q][0]))
		if edges[q][1] == 0 { // a worker without own vertices stays without
			s.load[q-s.first] = -1
		}
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

// place shares vertices out over the workers and returns this worker's. Findings are
// by vertex; all workers of the server have the same.
func (s *surroundings) place(all []finding) (mine []uint32) {
	var wanted []want
	for i, f := range all {
		if i == 0 || f.v != all[i-1].v {
			wanted = append(wanted, want{weight: int64(f.degree) + 1, need: make([]uint32, len(s.load))})
			s.marks[f.v] = f.mark
		}
		wanted[len(wanted)-1].need[f.worker] = f.need
	}
	at := shareOut(wanted, s.load)
	i := -1
	for j, f := range all {
		if j > 0 && f.v == all[j-1].v {
			continue
		}
		i++
		s.where[f.v], s.hopOf[f.v] = s.first+at[i], len(s.hops)
		if s.where[f.v] == s.end.Rank() {
			mine = append(mine, f.v)
		}
	}
	return mine
}

// want is a vertex to be shared out: its edges, and how many of each worker's edges
// lead to it.
type want struct {
	weight int64
	need   []uint32
}

// shareOut gives each vertex to the worker that needs it most, unless that one then
// had over 5% more than its share of all edges; then to the one with fewest. load is
// brought up to date; workers of load -1 get nothing.
func shareOut(vertices []want, load []int64) []int {
	var sum, workers int64
	for _, l := range load {
		if l >= 0 {
			sum, workers = sum+l, workers+1
		}
	}
	for _, v := range vertices {
		sum += v.weight
	}
	limit := int64(1.05*float64(sum)/float64(max(workers, 1))) + 1
	at := make([]int, len(vertices))
	for i, v := range vertices {
		most, least := -1, -1
		for w, l := range load {
			if l < 0 {
				continue
			}
			if most < 0 || v.need[w] > v.need[most] {
				most = w
			}
			if least < 0 || l < load[least] {
				least = w
			}
		}
		if load[most]+v.weight > limit {
			most = least
		}
		load[most] += v.weight
		at[i] = most
	}
	return at
}

// copies are those of this worker if k layers are preloaded: hop j in depth k-j.
func (s *surroundings) copies(k int) *copies {
	c := &copies{lookup: s.lookup, marks: s.marks, first: s.first, last: s.last, in: &graph.CSR{Indptr: []int64{0}, EdgeDim: s.part.In.EdgeDim}}
	for j, h := range s.hops[:min(k+1, len(s.hops))] {
		if j > 0 {
			c.ids = append(c.ids, h.ids...)
			c.depth = append(c.depth, slices.Repeat([]int{k - j}, len(h.ids))...)
		}
		if j == k && j > 0 {
			break // of these only the features
		}
		for _, p := range h.in.Indptr[1:] {
			c.in.Indptr = append(c.in.Indptr, int64(len(c.in.Indices))+p)
		}
		c.in.Indices, c.in.Weights = append(c.in.Indices, h.in.Indices...), append(c.in.Weights, h.in.Weights...)
		c.in.EdgeFeatures = append(c.in.EdgeFeatures, h.in.EdgeFeatures...)
		c.kept = append(c.kept, h.kept...)
	}
	if len(c.in.Weights) == 0 {
		c.in.Weights = nil
	}
	return c
}
