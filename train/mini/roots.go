package mini

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/exchange"
	"starling/partition"
	"starling/rng"
	"starling/sample"
)

// roots says which seed vertices of a batch this worker computes: --roots.
//
//	owner   two levels, as in DistDGL: each on the server where it is owned; what is more than
//	        slack times an even share moves to servers with less. On a server, whose workers read
//	        each other's parts in place, they are divided evenly, to their owners as far as that
//	        goes. The batch is that of one worker.
//	random  the batch is divided at random and evenly. The batch is that of one worker.
//	local   training vertices are split evenly into ranges, each for the worker that owns most
//	        of it, which permutes them by itself (DistDGL as published)
type roots interface {
	batches() int
	// seeds are this worker's, by number in the partition; scale is what each counts.
	seeds(epoch, number int) (list []uint32, scale float64)
}

// RootsOption is of strategies whose seed vertices may be divided in any of these ways.
type RootsOption struct {
	Roots string `json:"roots" values:"owner,random,local" exact:"owner,random" suffix:"*" omit:"default" help:"who computes the seed vertices of a batch: their owners, workers at random, or each worker its own (DistDGL as published, other batches than one worker's)"`
}

// slack is how many times its even share of a batch a server computes at most.
const slack = 1.1

var useDeal = sample.Use("deal of seed vertices")

func newRoots(kind string, book *partition.Book, rank int, training []uint32, size int, seed uint64) roots {
	if kind == "local" {
		sorted := slices.Sorted(slices.Values(training))
		lo, hi := len(sorted)*rank/book.Parts, len(sorted)*(rank+1)/book.Parts
		most := (len(sorted) + book.Parts - 1) / book.Parts
		each := max(1, min(size, len(sorted))/book.Parts)
		return &localRoots{order: sample.NewOrder(sorted[lo:hi], each, uint64(rng.New(seed).Fold(uint64(rank)))),
			count: (most + each - 1) / each, scale: 1 / float64(each*book.Parts)}
	}
	return &globalRoots{owner: book.Owner, shares: book.Parts, servers: max(book.Servers, 1), mine: rank,
		random: kind == "random", seed: seed, order: sample.NewOrder(training, size, seed)}
}

// byServers divides batches over servers instead.
func (r *globalRoots) byServers(book *partition.Book) {
	owner, rank := r.owner, r.mine
	r.owner = func(v uint32) int { return book.Server(owner(v)) }
	r.shares, r.mine = r.servers, book.Server(rank)
}

// fewRoots are the first batches of others, for a dry run of memory.
type fewRoots struct {
	roots
	count int
}

func (r fewRoots) batches() int { return r.count }

// globalRoots divides the batches of one worker.
type globalRoots struct {
	owner   func(v uint32) int
	shares  int // that a batch is divided into
	servers int // each of which has as many shares
	mine    int
	random  bool
	seed    uint64
	order   *sample.Order
}

func (r *globalRoots) batches() int { return r.order.Batches() }

func (r *globalRoots) seeds(epoch, number int) (list []uint32, scale float64) {
	return r.divide(r.order.Batch(epoch, number), epoch, number), 1 / float64(r.order.Size())
}

// divide is this worker's share of a batch's seed vertices.
func (r *globalRoots) divide(all []uint32, epoch, number int) (list []uint32) {
	if r.random {
		return deal(all, r.shares, r.seed, epoch, number)[r.mine]
	}
	for i, q := range balanced(all, r.owner, r.shares, r.servers) {
		if q == r.mine {
			list = append(list, all[i])
		}
	}
	return list
}

// balanced is which share each vertex of a batch belongs to: a server, and of its shares one.
func balanced(all []uint32, owner func(uint32) int, shares, servers int) []int {
	owners, each := make([]int, len(all)), shares/servers
	for i, v := range all {
		owners[i] = owner(v)
	}
	at := divided(owners, func(owner int) int { return owner / each }, servers, slack)
	on := make([][]int, servers) // places
	for i, server := range at {
		on[server] = append(on[server], i)
	}
	who := make([]int, len(all))
	for server, places := range on {
		first := server * each
		theirs := make([]int, len(places))
		for k, i := range places {
			theirs[k] = owners[i] - first
		}
		for k, q := range divided(theirs, func(owner int) int { return owner }, each, 1) {
			who[places[k]] = first + q
		}
	}
	return who
}

// divided is which of some groups each of a list belongs to: the one that it prefers, if there is
// such and it has fewer than slack even shares; otherwise the one that has the fewest.
func divided(list []int, prefers func(int) int, groups int, slack float64) []int {
	most := int(math.Ceil(slack * float64(len(list)) / float64(groups)))
	to, has := make([]int, len(list)), make([]int, groups)
	var surplus []int
	for i, x := range list {
		if q := prefers(x); q >= 0 && q < groups && has[q] < most {
			to[i] = q
			has[q]++
		} else {
			surplus = append(surplus, i)
		}
	}
	for _, i := range surplus {
		q := slices.Index(has, slices.Min(has))
		to[i] = q
		has[q]++
	}
	return to
}

// localRoots permutes the worker's own.
type localRoots struct {
	order *sample.Order
	count int
	scale float64
}

func (r *localRoots) batches() int { return r.count }

func (r *localRoots) seeds(epoch, number int) ([]uint32, float64) {
	if number >= r.order.Batches() {
		return nil, r.scale
	}
	return r.order.Batch(epoch, number), r.scale
}

// trainingList is all training vertices by number in the partition, in the order of the
// dataset's list, which workers learn from each other.
func trainingList(s *exchange.Setup) ([]uint32, error) {
	p := s.W.Part
	var mine []byte
	for _, v := range p.Splits.Train {
		mine = binary.LittleEndian.AppendUint32(mine, p.IDs[v])
		mine = binary.LittleEndian.AppendUint32(mine, s.W.Global(v))
	}
	lists, err := s.TellServer(0, s.W.End.Size(), mine)
	if err != nil {
		return nil, err
	}
	pairs := make([]uint64, 0, p.Book.Train) // by id
	for q, b := range lists {
		numbers := exchange.Numbers(b)
		if len(numbers)%2 != 0 {
			return nil, fmt.Errorf("worker %d tells of its training vertices in %d bytes", q, len(b))
		}
		for at := range slices.Chunk(numbers, 2) {
			pairs = append(pairs, uint64(at[0])<<32|uint64(at[1]))
		}
	}
	if int64(len(pairs)) != p.Book.Train {
		return nil, fmt.Errorf("workers have %d training vertices, the partition says %d; do all workers have parts "+
			"of the same partition?", len(pairs), p.Book.Train)
	}
	slices.Sort(pairs)
	out := make([]uint32, len(pairs))
	for i, p := range pairs {
		out[i] = uint32(p)
	}
	return out, nil
}

// anyLoops reports whether any worker's part has self-loops.
func anyLoops(s *exchange.Setup) (bool, error) {
	found := 0.0
	in := s.W.Part.In
	for v := range uint32(in.Nodes()) {
		if slices.Contains(in.Neighbors(v), v) {
			found = 1
			break
		}
	}
	all, err := s.Share(found)
	return slices.ContainsFunc(all, func(v []float64) bool { return v[0] > 0 }), err
}
