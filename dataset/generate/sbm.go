package generate

import (
	"fmt"
	"math"
	"math/bits"
	"sort"

	"starling/graph"
	"starling/rng"
)

// blockModel is a degree-corrected contextual block model. Every vertex belongs to
// a community, every community to a class, and every vertex has a weight θ from a
// truncated power law. A vertex starts edges in proportion to its θ; with probability h
// such an edge ends in its own community, else in another class, and there at a
// vertex in proportion to that one's θ. So h is the share of edges inside a class,
// and degrees follow θ. The features (features.go) make it contextual.
//
// B. Karrer, M. Newman: Stochastic blockmodels and community structure in networks,
// 2011; Y. Deshpande et al.: Contextual stochastic block models, 2018.
type blockModel struct {
	n           int64
	classes     int
	communities int
	homophily   float64
	seed        uint64
	where       rng.Key // of the draws of communities

	theta []float32 // by vertex
	first []int64   // by vertex: its first edge
	slots []slot    // vertices by community, as alias tables
	start []int64   // by community: its first slot
	sum   []float64 // by community: θ of all communities before it
	guide []uint32  // cells of the interval [0, sum of all): the community each starts in
}

// slot is one cell of an alias table: own with probability keep/2^32, else other.
type slot struct{ keep, own, other uint32 }

func newBlockModel(p Params) (*model, error) {
	b := &blockModel{n: p.Nodes, classes: max(p.Classes, 1), communities: p.Communities, homophily: p.Homophily,
		seed: p.Seed}
	b.where = rng.New(p.Seed).Fold(communityStream)
	if b.communities == 0 {
		b.communities = b.classes
	}
	if b.classes == 1 {
		b.homophily = 1 // there is no other class
	}
	if err := b.check(p); err != nil {
		return nil, err
	}
	b.drawTheta(p)
	b.sortByCommunity()
	m, err := b.solve(p)
	if err != nil {
		return nil, err
	}
	b.startEdges(m)
	b.theta = nil
	return &model{edges: b.first[b.n], source: b.source,
		class: func(v uint64) int { return b.classOf(b.community(v)) }}, nil
}

func (b *blockModel) check(p Params) error {
	switch {
	case !(p.Homophily >= 0 && p.Homophily <= 1):
		return badParam("homophily", fmt.Sprint(p.Homophily), "a share from 0 to 1")
	case b.communities < b.classes || int64(b.communities) > b.n:
		return badParam("communities", fmt.Sprint(p.Communities),
			fmt.Sprintf("%d (one per class) to %d (one per vertex)", b.classes, b.n))
	case !(p.Exponent > 2):
		return badParam("exponent", fmt.Sprint(p.Exponent), "above 2, so that the mean degree exists")
	case !(p.MaxDegree >= 0 && p.MaxDegree <= float64(p.Nodes)):
		return badParam("max-degree", fmt.Sprint(p.MaxDegree), "0 (chosen) to the number of vertices")
	}
	return nil
}

// community is a pure function, so that no table is needed.
func (b *blockModel) community(v uint64) int { return b.where.IntN(v, b.communities) }

// classOf gives neighbouring communities to one class.
func (b *blockModel) classOf(community int) int { return community * b.classes / b.communities }

// classRange lists the communities of a class.
func (b *blockModel) classRange(class int) (lo, hi int) {
	lo = (class*b.communities + b.classes - 1) / b.classes
	hi = ((class+1)*b.communities + b.classes - 1) / b.classes
	return lo, hi
}

// drawTheta draws degrees between a least one, which gives the right mean, and
// MaxDegree, with density ∝ x^-Exponent.
func (b *blockModel) drawTheta(p Params) {
	mean := max(float64(p.Edges)/float64(p.Nodes), 1e-6)
	most := p.MaxDegree
	if most == 0 {
		// Above √(n·mean) two hubs would be joined more than once; twice that is
		// what the public graphs show.
		most = min(2*math.Sqrt(float64(p.Nodes)*mean), float64(p.Nodes))
	}
	most = max(most, mean)
	least := leastDegree(p.Exponent, mean, most)
	tail := math.Pow(most/least, 1-p.Exponent)
	k := rng.New(p.Seed).Fold(degreeStream)
	b.theta = make([]float32, b.n)
	graph.Parallel(b.n, 1<<14, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			u := k.Float64(uint64(v))
			b.theta[v] = float32(least * math.Pow(1-u*(1-tail), -1/(p.Exponent-1)))
		}
	})
}

