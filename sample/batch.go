package sample

import (
	"hash/fnv"
	"slices"

	"starling/rng"
)

// Batch is the part of the graph that one training step needs. Its arrays are
// reused: a sampler that fills it again overwrites them.
type Batch struct {
	Epoch, Number int
	// Vertices are the ids of the rows, in the order the package comment shows.
	Vertices []uint32
	// Blocks are the layers', from the first to the last; or one for all of them.
	Blocks []Block
	// Seeds are the rows of the last layer that the loss is computed on.
	Seeds []uint32
	// SeedWeights multiply the losses of the seeds; empty: one each.
	SeedWeights []float32
	// Scale multiplies the weighted sum of the seeds' losses. In the
	// mean over an epoch every training vertex then counts equally, also those in a
	// last batch that is smaller.
	Scale float64
	// Of batches of pairs: the rows of their ends. The first Positives pairs
	// are positives, the others negatives.
	Left, Right []uint32
	Positives   int
	// Relations, of batches of relations' pairs, say which pairs are of which.
	Relations []RelationRange
	// Temporal: rows are of vertices as of times, so that a vertex may have several. Times are of rows, Degrees of those
	// that are destinations: at their times, by weight.
	Temporal bool
	Times    []int64
	Degrees  []float64
}

// Block is the edges of one layer.
type Block struct {
	Dst, Src int
	// The in-edges of destination i come from Indices[Indptr[i]:Indptr[i+1]].
	Indptr  []int64
	Indices []uint32
	// Weights has one number per edge, RowWeights one per destination for all its
	// edges; they multiply. Empty: all are one.
	Weights    []float32
	RowWeights []float32
	// Places are the edges' positions in the graph; only if edges have features there.
	Places []int64
	// Relations are the edges' relations, ascending in each row; only of a typed graph.
	Relations []uint16
	// ByID: Indices are ids of vertices, not rows of the batch, and Src is Dst. The
	// first block may be so: features are then read in place.
	ByID bool
	// OwnDegrees: degrees count the edges in the block, not in the whole graph.
	OwnDegrees bool
}

// Method is a way to draw batches, ready to be used by several samplers at once.
type Method interface {
	// Batches is how many there are in an epoch.
	Batches() int
	// Sampler makes one, with memory of its own.
	Sampler() Sampler
}

// Sampler draws batches, one at a time.
type Sampler interface {
	// Sample fills b with a batch of an epoch.
	Sample(b *Batch, epoch, number int)
}

// Block returns the block of a layer.
func (b *Batch) Block(layer int) *Block {
	if len(b.Blocks) == 1 {
		return &b.Blocks[0]
	}
	return &b.Blocks[layer]
}

// OwnDegree is a destination's in its block, with and without loops.
func (x *Block) OwnDegree(i int) (all, noLoops float64) {
	for e := x.Indptr[i]; e < x.Indptr[i+1]; e++ {
		w := 1.0
		if len(x.Weights) > 0 {
			w = float64(x.Weights[e])
		}
		all += w
		if x.Indices[e] != uint32(i) {
			noLoops += w
		}
	}
	return all, noLoops
}

// Edges is how many all blocks have together.
func (b *Batch) Edges() (n int) {
	for i := range b.Blocks {
		n += len(b.Blocks[i].Indices)
	}
	return n
}

// Reset empties a batch, keeping its memory.
func (b *Batch) Reset(epoch, number, blocks int) {
	b.Epoch, b.Number, b.Scale = epoch, number, 1
	b.Vertices, b.Seeds, b.SeedWeights = b.Vertices[:0], b.Seeds[:0], b.SeedWeights[:0]
	b.Left, b.Right, b.Positives, b.Relations = b.Left[:0], b.Right[:0], 0, b.Relations[:0]
	b.Temporal, b.Times, b.Degrees = false, b.Times[:0], b.Degrees[:0]
	if cap(b.Blocks) < blocks {
		b.Blocks = append(b.Blocks[:cap(b.Blocks)], make([]Block, blocks-cap(b.Blocks))...)
	}
	b.Blocks = b.Blocks[:blocks]
	for i := range b.Blocks {
		x := &b.Blocks[i]
		*x = Block{Indptr: append(x.Indptr[:0], 0), Indices: x.Indices[:0], Weights: x.Weights[:0],
			RowWeights: x.RowWeights[:0], Places: x.Places[:0], Relations: x.Relations[:0]}
	}
}

// FirstSeeds makes the seeds the first n rows.
func (b *Batch) FirstSeeds(n int) {
	b.Seeds = slices.Grow(b.Seeds, n)
	for i := range n {
		b.Seeds = append(b.Seeds, uint32(i))
	}
}

// Keys of different uses under one seed. Changing a text changes every draw.
var (
	useOrder  = hash("order of roots")
	useSample = hash("sample")
	useCount  = hash("count samples")

	useHoldOut   = hash("edges held out")
	useNegatives = hash("negatives")
	useJoint     = hash("joint negatives")
	useRanked    = hash("ranked pairs")
	useTurn      = hash("turn of pairs")
	useWalks     = hash("walks")
)

// Use is the key of a use that other packages have for the same seed.
func Use(name string) uint64 { return hash(name) }

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// BatchKey returns the key of all draws for a batch.
func BatchKey(seed uint64, epoch, number int) rng.Key {
	return rng.New(seed).Fold(useSample).Fold(uint64(epoch)).Fold(uint64(number))
}
