package store

import (
	"context"
	"errors"

	"starling/coflow"
	"starling/sample"
)

// Known is what was learned of the vertices of a batch, row by row.
type Known struct {
	IDs     []uint32  // in the dataset
	NoLoops []float64 // degrees without loops, by weight
	All     []float64 // degrees, by weight; of destinations only
	// EdgeFeatures are those of the edges of each block, in its order.
	EdgeFeatures [][]float32
}

// Sampler draws batches as sample.Neighbour does, from owners wherever they are: for the same
// seed vertices and the same key the blocks are those of a sampler that has the whole graph,
// vertices by their numbers in the partition. It is used by one goroutine.
type Sampler struct {
	Fanouts []int // from the last layer to the first
	Seed    uint64

	batch *sample.Batch
	known *Known
	draws draws
	rows  rowTable

	without *exclusions
	masks   uint32
}

// Sampler makes one, with memory of its own.
func (s *Store) Sampler(fanouts []int, seed uint64, opt Options) *Sampler {
	return &Sampler{Fanouts: fanouts, Seed: seed, draws: newDraws(s, opt)}
}

// Exclude has the next batches drawn as if the graph did not have some edges. The list is sorted.
func (m *Sampler) Exclude(list []Excluded) { m.without = newExclusions(list) }

// Guide has the next batches drawn by a version of this worker's masks, which TellMasks has told; 0:
// by none.
func (m *Sampler) Guide(version uint32) { m.masks = version }

// Sample fills b with the blocks of some seed vertices, which are distinct, and known with
// what was learned.
func (m *Sampler) Sample(ctx context.Context, b *sample.Batch, known *Known, seeds []uint32, epoch, number int) error {
	m.Begin(b, known, seeds, epoch, number)
	for hop := range m.Fanouts {
		if err := m.Ask(hop); err != nil {
			return errors.Join(err, m.Wait(ctx))
		}
		if err := m.Wait(ctx); err != nil {
			return err
		}
		if err := m.Stitch(hop); err != nil {
			return err
		}
	}
	return nil
}

// Begin begins a batch. For each hop Ask, Wait and Stitch follow: Wait only waits for the
// network, the others compute.
func (m *Sampler) Begin(b *sample.Batch, known *Known, seeds []uint32, epoch, number int) {
	m.batch, m.known = b, known
	b.Reset(epoch, number, len(m.Fanouts))
	m.rows.begin()
	known.begin(len(m.Fanouts))
	for _, v := range seeds {
		_, b.Vertices = m.rows.add(b.Vertices, v)
	}
	b.FirstSeeds(len(seeds))
	known.grow(len(seeds))
}

// Ask has the owners of the batch's vertices so far draw their edges of a hop, the first from
// the seed vertices.
func (m *Sampler) Ask(hop int) error {
	b, fanout, layer := m.batch, m.Fanouts[hop], len(m.Fanouts)-1-hop
	id := coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: int16(layer), Type: coflow.Inputs}
	return m.draws.ask(id, b.Vertices, &query{key: sample.LayerKey(m.Seed, b.Epoch, b.Number, layer), fanout: fanout,
		seeds: hop == 0, without: m.without, masks: m.masks})
}

// Wait waits for what was asked.
func (m *Sampler) Wait(ctx context.Context) error { return m.draws.wait(ctx) }

// Stitch makes the hop's block, and adds the vertices that it found.
func (m *Sampler) Stitch(hop int) error {
	if err := m.draws.take(); err != nil {
		return err
	}
	m.stitch(m.batch, m.known, len(m.Fanouts)-1-hop)
	if hop == len(m.Fanouts)-1 {
		m.without.takeOut(m.known, m.rows.find)
	}
	return nil
}

// stitch makes a layer's block of what the parts drew, in the order of its destinations.
func (m *Sampler) stitch(b *sample.Batch, known *Known, layer int) {
	x, w := &b.Blocks[layer], &m.draws
	x.Dst = len(b.Vertices)
	features := known.EdgeFeatures[layer][:0]
	dim := w.s.Part.In.EdgeDim
	w.each(b.Vertices, func(i int, d *drawn, k int) {
		known.destination(i, d, k)
		lo, hi := d.Indptr[k], d.Indptr[k+1]
		for _, at := range d.Indices[lo:hi] {
			row, longer := m.rows.add(b.Vertices, d.source(at))
			if b.Vertices = longer; int(row) >= len(known.IDs) {
				known.source(row, d, at)
			}
			x.Indices = append(x.Indices, row)
		}
		if len(d.Weights) > 0 {
			x.Weights = append(x.Weights, d.Weights[lo:hi]...)
		}
		if len(d.RowWeights) > 0 {
			x.RowWeights = append(x.RowWeights, d.RowWeights[k])
		}
		features = append(features, d.features[int(lo)*dim:int(hi)*dim]...)
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	})
	x.Src = len(b.Vertices)
	known.EdgeFeatures[layer] = features
}

// grow makes place for more rows.
func (k *Known) grow(rows int) {
	for len(k.IDs) < rows {
		k.IDs, k.NoLoops = append(k.IDs, 0), append(k.NoLoops, 0)
	}
}

// rowTable numbers the vertices of a batch in the order they are first added: a hash table
// with open addressing, since an array of all vertices, as on one machine, would grow with the
// graph and not with the batch.
type rowTable struct {
	entries []rowEntry
	used    int
	list    uint32 // entries of other lists are free
}

type rowEntry struct{ vertex, row, list uint32 }

func (t *rowTable) begin() {
	if t.list++; t.list == 0 || t.entries == nil {
		t.entries, t.list = make([]rowEntry, max(len(t.entries), 1<<10)), 1
	}
	t.used = 0
}

// add is the row of v, which is put at the end of rows if it was not there.
func (t *rowTable) add(rows []uint32, v uint32) (row uint32, longer []uint32) {
	if 2*t.used >= len(t.entries) {
		t.double()
	}
	e := t.slot(v)
	if e.list == t.list {
		return e.row, rows
	}
	t.used++
	*e = rowEntry{v, uint32(len(rows)), t.list}
	return e.row, append(rows, v)
}

// find is the row of v.
func (t *rowTable) find(v uint32) (row uint32, ok bool) {
	e := t.slot(v)
	return e.row, e.list == t.list
}

// slot is where v is, or would be.
func (t *rowTable) slot(v uint32) *rowEntry {
	mask := uint32(len(t.entries) - 1)
	for at := v * 0x9e3779b1 >> 7 & mask; ; at = (at + 1) & mask {
		if e := &t.entries[at]; e.list != t.list || e.vertex == v {
			return e
		}
	}
}

func (t *rowTable) double() {
	old := t.entries
	t.entries = make([]rowEntry, 2*len(old))
	for _, e := range old {
		if e.list == t.list {
			*t.slot(e.vertex) = e
		}
	}
}
