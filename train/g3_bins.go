package train

import (
	"sort"

	"starling/partition"
)

// bins are ranges of a worker's rows that are computed together, and what each of
// them needs. Border rows have the lowest numbers, so the first bins are the ones
// that peers wait for. Every worker can tell the bins of every other: they follow
// from the number of its rows.
type bins struct {
	at []int // bin b is rows at[b] to at[b+1]
	// near are the bins whose rows the sums of a bin need, itself among them; back the
	// bins whose sums need the rows of a bin.
	near, back [][]int
	// sends are the rows of each own bin that each peer needs, places in the send list;
	// fars the rows of each peer's bins that are needed here, places among far rows.
	sends, fars []chunk
	// sendsOf are the sends of a bin; farsOf the fars that its sums need, and users the
	// bins whose sums need a far chunk.
	sendsOf, farsOf, users [][]int
}

// chunk is the rows of one bin that travel between two workers: one message.
type chunk struct {
	peer   int
	bin    int // of the rows' owner
	lo, hi int
}

const (
	// mostBins: more make a finer pipeline, but smaller messages and products.
	mostBins = 16
	// leastBin is the bytes of a bin below which a message costs more than its bytes do.
	leastBin = 64 << 10
)

// binRows is how many rows make a bin where a row takes so many bytes in the widest
// layer. A bin takes at most half of the budget, so that one can be computed while
// another comes or goes.
func binRows(rows, bytes int, budget int64) int {
	n := max((rows+mostBins-1)/mostBins, leastBin/bytes)
	if budget > 0 {
		n = int(min(int64(n), budget/2/int64(bytes)))
	}
	return max(n, 1)
}

// cutBins are the bounds of bins of so many rows; there is at least one bin.
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

// newBins are the bins of a part; bound gives the bounds for a number of rows.
func newBins(p *partition.Part, bound func(rows int) []int) *bins {
	core := p.Core()
	b := &bins{at: bound(core)}
	n := b.count()
	b.sendsOf = make([][]int, n)
	farOf := make([]int, p.Meta.Halo) // the chunk of each far row
	for q := range p.Book.Parts {
		if p.SendPtr[q] < p.SendPtr[q+1] {
			b.sends = chunks(b.sends, q, int(p.SendPtr[q]), b.at, len(p.SendTo(q)), func(i int) int { return int(p.SendTo(q)[i]) })
		}
		if p.HaloPtr[q] < p.HaloPtr[q+1] {
			first := int(p.Book.Offsets[q])
			b.fars = chunks(b.fars, q, int(p.HaloPtr[q]), bound(int(p.Book.Size(q))), len(p.HaloOf(q)), func(i int) int { return int(p.HaloOf(q)[i]) - first })
		}
	}
	for i, c := range b.sends {
		b.sendsOf[c.bin] = append(b.sendsOf[c.bin], i)
	}
	for i, c := range b.fars {
		for row := c.lo; row < c.hi; row++ {
			farOf[row] = i
		}
	}
	near, far := pairs(n, n), pairs(n, len(b.fars))
	for bin := range n {
		near[bin][bin] = true
		for v := b.at[bin]; v < b.at[bin+1]; v++ {
			for _, u := range p.In.Neighbors(uint32(v)) {
				if int(u) < core {
					near[bin][binOf(b.at, int(u))] = true
				} else {
					far[bin][farOf[int(u)-core]] = true
				}
			}
		}
	}
	b.near, b.back = listed(near, n)
	b.farsOf, b.users = listed(far, len(b.fars))
	return b
}

// chunks appends the ranges of an ascending list of n rows that fall into each bin.
func chunks(to []chunk, peer, first int, at []int, n int, row func(int) int) []chunk {
	for i := 0; i < n; {
		bin := binOf(at, row(i))
		j := i + sort.Search(n-i, func(k int) bool { return row(i+k) >= at[bin+1] })
		to = append(to, chunk{peer, bin, first + i, first + j})
		i = j
	}
	return to
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
