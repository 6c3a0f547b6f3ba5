package tensor

// GraphDrawer is a device that draws mini-batches itself, from a graph that it holds.
type GraphDrawer interface {
	// NewDrawing puts a graph there. The slices may change when it returns.
	NewDrawing(Neighbourhoods) Drawing
	// DrawingFits reports whether a drawing fits there, with some batches of a number of seeds.
	DrawingFits(n Neighbourhoods, seeds, batches int) bool
}

// Neighbourhoods are how batches are drawn, as package sample's Neighbour draws them.
type Neighbourhoods struct {
	Indptr  []int64 // in-edges of all vertices
	Indices []uint32
	Layers  []DrawnLayer // from the first to the last, whose destinations are the seeds
	Replace bool
	Loops   Loops
	// Factor is of each vertex, nil: 1. It makes a block's factors: of sums over edges, times what an edge counts;
	// and, with Own, of vertices.
	Factor []float64
	Own    bool
	// Listed has the vertices of a batch be known to the host, as operations on rows of its memory need them.
	Listed bool
}

// DrawnLayer is how a layer's edges are drawn.
type DrawnLayer struct {
	Fanout int  // below 0: all edges
	ByID   bool // sources are vertices of the graph, not rows of the batch, and there is no transpose
}

// Loops says what becomes of the loops of a block.
type Loops int

const (
	LoopsDrawn Loops = iota // they stay
	LoopFree                // there are none
	Looped                  // each destination has one, at its end
)

// Drawing draws batches, one at a time; any goroutine may call it, while another calls the device. It ends with the
// device.
type Drawing interface {
	NewBatch() DrawnBatch
}

// DrawnBatch is memory of the device for a batch, which is used again.
type DrawnBatch interface {
	// Draw draws the neighbourhoods of distinct seeds, each layer by its key, and waits.
	Draw(seeds []uint32, keys []uint64) error
	// Vertices are the vertices of the batch, by row.
	Vertices() Index
	// Own are their factors; none where they were not asked for.
	Own() Matrix
	Block(layer int) DrawnBlock
	// Done: what was called on the device before is the last to read the batch.
	Done()
}

// DrawnBlock is a layer's edges on the device.
type DrawnBlock struct {
	In, Out *Sparse // Out, the transpose, is nil of a block by id
	// Scale is the factors of sums over edges, by row; none where all edges are drawn.
	Scale Matrix
}

// DrawnSparse is a matrix of entries that the device has.
func DrawnSparse(rows, cols int, entries int64, ptr Matrix, index Index, perm Index) *Sparse {
	return &Sparse{Rows: rows, Cols: cols, entries: entries, ptr: ptr, index: index, perm: perm}
}
