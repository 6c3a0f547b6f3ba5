package sample

import (
	"fmt"
	"slices"

	"starling/graph"
)

// RelationBatches are mini-batches of pairs of relations: as PairBatches, with the pairs of all relations shuffled
// together, negatives of the destination's type, and edges drawn by relation.
type RelationBatches struct {
	Graph   *graph.CSR // without what is held out
	Types   *Types
	Sources []RelationSource
	Size    int // pairs of a batch, without negatives
	Fanouts []int
	PerPair int
	// Shared are negatives that the pairs of one relation in a batch share, instead of PerPair for each; nil: none.
	Shared *Shared
	// Without leaves a batch's own pairs out of its messages, and their edges of the reverse relation.
	Without bool
	Seed    uint64

	order      *Order
	first      []int // of each relation's pairs among all; the last is their number
	neighbours *Neighbour
}

// RelationSource are the pairs of one relation.
type RelationSource struct {
	Pairs
	Relation int
	// Negative is negative k of pair i in an epoch.
	Negative func(epoch, i, k int) uint32
	// Of negatives that pairs share: how they are drawn, and the sources as that takes them.
	Negatives *RelationNegatives
	Rows      []uint32
}

// RelationRange is the pairs of one relation in a batch: from the end of the one before to End. The first Positives of
// them are positives.
type RelationRange struct{ Positives, End int }

// Prepare checks the settings and makes the method ready.
func (p *RelationBatches) Prepare() (Method, error) {
	if p.PerPair < 1 && p.Shared == nil {
		return nil, fmt.Errorf("%d negatives per pair: there must be one or more", p.PerPair)
	}
	p.first = []int{0}
	for i := range p.Sources {
		p.first = append(p.first, p.first[i]+p.Sources[i].Len())
	}
	all := make([]uint32, p.first[len(p.Sources)])
	for i := range all {
		all[i] = uint32(i)
	}
	p.order = NewOrder(all, p.Size, p.Seed)
	p.neighbours = &Neighbour{Graph: p.Graph, Fanouts: p.Fanouts, Seed: p.Seed, Types: p.Types}
	if _, err := p.neighbours.Prepare(); err != nil {
		return nil, err
	}
	return p, nil
}

// Batches is how many there are in an epoch.
func (p *RelationBatches) Batches() int { return p.order.Batches() }

// Sampler makes one, with memory of its own.
func (p *RelationBatches) Sampler() Sampler {
	return &relationSampler{of: p, blocks: p.neighbours.sampler(), lists: make([][]int, len(p.Sources))}
}

type relationSampler struct {
	of          *RelationBatches
	blocks      *neighbours
	lists       [][]int  // of each relation: its pairs in the batch
	left, right []uint32 // ids
	ranges      []RelationRange
	seeds       []uint32
}

func (s *relationSampler) Sample(b *Batch, epoch, number int) {
	positives := s.draw(epoch, number, s.of.order.Batch(epoch, number))
	s.seeds = append(append(s.seeds[:0], s.left...), s.right...)
	slices.Sort(s.seeds) // and so by type
	s.seeds = slices.Compact(s.seeds)
	s.blocks.excluded.reset()
	if s.of.Without {
		s.exclude()
	}
	s.blocks.blocks(b, s.seeds, epoch, number)
	b.Positives, b.Scale = positives, 1/float64(s.of.order.size)
	b.Relations = append(b.Relations, s.ranges...)
	for i := range s.left {
		b.Left, b.Right = append(b.Left, s.row(s.left[i])), append(b.Right, s.row(s.right[i]))
	}
}

// row is the row of a seed.
func (s *relationSampler) row(v uint32) uint32 {
	at, _ := slices.BinarySearch(s.seeds, v)
	return uint32(at)
}

// draw lists the pairs of a batch, relation by relation, and the negatives of each. It returns how many are positives.
func (s *relationSampler) draw(epoch, number int, pairs []uint32) (positives int) {
	for r := range s.lists {
		s.lists[r] = s.lists[r][:0]
	}
	for _, i := range pairs {
		r, _ := slices.BinarySearch(s.of.first, int(i)+1)
		s.lists[r-1] = append(s.lists[r-1], int(i)-s.of.first[r-1])
	}
	s.left, s.right, s.ranges = s.left[:0], s.right[:0], s.ranges[:0]
	for r, list := range s.lists {
		source := &s.of.Sources[r]
		for _, i := range list {
			s.left, s.right = append(s.left, source.U[i]), append(s.right, source.V[i])
		}
		if s.of.Shared != nil {
			s.drawShared(source, list, epoch, number)
		} else {
			s.drawEach(source, list, epoch)
		}
		s.ranges = append(s.ranges, RelationRange{len(list), len(s.left)})
		positives += len(list)
	}
	return positives
}

// drawEach appends negatives of their own for a relation's pairs of a batch.
func (s *relationSampler) drawEach(source *RelationSource, list []int, epoch int) {
	for _, i := range list {
		for k := range s.of.PerPair {
			s.left, s.right = append(s.left, source.U[i]), append(s.right, source.Negative(epoch, i, k))
		}
	}
}

// exclude takes the positives, and their edges of the reverse relation, out of the edges that blocks draw from.
func (s *relationSampler) exclude() {
	from := 0
	for r, list := range s.ranges {
		relation := s.of.Sources[r].Relation
		reverse := Opposite(s.of.Types.Schema, relation)
		for i := from; i < from+list.Positives; i++ {
			u, v := s.left[i], s.right[i]
			s.blocks.excluded.add(int(s.row(v)), relation, u)
			if reverse >= 0 {
				s.blocks.excluded.add(int(s.row(u)), reverse, v)
			}
		}
		from = list.End
	}
}

// excluded are edges of a typed graph that a batch must not draw: of a row and relation, sources in ascending order.
type excluded struct{ sources map[uint64][]uint32 }

func (x *excluded) reset() { clear(x.sources) }

func (x *excluded) add(row, relation int, source uint32) {
	if x.sources == nil {
		x.sources = map[uint64][]uint32{}
	}
	key := uint64(row)<<16 | uint64(relation)
	list := x.sources[key]
	if at, found := slices.BinarySearch(list, source); !found {
		x.sources[key] = slices.Insert(list, at, source)
	}
}

func (x *excluded) of(row int, relation uint16) []uint32 {
	if len(x.sources) == 0 {
		return nil
	}
	return x.sources[uint64(row)<<16|uint64(relation)]
}
