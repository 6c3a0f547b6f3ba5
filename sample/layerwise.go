package sample

import (
	"fmt"

	"starling/graph"
	"starling/rng"
)

// layerwise is what FastGCN and LADIES share: a layer's sources are drawn
// together, independently of each other, from a distribution q over vertices, and
// every edge from one of them to a destination is used. A source drawn c times of t
// makes its edges count c/(t·q): the estimate is unbiased. The destinations
// themselves are sources too, so that a vertex's own row is always there.
type layerwise struct {
	Graph *graph.CSR
	// Roots are the training vertices, Size how many make a batch.
	Roots []uint32
	Size  int
	// Draws are those of the layers from the last one, the roots', to the first.
	Draws []int
	Seed  uint64

	degrees []float64
	order   *order
}

func (l *layerwise) prepare() error {
	for _, t := range l.Draws {
		if t < 1 {
			return fmt.Errorf("fanout %d: a layer needs at least 1 draw", t)
		}
	}
	if l.Graph.Weights != nil {
		if err := checkWeights(l.Graph); err != nil {
			return err
		}
	}
	l.degrees = degrees(l.Graph)
	l.order = newOrder(l.Roots, l.Size, l.Seed)
	return nil
}

func (l *layerwise) Batches() int { return l.order.batches() }

// drawing is a sampler's memory for layers drawn together.
type drawing struct {
	*layerwise
	rows  *table
	mine  *table    // of the vertices drawn
	drawn []uint32  // distinct
	count []float32 // what the edges from them count
	times []int
}

func (l *layerwise) drawing() drawing {
	return drawing{layerwise: l, rows: newTable(l.Graph.Nodes()), mine: newTable(l.Graph.Nodes())}
}

// sample draws the blocks from the last to the first; draw fills drawn and count for
// the destinations.
func (d *drawing) sample(b *Batch, epoch, number int, draw func(key rng.Key, dst []uint32, t int), after func(x *Block, dst []uint32)) {
	layers := len(d.Draws)
	b.reset(epoch, number, layers)
	d.rows.begin()
	for _, v := range d.order.batch(epoch, number) {
		_, b.Vertices = d.rows.add(b.Vertices, v)
	}
	b.firstRoots(len(b.Vertices))
	key := batchKey(d.Seed, epoch, number)
	for hop, t := range d.Draws {
		layer := layers - 1 - hop
		dst := b.Vertices
		draw(key.Fold(uint64(layer)), dst, t)
		x := &b.Blocks[layer]
		d.connect(b, x, dst)
		after(x, dst)
	}
	b.Scale = 1 / float64(d.order.size)
}

// take draws t vertices from q, whose numbers are places in list (nil: vertices).
func (d *drawing) take(key rng.Key, q *distribution, list []uint32, t int) {
	d.drawn, d.times, d.count = d.drawn[:0], d.times[:0], d.count[:0]
	d.mine.begin()
	if q.total() == 0 {
		return
	}
	for i := range t {
		n := q.draw(key, uint64(i))
		u := n
		if list != nil {
			u = list[n]
		}
		at, longer := d.mine.add(d.drawn, u)
		if len(longer) > len(d.drawn) {
			d.drawn = longer
			d.times = append(d.times, 0)
			d.count = append(d.count, float32(1/(float64(t)*q.probability(n))))
		}
		d.times[at]++
	}
	for i, n := range d.times {
		d.count[i] *= float32(n)
	}
}

// connect finds the edges from vertices drawn to destinations.
func (d *drawing) connect(b *Batch, x *Block, dst []uint32) {
	x.Dst = len(dst)
	for _, v := range dst {
		for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
			u := d.Graph.Indices[e]
			at, ok := d.mine.find(u)
			if !ok {
				continue
			}
			var row uint32
			row, b.Vertices = d.rows.add(b.Vertices, u)
			x.Indices = append(x.Indices, row)
			if d.Graph.EdgeDim > 0 {
				x.Places = append(x.Places, uint32(e))
			}
			x.Weights = append(x.Weights, d.count[at]*float32(weight(d.Graph, e)))
		}
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
	x.Src = len(b.Vertices)
}
