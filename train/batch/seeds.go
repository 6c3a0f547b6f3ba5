package batch

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"starling/exchange"
	"starling/partition"
	"starling/rng"
	"starling/sample"
)

// Seeds are the seed vertices of batches, divided over workers: --roots.
//
//	owner   two levels, as in DistDGL: each on the server that owns it; what is more than
//	        slack times an even share moves to servers with less. On a server, whose workers read
//	        each other's parts in place, they are divided evenly, to their owners as far as that
//	        goes. The batch of all workers together is the batch of one worker.
//	random  the batch is divided at random and evenly, and is again the batch of one worker.
//	local   training vertices are split evenly into ranges, each for the worker that owns most
//	        of it, which permutes them by itself (DistDGL as published)
type Seeds interface {
	// Batches is the number of batches in an epoch.
	Batches() int
	// Seeds are this worker's in a batch, by number in the partition.
	Seeds(epoch, number int) []uint32
	// Scale is what each seed vertex counts.
	Scale() float64
	// Whole is the batch that Seeds are a share of.
	Whole(epoch, number int) []uint32
	// Divide is this worker's share of any vertices of a batch.
	Divide(all []uint32, epoch, number int) []uint32
}

// slack bounds the share of a batch that a server computes, in even shares.
const slack = 1.1

var useDeal = sample.Use("deal of seed vertices")

// NewSeeds divides training, which lists vertices (or other things that the book has owners of) in the
// order of one worker.
func NewSeeds(kind string, book *partition.Book, rank int, training []uint32, size int, seed uint64) Seeds {
	if kind == "local" {
		sorted := slices.Sorted(slices.Values(training))
		lo, hi := len(sorted)*rank/book.Parts, len(sorted)*(rank+1)/book.Parts
		most := (len(sorted) + book.Parts - 1) / book.Parts
		each := max(1, min(size, len(sorted))/book.Parts)
		return &localSeeds{order: sample.NewOrder(sorted[lo:hi], each, uint64(rng.New(seed).Fold(uint64(rank)))),
			count: (most + each - 1) / each, scale: 1 / float64(each*book.Parts), parts: book.Parts}
	}
	return newGlobalSeeds(kind, book, rank, training, size, seed)
}

func newGlobalSeeds(kind string, book *partition.Book, rank int, training []uint32, size int,
	seed uint64) *globalSeeds {
	return &globalSeeds{owner: book.Owner, shares: book.Parts, servers: max(book.Servers, 1), mine: rank,
		random: kind == "random", seed: seed, order: sample.NewOrder(training, size, seed)}
}

// groupSeeds divides batches over groups of workers, not workers.
func groupSeeds(c Setting, book *partition.Book, rank int, training []uint32, size int, seed uint64) Seeds {
	r := newGlobalSeeds(c.Roots, book, rank, training, size, seed)
	each := book.Parts / c.Groups
	r.owner = func(v uint32) int { return book.Owner(v) / each }
	r.shares, r.servers, r.mine = c.Groups, c.Groups, rank/each
	return r
}

// globalSeeds divides the batches of one worker.
type globalSeeds struct {
	owner   func(v uint32) int
	shares  int // that a batch is divided into
	servers int // each of which has equally many shares
	mine    int
	random  bool
	seed    uint64
	order   *sample.Order
}

// ExpectedSeeds is how often, in an epoch, vertices are expected to be seeds of a worker, by number in the partition:
// a training vertex is one once, by --roots.
func ExpectedSeeds(kind string, book *partition.Book, training []uint32, rank int) []float32 {
	if kind == "local" {
		return (&localSeeds{parts: book.Parts}).expect(book, training, rank)
	}
	return newGlobalSeeds(kind, book, rank, nil, 0, 0).expect(book, training, rank)
}

// expecting are seeds of which it is known how often a vertex is expected to be one of a worker.
type expecting interface {
	expect(book *partition.Book, training []uint32, rank int) []float32
}

