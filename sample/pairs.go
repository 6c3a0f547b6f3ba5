package sample

import (
	"fmt"
	"slices"

	"starling/graph"
	"starling/rng"
)

// PairSource are the positive pairs of an epoch.
type PairSource interface {
	// Len is how many an epoch has.
	Len() int
	// Pair is pair i of an epoch: the end that negatives keep, and the other. ok is
	// false where there is none.
	Pair(epoch, i int) (kept, other uint32, ok bool)
}

// Edges are the pairs of a graph's edges, the same in every epoch; which end
// negatives keep is drawn in each epoch.
type Edges struct {
	Pairs
	Seed uint64
}

// Pair is pair i.
func (e *Edges) Pair(epoch, i int) (kept, other uint32, ok bool) {
	kept, other = KeptOfEdge(e.Seed, epoch, i, e.U[i], e.V[i])
	return kept, other, true
}

// KeptOfEdge are the ends of edge i, u with the smaller id, in an epoch's order.
func KeptOfEdge(seed uint64, epoch, i int, u, v uint32) (kept, other uint32) {
	return KeptEnd(rng.New(seed).Fold(useTurn).Fold(uint64(epoch)), uint64(i), u, v)
}

// Walks are pairs of vertices that meet on short random walks, as unsupervised
// GraphSAGE has them (Hamilton, Ying and Leskovec, NeurIPS 2017, §3.2): a walk of
// Length steps starts at every vertex PerVertex times per epoch, and its start is
// paired with the vertex at one of its steps, each as likely. Over epochs that is
// every vertex a walk meets, at as many pairs as there are walks.
//
// Steps go to random in-neighbours; a walk ends at a vertex without any. There is no pair
// where it ends at its start.
type Walks struct {
	Graph             *graph.CSR
	PerVertex, Length int
	Seed              uint64
}

// Len is how many walks there are.
func (w *Walks) Len() int { return w.Graph.Nodes() * w.PerVertex }

// Pair is the start of a walk and a vertex that it meets.
func (w *Walks) Pair(epoch, i int) (start, met uint32, ok bool) {
	start = uint32(i / w.PerVertex)
	key := WalkKey(w.Seed, epoch, start, i%w.PerVertex)
	met = start
	for step := range WalkSteps(key, w.Length) {
		next := w.Graph.Neighbors(met)
		if len(next) == 0 {
			break
		}
		met = next[key.IntN(uint64(1+step), len(next))]
	}
	return start, met, met != start
}

// WalkKey returns the key of walk k from a vertex: its draw 0 is the number of steps, its draw 1+i
// the direction of step i.
func WalkKey(seed uint64, epoch int, start uint32, k int) rng.Key {
	return rng.New(seed).Fold(useWalks).Fold(uint64(epoch)).Fold(uint64(start)).Fold(uint64(k))
}

// WalkSteps is how many steps a walk of a key takes, up to length.
func WalkSteps(key rng.Key, length int) int { return 1 + key.IntN(0, length) }

// PairBatches are mini-batches of pairs: the rows of a batch are the ends of its
// pairs and of the negatives drawn for each, and the neighbours their layers draw,
// as in Neighbour.
type PairBatches struct {
	Graph     *graph.CSR
	Source    PairSource
	Size      int // pairs of a batch, without negatives
	Fanouts   []int
	Negatives *Negatives
	PerPair   int // negatives of a pair
	// Shared are negatives instead of PerPair of its own for each pair; nil: none.
	Shared *Shared
	// Without leaves a batch's own pairs out of the edges that its messages pass over,
	// in both directions: otherwise a model would learn to find them there.
	Without bool
	Seed    uint64

	order      *Order
	neighbours *Neighbour
}

