package g3

import (
	"starling/partition"
)

// Bins are ranges of a worker's rows that are computed together; at are their bounds: bin b of a phase is rows at[b] to
// at[b+1]. Rows that peers need have the lowest numbers, so the first bins are the ones that peers wait for. Every
// worker can tell the bins of every other: they follow from the number of its rows and the widths of the model.

const (
	// mostBins: more make a finer pipeline, but smaller messages and products.
	mostBins = 16
	// leastBin is the bytes of a bin's rows below which a message costs more than its bytes do, and leastMessage
	// those of the part of them that goes to one of many peers: among 64 workers messages of 1.5 KiB would
	// take twice the time of the whole epoch.
	leastBin     = 32 << 10
	leastMessage = 8 << 10
	// leastRows: products of fewer rows spend their time on bringing in the weights.
	leastRows = 112
)

// leastSend is the bytes of rows below which gathering or summing them takes no longer than the call does: chunks
// for many peers are joined up to it, and still leave as a message each. Tests change it.
var leastSend = 128 << 10

// rowBytes is what the bins of a phase are sized by: the bytes of a row of the layer, its input and output (§4.4.3),
// and of the row that leaves after it. Gradients of that row come back with the same bins.
type rowBytes struct{ memory, message int }

// binRows is the number of rows in a bin of a phase, where a peer needs one row in peer. Narrow rows come in larger
// bins, so that messages are worth sending. A bin takes at most half of the budget, so that one can be computed while
// another comes or goes.
func binRows(rows int, row rowBytes, peer float64, budget int64) int {
	n := max((rows+mostBins-1)/mostBins, leastBin/row.message, int(leastMessage*peer)/row.message, leastRows)
	if budget > 0 {
		n = int(min(int64(n), budget/2/int64(row.memory)))
	}
	return max(min(n, rows), 1)
}

// perPeer is how many rows there are for each that one of the peers needs, in the mean.
func perPeer(b *partition.Book) float64 {
	return float64(b.Nodes) * float64(b.Parts-1) / float64(max(b.CommVolume, 1))
}

// cutBins are the bounds of bins of equally many rows; there is at least one bin.
func cutBins(rows, each int) []int {
	at := []int{0}
	for lo := each; lo < rows; lo += each {
		at = append(at, lo)
	}
	return append(at, rows)
}

// binOf is the bin of a row; all bins but the last are as large as the first.
func binOf(at []int, row int) int { return row / at[1] }

// links are between the bins before a synchronisation point and those after it.
type links struct {
	// sources are, by bin after it, the bins before it whose rows its sums need, those of its own rows among
	// them; users the same the other way.
	sources, users [][]int
	// before are, by bin after it, the bins before it that have its rows; after the same the other way.
	before, after [][]int
}

// newLinks are the links of a part between bins with bounds.
func newLinks(p *partition.Part, from, to []int) *links {
	core := p.Core()
	same, needs := pairs(len(to)-1, len(from)-1), pairs(len(to)-1, len(from)-1)
	for bin := range needs {
		for v := to[bin]; v < to[bin+1]; v++ {
			own := binOf(from, v)
			same[bin][own], needs[bin][own] = true, true
			for _, u := range p.In.Neighbors(uint32(v)) {
				if int(u) < core {
					needs[bin][binOf(from, int(u))] = true
				}
			}
		}
	}
	l := &links{}
	l.sources, l.users = listed(needs, len(from)-1)
	l.before, l.after = listed(same, len(from)-1)
	return l
}

func pairs(n, m int) [][]bool {
	out := make([][]bool, n)
	for i := range out {
		out[i] = make([]bool, m)
	}
	return out
}

// listed are the pairs by their first and by their second.
func listed(pairs [][]bool, m int) (byFirst, bySecond [][]int) {
	byFirst, bySecond = make([][]int, len(pairs)), make([][]int, m)
	for i, row := range pairs {
		for j, ok := range row {
			if ok {
				byFirst[i], bySecond[j] = append(byFirst[i], j), append(bySecond[j], i)
			}
		}
	}
	return byFirst, bySecond
}
