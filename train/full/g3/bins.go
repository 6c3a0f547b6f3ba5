package g3

import (
	"starling/partition"
)

// bins are ranges of a worker's rows that are computed together, and what each of
// them needs. Rows that peers need have the lowest numbers, so the first bins are the ones
// that peers wait for. Every worker can tell the bins of every other: they follow
// from the number of its rows.
type bins struct {
	at []int // bin b is rows at[b] to at[b+1]
	// sources are the bins whose rows the sums of a bin need, itself among them; users
	// the bins whose sums need the rows of a bin.
	sources, users [][]int
}

const (
	// mostBins: more make a finer pipeline, but smaller messages and products.
	mostBins = 16
	// leastBin is the bytes of a bin below which a message costs more than its bytes do, and leastMessage those
	// of the part of it that goes to one of many peers: among 64 workers messages of 3 KiB would take twice the
	// time of the whole epoch.
	leastBin     = 64 << 10
	leastMessage = 16 << 10
	// leastRows: products of fewer rows spend their time on bringing in the weights.
	leastRows = 112
)

// leastSend is the bytes of rows below which gathering or summing them takes no longer than the call does: chunks
// for many peers are joined up to it, and still leave as a message each. Tests change it.
var leastSend = 128 << 10

// binRows is the number of rows in a bin where a row takes some bytes in the widest
// layer, and a peer needs one row in peer. A bin takes at most half of the budget, so that one can be computed while
// another comes or goes.
func binRows(rows, bytes int, peer float64, budget int64) int {
	n := max((rows+mostBins-1)/mostBins, leastBin/bytes, int(leastMessage*peer)/bytes, leastRows)
	if budget > 0 {
		n = int(min(int64(n), budget/2/int64(bytes)))
	}
	return max(n, 1)
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

func (b *bins) count() int { return len(b.at) - 1 }

// newBins are the bins of a part within bounds.
func newBins(p *partition.Part, at []int) *bins {
	core := p.Core()
	b := &bins{at: at}
	needs := pairs(b.count(), b.count())
	for bin := range b.count() {
		needs[bin][bin] = true
		for v := at[bin]; v < at[bin+1]; v++ {
			for _, u := range p.In.Neighbors(uint32(v)) {
				if int(u) < core {
					needs[bin][binOf(at, int(u))] = true
				}
			}
		}
	}
	b.sources, b.users = listed(needs, b.count())
	return b
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
