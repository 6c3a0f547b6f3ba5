package sample

import (
	"math"
	"math/bits"

	"starling/graph"
	"starling/rng"
)

// chooser picks some of a vertex's in-edges. Positions are of edges in the graph.
type chooser struct {
	g     *graph.CSR
	order *graph.RowOrder // positions are in this order of rows; nil: in the graph's own
	byPos []float32
	seen  []uint64 // a bit for every place in a long list of neighbours
	sums  []float64
	best  []priority
}

// weights returns the weights of a vertex's edges, by position.
func (c *chooser) weights(first int64, degree int) []float32 {
	w := c.g.Weights[first : first+int64(degree)]
	if c.order == nil {
		return w
	}
	c.byPos = c.byPos[:0]
	for i := range degree {
		c.byPos = append(c.byPos, w[c.order.At(first+int64(i))])
	}
	return c.byPos
}

// all takes every edge.
func (c *chooser) all(to []int64, first int64, degree int) []int64 {
	for i := range degree {
		to = append(to, first+int64(i))
	}
	return to
}

// distinct takes k of degree edges, every such set with the same probability, by
// Floyd's method: one draw per edge, and no list to shuffle. Which positions are
// taken is kept in a register, or in bits that are cleared after.
func (c *chooser) distinct(to []int64, key rng.Key, first int64, degree, k int) []int64 {
	if degree > 64 {
		return c.distinctOfMany(to, key, first, degree, k)
	}
	var taken uint64
	for j := uint64(degree - k); j < uint64(degree); j++ {
		at, _ := bits.Mul64(key.Uint64(j), j+1)
		if taken>>(at&63)&1 != 0 {
			at = j
		}
		taken |= 1 << (at & 63)
		to = append(to, first+int64(at))
	}
	return to
}

func (c *chooser) distinctOfMany(to []int64, key rng.Key, first int64, degree, k int) []int64 {
	for len(c.seen) < (degree+63)/64 {
		c.seen = append(c.seen, 0)
	}
	from := len(to)
	for j := uint64(degree - k); j < uint64(degree); j++ {
		at, _ := bits.Mul64(key.Uint64(j), j+1)
		if c.seen[at>>6]>>(at&63)&1 != 0 {
			at = j
		}
		c.seen[at>>6] |= 1 << (at & 63)
		to = append(to, first+int64(at))
	}
	for _, p := range to[from:] {
		c.seen[(p-first)>>6] = 0
	}
	return to
}

// repeated takes k of degree edges with replacement.
func (c *chooser) repeated(to []int64, key rng.Key, first int64, degree, k int) []int64 {
	for i := range k {
		to = append(to, first+int64(key.IntN(uint64(i), degree)))
	}
	return to
}

// repeatedByWeight takes k edges, each with a probability in proportion to its
// weight, and returns the sum of all weights. It takes none where that is zero.
func (c *chooser) repeatedByWeight(to []int64, key rng.Key, first int64, degree, k int) ([]int64, float64) {
	c.sums = c.sums[:0]
	total := 0.0
	for _, w := range c.weights(first, degree) {
		total += float64(w)
		c.sums = append(c.sums, total)
	}
	if total == 0 {
		return to, 0
	}
	for i := range k {
		to = append(to, first+int64(below(c.sums, key.Float64(uint64(i))*total)))
	}
	return to, total
}

// priority is the priority of an edge in priority sampling.
type priority struct {
	value float64
	at    uint32
}

// distinctByWeight takes k < degree edges by priority sampling (Duffield, Lund and
// Thorup, J. ACM 2007): edge e has the priority w_e/u_e, with u_e uniform in (0,1];
// the k highest are taken, and each counts max(w_e, τ), where τ is the next
// highest. These are unbiased estimates of the weights, edge by edge. An edge
// without weight is never taken, so there may be fewer.
func (c *chooser) distinctByWeight(to []int64, counts []float32, key rng.Key, first int64, degree, k int) ([]int64,
	[]float32) {
	c.best = c.best[:0]
	weights := c.weights(first, degree)
	for i, w := range weights {
		if w > 0 {
			c.offer(priority{float64(w) / (1 - key.Float64(uint64(i))), uint32(i)}, k+1)
		}
	}
	threshold := 0.0
	if len(c.best) > k {
		threshold = c.best[0].value
		c.best[0] = c.best[k]
		c.best = c.best[:k]
	}
	for _, p := range c.best {
		to = append(to, first+int64(p.at))
		counts = append(counts, float32(math.Max(float64(weights[p.at]), threshold)))
	}
	return to, counts
}

// offer keeps the n highest in a heap with the lowest on top. Of equal ones the
// earlier stays.
func (c *chooser) offer(p priority, n int) {
	h := c.best
	if len(h) < n {
		h = append(h, p)
		for i := len(h) - 1; i > 0 && h[i].value < h[(i-1)/2].value; i = (i - 1) / 2 {
			h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		}
		c.best = h
		return
	}
	if p.value <= h[0].value {
		return
	}
	h[0] = p
	for i := 0; ; {
		low := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h) && h[child].value < h[low].value {
				low = child
			}
		}
		if low == i {
			return
		}
		h[i], h[low] = h[low], h[i]
		i = low
	}
}
