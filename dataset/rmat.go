package dataset

import (
	"fmt"
	"math/bits"

	"starling/rng"
)

// rmat draws an edge by halving the adjacency matrix log2(n) times; each time it
// goes to one of the four quadrants with chances A, B, C, D. Vertex numbers are
// scrambled afterwards, so that a number tells nothing about a degree.
//
// D. Chakrabarti, Y. Zhan, C. Faloutsos: R-MAT, a recursive model for graph
// mining, 2004. The defaults are those of Graph500.
type rmat struct {
	n          uint64
	levels     int
	a, ab, abc uint64 // cumulated chances in 16 bits
	key        rng.Key
	odd        [2]uint64
}

func newRMAT(p Params) (*model, error) {
	if p.A < 0 || p.B < 0 || p.C < 0 || !(p.A+p.B+p.C <= 1) {
		return nil, badParam("a, b, c", fmt.Sprint(p.A, p.B, p.C), "chances that sum to at most 1")
	}
	if p.Nodes < 2 {
		return nil, badParam("nodes", fmt.Sprint(p.Nodes), "at least 2")
	}
	g := &rmat{n: uint64(p.Nodes), levels: bits.Len64(uint64(p.Nodes - 1)), key: rng.New(p.Seed).Fold(edgeStream)}
	g.a, g.ab, g.abc = uint64(p.A*65536), uint64((p.A+p.B)*65536), uint64((p.A+p.B+p.C)*65536)
	k := rng.New(p.Seed).Fold(scrambleStream)
	g.odd = [2]uint64{k.Uint64(0) | 1, k.Uint64(1) | 1}
	m, err := drawsFor(p.drawn(), g.pilot(p))
	return &model{edges: m, source: func(lo int64, src, dst []uint32, _ []float32) {
		for i := range src {
			u, v, _ := g.edge(g.key.Fold(uint64(lo) + uint64(i)))
			src[i], dst[i] = g.scramble(u), g.scramble(v)
		}
	}}, err
}

// edge draws one cell inside n×n; tries counts the cells drawn, those of the
// next power of two that lie outside included.
func (g *rmat) edge(k rng.Key) (u, v, tries uint64) {
	for word := uint64(0); ; {
		u, v = 0, 0
		for left := g.levels; left > 0; {
			r := k.Uint64(word)
			word++
			for range min(left, 4) {
				x := r & 0xffff
				r >>= 16
				down, past := bit(x >= g.ab), bit(x >= g.abc)
				u = u<<1 | down
				v = v<<1 | (bit(x >= g.a) ^ down) | past
			}
			left -= min(left, 4)
		}
		if tries++; u < g.n && v < g.n {
			return u, v, tries
		}
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// scramble is a bijection of 0..n-1: multiply by an odd number and fold the upper
// half down, twice, within the next power of two, until the result is below n.
func (g *rmat) scramble(x uint64) uint32 {
	mask, half := uint64(1)<<g.levels-1, (g.levels+1)/2
	for {
		for _, odd := range g.odd {
			x = x * odd & mask
			x ^= x >> half
		}
		if x < g.n {
			return uint32(x)
		}
	}
}

// chance is that of one draw hitting the cell (u,v), before the outside is rejected.
func (g *rmat) chance(u, v uint64) float64 {
	quad := [4]float64{float64(g.a), float64(g.ab - g.a), float64(g.abc - g.ab), float64(65536 - g.abc)}
	p := 1.0
	for range g.levels {
		p *= quad[u&1<<1|v&1] / 65536
		u, v = u>>1, v>>1
	}
	return p
}

// pilot gives the rates that drawsFor needs.
func (g *rmat) pilot(p Params) []float64 {
	rates := make([]float64, pilotDraws)
	k := rng.New(p.Seed).Fold(pilotStream)
	var tries uint64
	for i := range rates {
		u, v, t := g.edge(k.Fold(uint64(i)))
		tries += t
		rates[i] = g.chance(u, v)
		if !p.Directed {
			rates[i] += g.chance(v, u)
		}
		if u == v {
			rates[i] = selfLoop
		}
	}
	for i := range rates {
		rates[i] *= float64(p.drawn()) * float64(tries) / pilotDraws
	}
	return rates
}
