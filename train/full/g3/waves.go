package g3

import (
	"fmt"

	"starling/nn"
)

// waves are the halo rows of a synchronisation point in the order in which they are expected, a few
// chunks each. On dense graphs every bin needs rows of every chunk; instead of waiting
// for the last, sums take in one wave after the other,
//
//	y_b = A_local,b·z_local + A_1,b·z_1 + A_2,b·z_2 + …
//
// while later ones travel, and only the last is left to add when it comes. The order is
// fixed, and with it every bit. A wave reads and writes all sums once more, so sparse
// graphs, with few halo rows a sum, have none.
type waves struct {
	at     []int   // of each halo row
	chunks [][]int // of each wave
	remote []*nn.Topology
}

const (
	mostWaves = 4
	// leastEdges per row and wave, beside which the sums' own traffic is small.
	leastEdges = 16
)

// waveCount is the same on all workers: it decides in which order rows travel.
func (g *g3) waveCount() int {
	book := g.W.Part.Book
	edges := book.EdgeCut
	if book.Symmetric {
		edges *= 2 // it counts these once for both ways
	}
	return int(min(mostWaves, edges/leastEdges/max(1, book.Nodes)))
}

// newWaves cuts the halo chunks of an order into n waves: those of one's own server, which
// are there first, and the others as they leave.
func (g *g3) newWaves(o *order, n int) *waves {
	w := &waves{at: make([]int, g.halo.HaloRows())}
	last, here := 0, 0
	for _, c := range o.halos {
		last = max(last, c.number)
		if g.sameServer(c) {
			here = 1
		}
	}
	for _, c := range o.halos {
		wave := 0
		if !g.sameServer(c) {
			wave = here + c.number*(n-here)/(last+1)
		}
		for row := c.lo; row < c.hi; row++ {
			w.at[row] = wave
		}
	}
	w.remote = o.remote.ByColumn(w.at, n)
	return w
}

// of are the same waves of rows, which travel in the chunks of another order by owner.
func (w *waves) of(o *order) *waves {
	chunks := make([][]int, len(w.remote))
	for i, c := range o.halos {
		for _, wave := range w.at[c.lo:c.hi] {
			if n := len(chunks[wave]); n == 0 || chunks[wave][n-1] != i {
				chunks[wave] = append(chunks[wave], i)
			}
		}
	}
	return &waves{w.at, chunks, w.remote}
}

// sameServer reports whether rows come from the same server, where there are several.
func (g *g3) sameServer(c chunk) bool {
	b := g.W.Part.Book
	return b.Servers > 1 && c.owner < 0 && b.Server(c.peer) == b.Server(g.W.Part.Meta.Part)
}

// addWaves makes the tasks that add a synchronisation point's waves to the sums of bins, and returns the
// last of each bin.
func (g *g3) addWaves(s *schedule, p *nn.Pass, j *passage, sums []int) []int {
	w := j.order.waves
	for k, remote := range w.remote {
		sums = g.eachBin(j.point+1, func(b, lo, hi int) int {
			if remote.EdgeCount(lo, hi) == 0 {
				return sums[b]
			}
			return s.add(urgency(urgentSum, j.point, (k+1)*len(sums)+b), func() {
				end := p.Span(fmt.Sprintf("halo sums %d, wave %d, bin %d", j.point, k, b))
				sums := g.run.Sums(j.point)
				remote.SumRows(sums.Reduce, sums.Dst, g.flows[j.point].parts[0].in, lo, hi, true)
				end()
			}, []int{sums[b]}, pick(j.coming, w.chunks[k]))
		})
	}
	return sums
}
