package sample

import (
	"runtime"
	"sync"
	"sync/atomic"

	"starling/graph"
	"starling/rng"
)

// coverage is how often a vertex is drawn, on average, before training, to
// estimate GraphSAINT's probabilities; the paper's own value.
const coverage = 50

// saintWalks is GraphSAINT's random-walk sampler: walks start at vertices drawn
// uniformly and follow random in-edges; a batch's vertices are all they visit. The
// probabilities have no closed form and are counted over batches drawn before
// training, as in the paper (§3.2).
type saintWalks struct {
	g             *graph.CSR
	walks, length int
	seen          []uint32 // how often a vertex was drawn
	together      []uint32 // how often both ends of an edge were
	drawn         float64  // batches
}

// NewSAINTWalks starts size walks of length steps a batch.
func NewSAINTWalks(g *graph.CSR, roots []uint32, size, length int, seed uint64) (*SAINT, error) {
	s, d := uncounted(g, roots, size, length, seed)
	d.count(rng.New(seed).Fold(useCount), coverage*s.batches)
	return s, nil
}

// UncountedSAINTWalks takes the memory of NewSAINTWalks and draws the same batches, whose
// weights mean nothing: the counting, which takes a while, is left out.
func UncountedSAINTWalks(g *graph.CSR, roots []uint32, size, length int, seed uint64) *SAINT {
	s, _ := uncounted(g, roots, size, length, seed)
	return s
}

func uncounted(g *graph.CSR, roots []uint32, size, length int, seed uint64) (*SAINT, *saintWalks) {
	d := &saintWalks{g: g, walks: size, length: length, drawn: 1, seen: make([]uint32, g.Nodes()), together: make([]uint32, g.Edges())}
	return newSAINT(g, roots, d, size*(length+1), seed), d
}

func (s *saintWalks) vertices(key rng.Key, take func(uint32)) {
	n := s.g.Nodes()
	if n == 0 {
		return
	}
	for i := range uint64(s.walks) {
		walk := key.Fold(i)
		v := uint32(walk.IntN(0, n))
		take(v)
		for step := range s.length {
			next := s.g.Neighbors(v)
			if len(next) == 0 {
				break
			}
			v = next[walk.IntN(uint64(step)+1, len(next))]
			take(v)
		}
	}
}

// count draws batches on all cores and counts; sums do not depend on who adds.
func (s *saintWalks) count(key rng.Key, batches int) {
	s.drawn = float64(batches)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), batches) {
		wg.Go(func() {
			t := newTable(s.g.Nodes())
			var list []uint32
			for {
				i := next.Add(1) - 1
				if i >= int64(batches) {
					return
				}
				list = list[:0]
				t.begin()
				s.vertices(key.Fold(uint64(i)), func(v uint32) { _, list = t.add(list, v) })
				s.countBatch(t, list)
			}
		})
	}
	wg.Wait()
}

func (s *saintWalks) countBatch(t *table, list []uint32) {
	for _, v := range list {
		atomic.AddUint32(&s.seen[v], 1)
		for e := s.g.Indptr[v]; e < s.g.Indptr[v+1]; e++ {
			if _, ok := t.find(s.g.Indices[e]); ok {
				atomic.AddUint32(&s.together[e], 1)
			}
		}
	}
}

// What was never seen before training, and yet is drawn, counts as seen once.
func (s *saintWalks) vertex(v uint32) float64 { return float64(max(s.seen[v], 1)) / s.drawn }

func (s *saintWalks) edge(_, _ uint32, edge int64) float64 {
	return float64(max(s.together[edge], 1)) / s.drawn
}
