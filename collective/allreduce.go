package collective

import "fmt"

// Algorithm is how a sum is made.
type Algorithm uint8

const (
	Auto     Algorithm = iota // the fastest for the size and the number of ranks
	Ordered                   // the fastest of those that add in the order of ranks
	Ring                      // least bytes, neighbours only
	Doubling                  // fewest rounds
	Tree                      // fewest messages
	Direct                    // ordered: least bytes, two rounds
	Whole                     // ordered: one round
	algorithms
)

var algorithmNames = [algorithms]string{"auto", "ordered", "ring", "doubling", "tree", "direct", "whole"}

func (a Algorithm) String() string {
	if a < algorithms {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

const (
	// wholeTo is the size up to which Ordered sends all to all in one round: what
	// it sends too much, (n-1)·size instead of about 2·size, costs less than the
	// second round.
	wholeTo = 4 << 10
	// doublingTo is the size up to which rounds count for more than bytes.
	doublingTo = 32 << 10
	// treeFrom is the number of ranks from which a tree's fewer messages count for
	// more than recursive doubling's fewer rounds.
	treeFrom = 32
)

// Choose is what an algorithm stands for among n ranks and so many bytes: Auto
// and Ordered become one of the others.
func Choose(alg Algorithm, n, bytes int) Algorithm {
	switch {
	case alg == Ordered && (n-1)*bytes <= wholeTo:
		return Whole
	case alg == Ordered:
		return Direct
	case alg != Auto:
		return alg
	case bytes > doublingTo:
		return Ring
	case n >= treeFrom:
		return Tree
	}
	return Doubling
}

// allReduce leaves the sum of buffer 0 of all ranks in buffer 0 of each.
func (p *program) allReduce(alg Algorithm, count, width int) {
	p.cuts = evenly(p.cuts[:0], count, width, p.n)
	switch Choose(alg, p.n, count*width) {
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
	default:
		panic(fmt.Sprintf("collective: there is no %v", alg))
	}
}

// PlanAllReduce is the traffic of a rank in an all-reduce of count numbers of
// width bytes.
func PlanAllReduce(alg Algorithm, rank, n, count, width int) Plan {
	cuts := evenly(nil, count, width, n)
	switch Choose(alg, n, count*width) {
	case Doubling:
		return planDoubling(rank, n, count*width)
	case Tree:
		return planTree(rank, n, count*width)
	case Direct:
		return planDirect(rank, n, cuts)
	case Whole:
		return planWhole(n, count*width)
	}
	return planRing(rank, n, cuts)
}

// AllReduceSent is what a rank sends to each peer in an all-reduce, for those who
// plan by link.
func AllReduceSent(alg Algorithm, rank, n, count, width int) []Traffic {
	return written(rank, n, func(p *program) { p.allReduce(alg, count, width) }).sentTo()
}