// leastDegree solves for the lower end of a power law with a given mean.
func leastDegree(exponent, mean, most float64) float64 {
	meanFrom := func(least float64) float64 {
		if most/least < 1+1e-9 {
			return least
		}
		g := exponent
		return (g - 1) / (g - 2) * least * (1 - math.Pow(most/least, 2-g)) / (1 - math.Pow(most/least, 1-g))
	}
	lo, hi := 0.0, mean
	for range 100 {
		if mid := (lo + hi) / 2; mid > 0 && meanFrom(mid) < mean {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// sortByCommunity lists vertices by community and builds an alias table of each.
func (b *blockModel) sortByCommunity() {
	b.start = make([]int64, b.communities+1)
	for v := range b.n {
		b.start[b.community(uint64(v))+1]++
	}
	for c := range b.communities {
		b.start[c+1] += b.start[c]
	}
	next := append([]int64(nil), b.start...)
	b.slots = make([]slot, b.n)
	for v := range b.n {
		c := b.community(uint64(v))
		b.slots[next[c]].own = uint32(v)
		next[c]++
	}
	weights := make([]float64, b.communities)
	graph.Parallel(int64(b.communities), 1, func(lo, hi int64) {
		for c := lo; c < hi; c++ {
			weights[c] = b.alias(b.slots[b.start[c]:b.start[c+1]])
		}
	})
	b.sum = make([]float64, b.communities+1)
	for c, w := range weights {
		b.sum[c+1] = b.sum[c] + w
	}
	b.guide = make([]uint32, 8*b.communities+1)
	for i := range b.guide {
		x := b.sum[b.communities] * float64(i) / float64(len(b.guide)-1)
		b.guide[i] = uint32(min(sort.Search(b.communities, func(c int) bool { return b.sum[c+1] > x }),
			b.communities-1))
	}
}

// alias builds the table of one community in place and returns the sum of θ.
func (b *blockModel) alias(s []slot) float64 {
	return aliasTable(len(s), func(i int) float64 { return float64(b.theta[s[i].own]) },
		func(i int, keep float64, other int) {
			s[i].keep, s[i].other = uint32(keep*math.MaxUint32), s[other].own
		})
}

// member draws a slot of a community, and the number that decides in it.
func (b *blockModel) member(c int, r uint64) (at, chance uint32) {
	i, rest := bits.Mul64(r, uint64(b.start[c+1]-b.start[c]))
	return uint32(b.start[c]) + uint32(i), uint32(rest >> 32)
}

// vertex reads a slot. It has no branch, so that reads of several slots overlap.
func (b *blockModel) vertex(at, chance uint32) uint32 {
	s := &b.slots[at]
	own, other := s.own, s.other
	if chance > s.keep {
		own = other
	}
	return own
}

// find is the community at a point of [0, sum of all).
func (b *blockModel) find(x float64) int {
	cell := int(x / b.sum[b.communities] * float64(len(b.guide)-1))
	c := int(b.guide[max(min(cell, len(b.guide)-1), 0)])
	for c < b.communities-1 && x >= b.sum[c+1] {
		c++
	}
	for c > 0 && x < b.sum[c] {
		c--
	}
	return c
}

// end draws the slot where edge i, which starts in community c, ends.
func (b *blockModel) end(c int, k rng.Key, i uint64) (at, chance uint32) {
	coin := k.Float64(2 * i)
	if coin >= b.homophily {
		// Given this case the coin is uniform in [h,1): it also picks the point among
		// the other classes, below and above this one.
		lo, hi := b.classRange(b.classOf(c))
		x := (coin - b.homophily) / (1 - b.homophily) * (b.sum[b.communities] - (b.sum[hi] - b.sum[lo]))
		if x >= b.sum[lo] {
			x += b.sum[hi] - b.sum[lo]
		}
		other := b.find(x)
		if b.start[other+1] > b.start[other] {
			c = other
		}
	}
	return b.member(c, k.Uint64(2*i+1))
}

// startEdges gives every vertex its share of m edges to start, rounded at random
// so that the mean is right.
func (b *blockModel) startEdges(m int64) {
	k := rng.New(b.seed).Fold(degreeStream).Fold(1)
	scale := float64(m) / b.sum[b.communities]
	b.first = make([]int64, b.n+1)
	graph.Parallel(b.n, 1<<14, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			b.first[v+1] = int64(float64(b.theta[v])*scale + k.Float64(uint64(v)))
		}
	})
	for v := range b.n {
		b.first[v+1] += b.first[v]
	}
}

// source draws edges by index: the start follows from the index, the end is drawn.
// Slots are drawn first and read in a second loop, where cache misses overlap.
func (b *blockModel) source(lo int64, src, dst []uint32, _ []float32) {
	k := rng.New(b.seed).Fold(edgeStream)
	v := int64(sort.Search(int(b.n), func(v int) bool { return b.first[v+1] > lo }))
	c := b.community(uint64(v))
	chance := make([]uint32, len(src))
	for i := range src {
		e := lo + int64(i)
		if e >= b.first[v+1] {
			for e >= b.first[v+1] {
				v++
			}
			c = b.community(uint64(v))
		}
		src[i] = uint32(v)
		dst[i], chance[i] = b.end(c, k, uint64(e))
	}
	for i, at := range dst {
		dst[i] = b.vertex(at, chance[i])
	}
}

// solve finds how many edges to draw inside and between classes so that, after repeats
// are dropped, the requested number and homophily remain. Pairs inside a class are fewer
// and repeat more, so the two need different factors.
func (b *blockModel) solve(p Params) (draws int64, err error) {
	inside := int64(math.Round(b.homophily * float64(p.drawn())))
	want := [2]int64{inside, p.drawn() - inside}
	var got [2]int64
	for i, h := range []float64{1, 0} {
		if want[i] == 0 {
			continue
		}
		b.homophily = h
		if got[i], err = drawsFor(want[i], b.pilot(want[i], p.Directed)); err != nil {
			return 0, err
		}
	}
	b.homophily = 1
	if draws = got[0] + got[1]; draws > 0 {
		b.homophily = float64(got[0]) / float64(draws)
	}
	return draws, nil
}

// pilot gives the rates that drawsFor needs, if all edges are inside a class or none is.
func (b *blockModel) pilot(want int64, directed bool) []float64 {
	k := rng.New(b.seed).Fold(pilotStream)
	rates := make([]float64, pilotDraws)
	for i := range rates {
		c := b.find(k.Float64(uint64(2*i)) * b.sum[b.communities])
		if b.start[c+1] == b.start[c] {
			continue
		}
		u := b.vertex(b.member(c, k.Uint64(uint64(2*i+1))))
		v := b.vertex(b.end(c, k.Fold(1), uint64(i)))
		rates[i] = b.rate(u, v)
		if !directed {
			rates[i] += b.rate(v, u)
		}
		rates[i] *= float64(want)
		if u == v {
			rates[i] = selfLoop
		}
	}
	return rates
}

// rate is the probability that one draw is the edge u → v.
func (b *blockModel) rate(u, v uint32) float64 {
	all := b.sum[b.communities]
	c := b.community(uint64(u))
	p := float64(b.theta[u]) / all * float64(b.theta[v])
	if b.homophily == 1 {
		return p / (b.sum[c+1] - b.sum[c])
	}
	lo, hi := b.classRange(b.classOf(c))
	return p / (all - (b.sum[hi] - b.sum[lo]))
}
