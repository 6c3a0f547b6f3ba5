package collective

import "fmt"

// Algorithm is how a sum is made.
type Algorithm uint16

const (
	Auto     Algorithm = iota // the fastest for the size and the number of ranks
	Ordered                   // the fastest of those that add in the order of ranks
	Ring                      // least bytes, neighbours only
	Doubling                  // fewest rounds
	Tree                      // fewest messages
	Direct                    // ordered: least bytes, two rounds
	Whole                     // ordered: one round
	Gathered                  // ordered: fewest messages, each segment of all on one rank
	algorithms
)

var algorithmNames = [algorithms]string{"auto", "ordered", "ring", "doubling", "tree", "direct", "whole", "gathered"}

func (a Algorithm) String() string {
	switch {
	case a < algorithms:
		return algorithmNames[a]
	case a > nestedFrom:
		return "nested"
	}
	return fmt.Sprintf("algorithm %d", uint16(a))
}

// Thresholds, in bytes and ranks. With α the time of a round, o the processor time
// of a message and β that of a byte, the algorithms take about
//
//	Doubling   log2 n rounds of all:    log2 n · (α + o + βm)
//	Tree       2 log2 n rounds of all, but 2(n-1)·o among all ranks, not n·log2 n·o
//	Whole      one round, of n-1:       α + (n-1)(o + βm)
//	Direct     two rounds, of n-1:      2α + 2(n-1)(o + βm/n)
//	Gathered   2 log2 n rounds of s:    2 log2 n · (α + so) + 2nβm/s, in s segments of 4 KiB
//	Ring       2(n-1) rounds of 1/n:    2(n-1)(α + o + βm/n)
//
// Where ranks share two cores and the loopback (BenchmarkAllReduce), o is all that
// counts and Tree is ahead up to 256 KiB; on links of 1 Gbit/s, Direct is from
// 16 KiB. Direct and Ring move the same bytes; Direct waits less, but all ranks
// talk to all, so that between servers of k ranks it moves about k times more: see
// Among.
const (
	// wholeTo is up to where Ordered sends all to all: what it sends too much costs
	// less than the second round. It bounds what a rank sends.
	wholeTo = 16 << 10
	// pairTo is the same for two ranks, who send nothing too much: from there on
	// pieces are worth having.
	pairTo = 2 * pieceBytes
	// roundsTo is up to where rounds count for more than bytes.
	roundsTo = 16 << 10
	// directTo is up to where they count for more than links.
	directTo = 1 << 20
	// gatherFrom and gatherTo are from how many ranks, and up to how many bytes, Ordered
	// gathers: elsewhere every rank has two messages for every other, which with 1,024
	// of them is 2.5 ms of processor time, at 1.2 us each.
	gatherFrom = 256
	gatherTo   = 256 << 10
	// gatherBytes is what one rank adds of that: with 1,024 ranks it receives 4 MiB.
	gatherBytes = 4 << 10
	// treeFrom is the number of ranks from which messages count for more than rounds.
	treeFrom = 16
)

// Choose is what an algorithm stands for among n ranks and a number of bytes: Auto
// and Ordered become one of the others.
func Choose(alg Algorithm, n, bytes int) Algorithm {
	switch {
	case alg > nestedFrom:
		return nestIn(alg, n, bytes)
	case alg == Ordered && n >= gatherFrom && bytes <= gatherTo:
		return Gathered
	case alg == Ordered && ((n-1)*bytes <= wholeTo || n == 2 && bytes <= pairTo):
		return Whole
	case alg == Ordered:
		return Direct
	case alg != Auto:
		return alg
	case bytes > directTo:
		return Ring
	case bytes > roundsTo:
		return Direct
	case n >= treeFrom:
		return Tree
	}
	return Doubling
}

// allReduce leaves the sum of buffer 0 of all ranks in buffer 0 of each.
func (p *program) allReduce(alg Algorithm, count, width int) {
	p.cuts = evenly(p.cuts[:0], count, width, p.n)
	switch alg := Choose(alg, p.n, count*width); alg {
	case Ring:
		p.ring()
	case Doubling:
		p.doubling()
	case Tree:
		p.tree()
	case Direct:
		p.direct()
	case Whole:
		p.whole()
	case Gathered:
		p.gathered()
	default:
		if alg <= nestedFrom {
			panic(fmt.Sprintf("collective: there is no %v", alg))
		}
		p.nested(int(alg - nestedFrom))
	}
}

// AllReduceSent is what a rank sends to each peer in an all-reduce, for those who
// plan by link.
func AllReduceSent(alg Algorithm, rank, n, count, width int) []Traffic {
	return written(rank, n, func(p *program) { p.allReduce(alg, count, width) }).sentTo()
}