// expect: at random evenly, else on the share that owns the vertex as far as an even share goes. What is more is of
// those that have less, by how much less.
func (r *globalSeeds) expect(book *partition.Book, training []uint32, rank int) []float32 {
	out, mine := make([]float32, book.Nodes), rank*r.shares/book.Parts
	has, even := make([]float64, r.shares), float64(len(training))/float64(r.shares)
	for _, v := range training {
		has[r.owner(v)]++
	}
	free, kept := 0.0, make([]float64, r.shares)
	for q, n := range has {
		free += max(0, even-n)
		kept[q] = min(1, even/max(n, 1))
	}
	more := 0.0
	if free > 0 {
		more = max(0, even-has[mine]) / free
	}
	for _, v := range training {
		switch q := r.owner(v); {
		case r.random:
			out[v] = 1 / float32(r.shares)
		case q == mine:
			out[v] = float32(kept[q])
		default:
			out[v] = float32((1 - kept[q]) * more)
		}
	}
	return out
}

// expect: each vertex once, on the worker of its range.
func (r *localSeeds) expect(book *partition.Book, training []uint32, rank int) []float32 {
	out, sorted := make([]float32, book.Nodes), slices.Sorted(slices.Values(training))
	for _, v := range sorted[len(sorted)*rank/r.parts : len(sorted)*(rank+1)/r.parts] {
		out[v] = 1
	}
	return out
}

func (r *globalSeeds) Batches() int { return r.order.Batches() }

func (r *globalSeeds) Scale() float64 { return 1 / float64(r.order.Size()) }

func (r *globalSeeds) Seeds(epoch, number int) []uint32 {
	return r.Divide(r.Whole(epoch, number), epoch, number)
}

func (r *globalSeeds) Whole(epoch, number int) []uint32 { return r.order.Batch(epoch, number) }

func (r *globalSeeds) Divide(all []uint32, epoch, number int) (list []uint32) {
	if r.random {
		return Deal(all, r.shares, r.seed, epoch, number)[r.mine]
	}
	for i, q := range Balanced(all, r.owner, r.shares, r.servers) {
		if q == r.mine {
			list = append(list, all[i])
		}
	}
	return list
}

// Deal divides a batch at random into n shares.
func Deal(all []uint32, n int, seed uint64, epoch, number int) [][]uint32 {
	out := make([][]uint32, n)
	key := rng.New(seed).Fold(useDeal).Fold(uint64(epoch)).Fold(uint64(number))
	for i, at := range key.Perm(len(all)) {
		q := i * n / len(all)
		out[q] = append(out[q], all[at])
	}
	return out
}

// Balanced is which share each vertex of a batch belongs to: a server, and of its shares one.
func Balanced(all []uint32, owner func(uint32) int, shares, servers int) []int {
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

// localSeeds permutes the worker's own.
type localSeeds struct {
	order *sample.Order
	count int
	scale float64
	parts int
}

func (r *localSeeds) Batches() int { return r.count }

func (r *localSeeds) Scale() float64 { return r.scale }

func (r *localSeeds) Seeds(epoch, number int) []uint32 { return r.Whole(epoch, number) }

func (r *localSeeds) Whole(epoch, number int) []uint32 {
	if number >= r.order.Batches() {
		return nil
	}
	return r.order.Batch(epoch, number)
}

func (r *localSeeds) Divide(all []uint32, _, _ int) []uint32 { return all }

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
	var each []string
	for q, b := range lists {
		numbers := exchange.Numbers(b)
		each = append(each, fmt.Sprintf("worker %d has %d", q, len(numbers)/2))
		if len(numbers)%2 != 0 {
			return nil, fmt.Errorf("worker %d tells of its training vertices in %d bytes", q, len(b))
		}
		for at := range slices.Chunk(numbers, 2) {
			if id, v := int64(at[0]), at[1]; id >= p.Book.Nodes || int64(v) >= p.Book.Nodes || p.Book.Owner(v) != q {
				return nil, fmt.Errorf("worker %d tells of training vertex %d, number %d, which it does not have", q,
					id, v)
			}
			pairs = append(pairs, uint64(at[0])<<32|uint64(at[1]))
		}
	}
	if int64(len(pairs)) != p.Book.Train {
		return nil, fmt.Errorf("workers have %d training vertices (%s), the partition says %d; do all workers have "+
			"parts of the same partition?", len(pairs), strings.Join(each, ", "), p.Book.Train)
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