// Prepare checks the settings and makes the method ready.
func (p *PairBatches) Prepare() (Method, error) {
	if p.PerPair < 1 && p.Shared == nil {
		return nil, fmt.Errorf("%d negatives per pair: there must be one or more", p.PerPair)
	}
	all := make([]uint32, p.Source.Len())
	for i := range all {
		all[i] = uint32(i)
	}
	p.order = NewOrder(all, p.Size, p.Seed)
	p.neighbours = &Neighbour{Graph: p.Graph, Fanouts: p.Fanouts, Seed: p.Seed}
	if _, err := p.neighbours.Prepare(); err != nil {
		return nil, err
	}
	return p, nil
}

// Batches is how many there are in an epoch.
func (p *PairBatches) Batches() int { return p.order.Batches() }

// Sampler makes one, with memory of its own.
func (p *PairBatches) Sampler() Sampler { return &pairSampler{of: p, blocks: p.neighbours.sampler()} }

type pairSampler struct {
	of     *PairBatches
	blocks *neighbours
	drawn  Drawn
	ends   []uint32
	links  []uint64
}

func (s *pairSampler) Sample(b *Batch, epoch, number int) {
	if pairs := s.of.order.Batch(epoch, number); s.of.Shared != nil {
		s.drawn.DrawShared(s.of.Source, s.of.Negatives, s.of.Shared, epoch, number, pairs)
	} else {
		s.drawn.Draw(s.of.Source, s.of.Negatives, s.of.PerPair, epoch, number, pairs)
	}
	s.blocks.without.reset()
	seeds := s.seeds()
	if s.of.Without {
		s.exclude(&s.drawn)
	}
	s.blocks.blocks(b, seeds, epoch, number)
	b.Positives, b.Scale = s.drawn.Positives, 1/float64(s.of.order.size)
	for i := range s.drawn.Left {
		left, _ := s.blocks.table.find(s.drawn.Left[i])
		right, _ := s.blocks.table.find(s.drawn.Right[i])
		b.Left, b.Right = append(b.Left, left), append(b.Right, right)
	}
}

// seeds are the distinct ends, of positives first.
func (s *pairSampler) seeds() []uint32 {
	s.blocks.table.begin()
	s.ends = s.ends[:0]
	for i := range s.drawn.Left {
		_, s.ends = s.blocks.table.add(s.ends, s.drawn.Left[i])
		_, s.ends = s.blocks.table.add(s.ends, s.drawn.Right[i])
	}
	return s.ends
}

// exclude takes the positives out of the edges that blocks draw from.
// REQUIRES: the table has the rows of all ends.
func (s *pairSampler) exclude(d *Drawn) {
	s.links = s.links[:0]
	for i := range d.Positives {
		u, _ := s.blocks.table.find(d.Left[i])
		v, _ := s.blocks.table.find(d.Right[i])
		s.links = append(s.links, uint64(u)<<32|uint64(d.Right[i]), uint64(v)<<32|uint64(d.Left[i]))
	}
	slices.Sort(s.links)
	s.blocks.without.fill(slices.Compact(s.links))
}

// Drawn are the pairs of one step: the first Positives are positives, the
// others negatives. Its memory is reused.
type Drawn struct {
	Left, Right []uint32
	Positives   int

	batch     []Positive
	negatives []uint32
}

// Draw fills d with pairs of a source and the negatives of each.
func (d *Drawn) Draw(source PairSource, n *Negatives, perPair, epoch, batch int, pairs []uint32) {
	d.Left, d.Right = d.Left[:0], d.Right[:0]
	for _, i := range pairs {
		if u, v, ok := source.Pair(epoch, int(i)); ok {
			d.Left, d.Right = append(d.Left, u), append(d.Right, v)
		}
	}
	d.Positives = len(d.Left)
	for _, i := range pairs {
		u, _, ok := source.Pair(epoch, int(i))
		if !ok {
			continue
		}
		for k := range perPair {
			d.Left, d.Right = append(d.Left, u), append(d.Right, n.Draw(epoch, batch, int(i), k, u))
		}
	}
}
