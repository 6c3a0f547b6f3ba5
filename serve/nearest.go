package serve

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"starling/graph"
)

// Similar is a vertex and the similarity of its embedding: the cosine of the angle between
// the two, 0 if one of them is all zeros.
type Similar struct {
	Vertex uint32
	Cosine float32
}

// Nearest are the k vertices of v's type whose embeddings are most similar to v's, the most
// similar first, without v itself; of equals the lower number comes first. It compares all
// of them, on all cores: exact, at the cost of reading every embedding.
func (a *Answers) Nearest(v uint32, k int) []Similar {
	e, _ := a.embeddings()
	of, norm := e.of(v), a.norms[v]
	var all struct {
		sync.Mutex
		best []Similar
	}
	among := a.kindOf(v)
	graph.Parallel(int64(among.count), 1<<14, func(lo, hi int64) {
		best := make([]Similar, 0, 2*k+16)
		least := float32(math.Inf(-1)) // below it none is among the k best
		for u := lo + int64(among.first); u < hi+int64(among.first); u++ {
			if uint32(u) == v {
				continue
			}
			n := Similar{Vertex: uint32(u)}
			if l := norm * a.norms[u]; l > 0 {
				n.Cosine = dot(of, e.of(uint32(u))) / l
			}
			if n.Cosine <= least { // of equals the earlier stay
				continue
			}
			if best = append(best, n); len(best) == cap(best) {
				best = nearest(best, k)
				least = best[k-1].Cosine
			}
		}
		all.Lock()
		all.best = nearest(append(all.best, best...), k)
		all.Unlock()
	})
	return all.best
}

// nearest are the k best, in order.
func nearest(n []Similar, k int) []Similar {
	slices.SortFunc(n, func(a, b Similar) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Vertex, b.Vertex))
	})
	return n[:min(k, len(n))]
}

// dot has four partial sums, for instruction-level parallelism.
func dot(a, b []float32) float32 {
	var s [4]float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s[0] += a[i] * b[i]
		s[1] += a[i+1] * b[i+1]
		s[2] += a[i+2] * b[i+2]
		s[3] += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s[0] += a[i] * b[i]
	}
	return s[0] + s[1] + s[2] + s[3]
}
