package serve

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"starling/graph"
)

// Near is a vertex and how alike its embedding is: the cosine of the angle between
// the two, 0 where one of them is all zeros.
type Near struct {
	Vertex uint32
	Cosine float32
}

// Nearest are the k vertices whose embeddings are most like v's, the most alike
// first, v itself left out; of equals the lower number comes first. It looks at all
// vertices, on all cores: exact, at the cost of reading every embedding.
func (a *Answers) Nearest(v uint32, k int) []Near {
	e, _ := a.embeddings()
	of, length := e.of(v), a.lengths[v]
	var all struct {
		sync.Mutex
		near []Near
	}
	graph.Parallel(int64(a.Vertices()), 1<<14, func(lo, hi int64) {
		best := make([]Near, 0, 2*k+16)
		least := float32(math.Inf(-1)) // below it nobody comes among the k best
		for u := lo; u < hi; u++ {
			if uint32(u) == v {
				continue
			}
			n := Near{Vertex: uint32(u)}
			if l := length * a.lengths[u]; l > 0 {
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
		all.near = nearest(append(all.near, best...), k)
		all.Unlock()
	})
	return all.near
}

// nearest are the k best, in order.
func nearest(n []Near, k int) []Near {
	slices.SortFunc(n, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Vertex, b.Vertex))
	})
	return n[:min(k, len(n))]
}

// dot is in four sums, which the processor can add at the same time.
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
