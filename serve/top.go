package serve

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"starling/graph"
	"starling/tensor"
)

// TopOptions say which partners of which vertices are looked for.
type TopOptions struct {
	K        int
	Vertices []string // by the names they had before import; none: all
	Relation string   // of a typed graph; "": the only one that the model predicts
	Known    bool     // partners may be linked already
}

// TopScores are the likeliest partners of vertices, best first; of equal ones the vertex with the smaller number. Every
// vertex is compared with all that may be its partner, a block at a time, and only the best are kept, so that memory does
// not grow with the number of pairs.
func (t *Trained) TopScores(dev tensor.Device, d *graph.Dataset, o TopOptions) (*PairScores, error) {
	s, err := t.scorer(d, o.Relation)
	if err != nil {
		return nil, err
	}
	vertices, err := s.asked(o.Vertices)
	if err != nil {
		return nil, err
	}
	if err := s.run(dev, d); err != nil {
		return nil, err
	}
	known := map[uint32][]uint32{}
	if !o.Known {
		known = s.linked(d, vertices)
	}
	p := &PairScores{}
	for _, u := range vertices {
		for _, x := range s.best(u, o.K, known[u]) {
			p.Left, p.Right = append(p.Left, s.sources.name(u)), append(p.Right, s.targets.name(x.vertex))
			p.Values = append(p.Values, x.score)
		}
		if err := dev.Err(); err != nil {
			return nil, err
		}
	}
	chances(p.Values)
	return p, dev.Err()
}

// best are the k likeliest partners of a vertex, best first, without itself and those that are known.
func (s *pairScorer) best(u uint32, k int, known []uint32) []partner {
	best := bestOf{k: k}
	left, right := make([]uint32, 0, scoreBlock), make([]uint32, 0, scoreBlock)
	for lo := 0; lo < s.targets.count && s.dev.Err() == nil; lo += scoreBlock {
		left, right = left[:0], right[:0]
		for i := lo; i < min(lo+scoreBlock, s.targets.count); i++ {
			w := s.targets.first + uint32(i)
			if _, is := slices.BinarySearch(known, w); w != u && !is {
				left, right = append(left, u), append(right, w)
			}
		}
		for i, score := range s.scores(left, right) {
			best.add(partner{right[i], score})
		}
	}
	return best.sorted()
}

// asked are the vertices of names.
func (s *pairScorer) asked(names []string) (list []uint32, err error) {
	for _, name := range names {
		v, ok := s.sources.find(vertexName(name))
		if !ok {
			return nil, &graph.InputError{Field: "--vertex", Found: fmt.Sprintf("%.80q", name),
				Want: "a vertex that pairs begin at", Fix: "vertices have the names they had before import"}
		}
		list = append(list, v)
	}
	for i := 0; len(names) == 0 && i < s.sources.count; i++ {
		list = append(list, s.sources.first+uint32(i))
	}
	return list, nil
}

// linked are the vertices that some have edges with, ascending: of the relation, or of a graph without types in any
// direction.
func (s *pairScorer) linked(d *graph.Dataset, vertices []uint32) map[uint32][]uint32 {
	known := make(map[uint32][]uint32, len(vertices))
	for _, u := range vertices {
		known[u] = nil
	}
	add := func(u, w uint32) {
		if list, asked := known[u]; asked {
			known[u] = append(list, w)
		}
	}
	g := d.Graph
	for i := range s.targets.count {
		w := s.targets.first + uint32(i)
		row := g.Neighbors(w)
		if s.relation >= 0 {
			lo, hi := g.Relation(w, s.relation)
			row = g.Indices[lo:hi]
		}
		for _, u := range row {
			if add(u, w); s.relation < 0 {
				add(w, u)
			}
		}
	}
	for _, list := range known {
		slices.Sort(list)
	}
	return known
}

// partner is a vertex and the score of a pair with it.
type partner struct {
	vertex uint32
	score  float32
}

// worse is the order of partners, worst first.
func worse(a, b partner) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(b.vertex, a.vertex))
}

// bestOf keeps the best k: a heap with the worst of them on top.
type bestOf struct {
	k    int
	list []partner
}

func (b *bestOf) Len() int           { return len(b.list) }
func (b *bestOf) Less(i, j int) bool { return worse(b.list[i], b.list[j]) < 0 }
func (b *bestOf) Swap(i, j int)      { b.list[i], b.list[j] = b.list[j], b.list[i] }
func (b *bestOf) Push(x any)         { b.list = append(b.list, x.(partner)) }

// Pop is heap.Interface's.
func (b *bestOf) Pop() any {
	last := b.list[len(b.list)-1]
	b.list = b.list[:len(b.list)-1]
	return last
}

func (b *bestOf) add(x partner) {
	switch {
	case len(b.list) < b.k:
		heap.Push(b, x)
	case worse(b.list[0], x) < 0:
		b.list[0] = x
		heap.Fix(b, 0)
	}
}

// sorted are the best, best first.
func (b *bestOf) sorted() []partner {
	slices.SortFunc(b.list, func(x, y partner) int { return worse(y, x) })
	return b.list
}
