package train

import (
	"fmt"

	"starling/nn"
)

// waves are the far rows of a joint in the order in which they are expected, a few
// chunks each. On dense graphs every bin needs rows of every chunk; instead of waiting
// for the last, sums take in one wave after the other,
//
//	y_b = A_near,b·z_own + A_1,b·z_1 + A_2,b·z_2 + …
//
// while later ones travel, and only the last is left to add when it comes. The order is
// fixed, and with it every bit. A wave reads and writes all sums once more, so sparse
// graphs, with few far rows a sum, have none.
type waves struct {
	chunks [][]int // of each wave
	far    []*nn.Topology
}

const (
	mostWaves = 4
	// leastEdges a row and wave, beside which the sums' own traffic is small.
	leastEdges = 16
)

// waveCount is the same on all workers: it decides in which order rows travel.
func (g *g3) waveCount() int {
	book := g.part.Book
	edges := book.EdgeCut
	if book.Symmetric {
		edges *= 2 // it counts these once for both ways
	}
	return int(min(mostWaves, edges/leastEdges/max(1, book.Nodes)))
}

// newWaves cuts the far chunks of an order into n waves: those of one's own server, which
// are there first, and the others as they leave.
func (g *g3) newWaves(o *order, n int) *waves {
	w := &waves{chunks: make([][]int, n)}
	at, last, here := make([]int, g.border(0).farRows()), 0, 0
	for _, c := range o.fars {
		last = max(last, c.number)
		if g.near(c) {
			here = 1
		}
	}
	for i, c := range o.fars {
		wave := 0
		if !g.near(c) {
			wave = here + c.number*(n-here)/(last+1)
		}
		w.chunks[wave] = append(w.chunks[wave], i)
		for row := c.lo; row < c.hi; row++ {
			at[row] = wave
		}
	}
	w.far = o.far.ByColumn(at, n)
	return w
}

// near reports whether rows come from the same server, where there are several.
func (g *g3) near(c chunk) bool {
	b := g.part.Book
	return b.Servers > 1 && c.owner < 0 && b.Server(c.peer) == b.Server(g.part.Meta.Part)
}

// addWaves makes the tasks that add a joint's waves to the sums of bins, and returns the
// last of each bin.
func (g *g3) addWaves(s *schedule, p *nn.Pass, j *passage, sums []int) []int {
	w := j.order.waves
	for k, far := range w.far {
		sums = g.eachBin(func(b, lo, hi int) int {
			if far.EdgeCount(lo, hi) == 0 {
				return sums[b]
			}
			return s.add(urgency(urgentSum, j.joint, (k+1)*g.bins.count()+b), func() {
				end := p.Span(fmt.Sprintf("far sums %d, wave %d, bin %d", j.joint, k, b))
				sums := g.run.Sums(j.joint)
				far.SumRows(sums.Reduce, sums.Dst, g.flows[j.joint].parts[0].in, lo, hi, true)
				end()
			}, []int{sums[b]}, pick(j.coming, w.chunks[k]))
		})
	}
	return sums
}
