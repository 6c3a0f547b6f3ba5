package generate

import (
	"fmt"
	"math/bits"

	"starling/event"
	"starling/rng"
)

// rmat draws an edge by halving the adjacency matrix log2(n) times, each time choosing one
// of the four quadrants with probabilities A, B, C, D. Vertex numbers are scrambled
// afterwards, so that they do not correlate with degrees.
//
// D. Chakrabarti, Y. Zhan, C. Faloutsos: R-MAT, a recursive model for graph
// mining, 2004. The defaults are Graph500's.
type rmat struct {
	n      uint64
	levels int
	quad   [4]float64 // A, B, C, D
	four   rmatTable  // four halvings at once
	rest   rmatTable  // those left when levels is no multiple of four
	key    rng.Key
	odd    [2]uint64
}

// rmatTable draws several halvings at once from an alias table. An outcome has the bits of
// the row in its upper half and those of the column in its lower.
type rmatTable struct {
	slots []rmatSlot
	half  int // halvings in one outcome
}

// rmatSlot has wider fields than it needs: words are selected without a branch, and this
// one would be mispredicted half the time.
type rmatSlot struct {
	keep       uint32 // probability in 24 bits
	own, other uint32
}

func newRMAT(p Params) (*model, error) {
	if !(p.A >= 0 && p.B >= 0 && p.C >= 0 && p.A+p.B+p.C <= 1+1e-9) {
		return nil, badParam("a, b, c", fmt.Sprint(p.A, p.B, p.C), "probabilities that sum to at most 1")
	}
	if p.Nodes < 2 {
		return nil, badParam("nodes", fmt.Sprint(p.Nodes), "at least 2")
	}
	g := &rmat{n: uint64(p.Nodes), levels: bits.Len64(uint64(p.Nodes - 1)), key: rng.New(p.Seed).Fold(edgeStream)}
	g.quad = [4]float64{p.A, p.B, p.C, max(1-p.A-p.B-p.C, 0)}
	if in := g.inside(); in < rmatLeastInside {
		return nil, badParam("a, b, c", fmt.Sprintf("%g %g %g, which seldom draw one of %s (%.2g of the time)", p.A,
			p.B, p.C, event.Tally(p.Nodes, "vertex"), in),
			"a larger a, or as --nodes a power of two")
	}
	g.four, g.rest = g.table(4), g.table(g.levels%4)
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

// rmatLeastInside is the least probability of a cell to be inside n×n: at 0, edge would
// never end, and below this it would take too long.
const rmatLeastInside = 1e-3

// inside is the probability of one draw to be inside n×n. From the last halving up, it
// keeps the probabilities that both u and v, u alone, or v alone are at most n-1.
func (g *rmat) inside() float64 {
	both, row, col := 1.0, 1.0, 1.0
	a, b, c, d := g.quad[0], g.quad[1], g.quad[2], g.quad[3]
	for last := g.n - 1; last > 0; last >>= 1 {
		if last&1 == 0 { // only a zero bit stays within the bound
			both, row, col = a*both, (a+b)*row, (a+c)*col
		} else { // below a zero bit all values are within it
			both, row, col = a+b*col+c*row+d*both, a+b+(c+d)*row, a+c+(b+d)*col
		}
	}
	return both
}

func (g *rmat) table(half int) rmatTable {
	t := rmatTable{make([]rmatSlot, 1<<(2*half)), half}
	chance := func(i int) float64 { return g.chance(uint64(i>>half), uint64(i&(1<<half-1)), half) }
	aliasTable(len(t.slots), chance, func(i int, keep float64, other int) {
		t.slots[i] = rmatSlot{uint32(keep * (1 << 24)), uint32(i), uint32(other)}
	})
	return t
}

// draw uses 32 random bits: 8 choose the slot, 24 decide in it.
func (t *rmatTable) draw(r uint32) (row, col uint64) {
	s := &t.slots[int(r>>24)&(len(t.slots)-1)]
	x, other := s.own, s.other
	if r&(1<<24-1) >= s.keep {
		x = other
	}
	return uint64(x >> t.half), uint64(x) & (1<<t.half - 1)
}

// edge draws one cell inside n×n; tries counts the cells drawn, those of the
// next power of two that lie outside included.
func (g *rmat) edge(k rng.Key) (u, v, tries uint64) {
	for word := uint64(0); ; {
		r := k.Uint64(word)
		word++
		u, v = g.rest.draw(uint32(r))
		r >>= 32
		fresh := true
		for left := g.levels / 4; left > 0; left-- {
			if !fresh {
				r = k.Uint64(word)
				word++
			}
			row, col := g.four.draw(uint32(r))
			u, v = u<<4|row, v<<4|col
			r, fresh = r>>32, !fresh
		}
		if tries++; u < g.n && v < g.n {
			return u, v, tries
		}
	}
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

// chance is the probability of the cell (u,v) of a matrix of 2^levels squared.
func (g *rmat) chance(u, v uint64, levels int) float64 {
	p := 1.0
	for range levels {
		p *= g.quad[u&1<<1|v&1]
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
		rates[i] = g.chance(u, v, g.levels)
		if !p.Directed {
			rates[i] += g.chance(v, u, g.levels)
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
