package neutronstar

import (
	"cmp"
	"maps"
	"slices"

	"starling/cost"
)

// dependencies are what a worker knows of the vertices that its own depend on, and
// what it has decided. It is pure: looking things up is left to others.
type dependencies struct {
	costs   *cost.Epoch
	isOwn   func(v uint32) bool
	in      map[uint32][]uint32 // in-neighbours, where they are known
	weights map[uint32][]float32
	// edgeFeatures belong to the same edges.
	edgeFeatures map[uint32][]float32
	relations    map[uint32][]uint16
	// learnt are vertices that are never replicas, as their rows are learnt where they are, with the seconds of a byte
	// from their owners; 0 where they are received anyway.
	learnt map[uint32]float64
	degree map[uint32]int64
	depth  map[uint32]int // of replicas: layers that are recomputed for them
	bytes  int64          // that replicas take
	budget int64          // 0: any
}

func newDependencies(c *cost.Epoch, isOwn func(v uint32) bool, budget int64) *dependencies {
	return &dependencies{costs: c, isOwn: isOwn, budget: budget, in: map[uint32][]uint32{},
		weights: map[uint32][]float32{}, edgeFeatures: map[uint32][]float32{},
		relations: map[uint32][]uint16{}, learnt: map[uint32]float64{},
		degree: map[uint32]int64{}, depth: map[uint32]int{}}
}

// depthOf is -1 for vertices that are not here.
func (d *dependencies) depthOf(v uint32) int {
	if depth, ok := d.depth[v]; ok {
		return depth
	}
	return -1
}

// raised is what having a vertex at a depth takes.
type raised struct {
	depth   map[uint32]int // replicas that are new or become deeper
	seconds float64
	bytes   int64
	missing []uint32 // their in-edges are not known, so that more may be needed
}

// raise computes what it takes to have v at a depth: what v depends on, one layer less
// with every step back, as far as it is not here.
func (d *dependencies) raise(v uint32, depth int) (r raised) {
	r.depth = map[uint32]int{}
	level := []uint32{v}
	for ; depth >= 0 && len(level) > 0; depth-- {
		var before []uint32
		for _, u := range level {
			have := d.depthOf(u)
			if deeper, ok := r.depth[u]; ok {
				have = deeper
			}
			if d.isOwn(u) || have >= depth {
				continue
			}
			if byteSeconds, ok := d.learnt[u]; ok {
				r.seconds += byteSeconds * float64(d.costs.Layers[depth].Traffic)
				continue
			}
			r.depth[u] = depth
			for j := have + 1; j <= depth; j++ {
				seconds, bytes := d.step(j, d.degree[u])
				r.seconds, r.bytes = r.seconds+seconds, r.bytes+bytes
			}
			if depth == 0 {
				continue
			}
			if from, ok := d.in[u]; ok {
				before = append(before, from...)
			} else {
				r.missing = append(r.missing, u)
			}
		}
		level = before
	}
	return r
}

// seconds is what having v at a depth takes. (Most halo vertices are asked for their features alone, and gain
// nothing: they are not worth the maps of raise.)
func (d *dependencies) seconds(v uint32, depth int) float64 {
	if depth > 0 || d.isOwn(v) || d.depthOf(v) >= 0 {
		return d.raise(v, depth).seconds
	}
	seconds, _ := d.step(0, d.degree[v])
	return seconds
}

// step is what one more layer of a replica takes: to depth j, from one less.
func (d *dependencies) step(j int, degree int64) (seconds float64, bytes int64) {
	if j < len(d.costs.Layers) && d.costs.Layers[j].TransformFirst {
		seconds += d.costs.Layers[j].Row // of which the next layer takes the transformed row
	}
	if j == 0 {
		return seconds, d.costs.Feature
	}
	at := d.costs.Layers[j-1]
	if !at.TransformFirst {
		seconds += at.Row
	}
	return seconds + at.Edge*float64(degree), at.Kept + degree*cost.EdgeBytes
}

// candidate is a halo vertex and what a byte from its owner costs.
type candidate struct {
	v           uint32
	byteSeconds float64
}

// saves is what need not be received of a candidate at some depth, up to that layer.
func (d *dependencies) saves(c candidate, depth int) (seconds float64) {
	for j := d.depthOf(c.v) + 1; j <= depth; j++ {
		seconds += float64(d.costs.Layers[j].Traffic) * c.byteSeconds
	}
	return seconds
}

// greedy takes candidates to a depth, the cheapest first, where that costs less than
// it saves and fits. Costs fall as others are taken, so they are computed once more.
func (d *dependencies) greedy(candidates []candidate, depth int) (taken int) {
	first := make(map[uint32]float64, len(candidates))
	for _, c := range candidates {
		first[c.v] = d.seconds(c.v, depth)
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(first[a.v], first[b.v]), cmp.Compare(a.v, b.v))
	})
	for _, c := range candidates {
		r := d.raise(c.v, depth)
		if r.seconds >= d.saves(c, depth) || d.budget > 0 && d.bytes+r.bytes > d.budget {
			continue
		}
		maps.Copy(d.depth, r.depth)
		d.bytes += r.bytes
		taken++
	}
	return taken
}

// sorted is a set in ascending order.
func sorted(set map[uint32]bool) []uint32 { return slices.Sorted(maps.Keys(set)) }
