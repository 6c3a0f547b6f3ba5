package batch

import (
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/tensor"
	"starling/train"
)

// form is what becomes of a block's loops.
type form uint8

const (
	asDrawn  form = iota
	loopFree      // none: GCN adds the one that counts
	looped        // one at each destination: attention
)

// formOf is the form that a model's layers use.
func formOf(m *nn.Model, hasLoops bool) form {
	switch name := m.Config.Model; {
	case m.Config.Typed != nil: // relations have loops of their own
		return asDrawn
	case strings.HasPrefix(name, "gat"):
		return looped
	case strings.HasSuffix(name, "gcn") || name == "resgcn+":
		if hasLoops {
			return loopFree
		}
	}
	return asDrawn
}

// Host turns batches as drawn into batches that a device can use, while others are trained on.
type Host struct {
	Features *graph.Features // of all vertices; where they are pulled, of this worker's
	Labels   *graph.Labels   // likewise; nil: batches have none
	First    FirstLayer      // computes the first layer with other workers, or nil
	form     form
	graph    *graph.CSR // whose edges have features that the model looks at, or nil
	// schema is of a typed graph, or nil; rowType is what rows of its types are in.
	schema  *graph.Schema
	rowType tensor.DType

	weighting   nn.Weighting         // what labels count in the loss
	targets     *graph.Scale         // what numbers are standardized by; nil: nothing
	forwardOnly bool                 // nothing goes back over blocks
	kind        *nn.Kind             // of all layers' sums, if that is known, with
	degrees     *nn.Degrees          // of the whole graph
	parcels     func() tensor.Parcel // where batches are laid ahead
	returned    func(b *Batch)       // is told of batches that were trained on; or nil
	disk        *onDisk              // features are read from; nil: they are not
	late        bool                 // rows come long after all else, and batches are prepared before
}

// FirstLayer computes the first layers of batches with other workers, which have the features.
type FirstLayer interface {
	nn.Split
	// Begin is the input of a batch's step.
	Begin(b *Batch) nn.Input
	// Failure is why the layer's rows mean nothing.
	Failure() error
	// Sums reports whether the layer's sums are computed there too, so that nothing goes back over the first block.
	Sums() bool
}

// NewHost is the host side of a loop's batches, of vertices of a graph.
func NewHost(f *train.Loop, g *graph.CSR, features *graph.Features, labels *graph.Labels, hasLoops bool) *Host {
	h := &Host{Features: features, Labels: labels, form: formOf(f.Model, hasLoops), weighting: f.Weighting,
		targets: f.Targets}
	if f.X.Typed != nil {
		h.schema, h.rowType, h.Features = f.Schema, f.Dev.RowType(f.Opt.Rows), &graph.Features{}
	}
	if f.Opt.Model.EdgeDim > 0 {
		h.graph = g
	}
	return h
}

// OfBlocks is the host side of single blocks, which have neither features nor labels. forwardOnly: nothing goes
// back over them.
func (h *Host) OfBlocks(forwardOnly bool) *Host {
	return &Host{Features: &graph.Features{}, form: h.form, graph: h.graph, forwardOnly: forwardOnly, schema: h.schema}
}

// Batch is a prepared batch: what was drawn, and all that is made of it on the host. Its
// memory is reused.
type Batch struct {
	sample.Batch
	*Host
	// Pulled is what came from owners; nil: the whole graph is here.
	Pulled *Pulled
	Empty  bool // no worker has a seed vertex
	Err    error
	// Kept is what a strategy keeps with the batch. It may have Bytes() int64, the memory that it takes on the
	// host, and Outputs() int, the number of rows of the last layer where the batch has no blocks.
	Kept any
	// Noted are the learnt rows that it needs, where they come ahead; or nil.
	Noted *store.NotedRows
	rows  []byte // of features, read from disk

	edges   []edges
	known   batchLabels
	laid    *laid             // on the device already
	drawn   tensor.DrawnBatch // by the device; nil: by the host
	parcel  tensor.Parcel
	inPlace bool            // the pulled rows are the input where they are
	typed   []tensor.Matrix // rows of a typed batch's input that the device has, until its step ends

	// Sparse features of the batch's vertices, and the other way round.
	features      sparseRows
	featuresBack  sparseRows
	featuresPlace []uint32
}

// NewBatch is an empty batch whose rows are pulled.
func NewBatch(h *Host) *Batch { return &Batch{Host: h, Pulled: &Pulled{}} }

type sparseRows struct {
	ptr   []int64
	index []uint32
	value []float32
}

// In are a block's edges by destination, in the form that the model's layers use.
func (r *Batch) In(block int) (ptr []int64, index []uint32, value []float32) {
	in := &r.edges[block].in
	return in.ptr, in.index, in.value
}

// edges are a block's in both directions.
type edges struct {
	in    sparseRows
	back  sparseRows
	place []uint32 // of the entries of back, in in
	own   sparseRows
	// divided is the same as in, where Divide was called.
	divided dividedEdges
	// Factors of the layer's sums, made with the batch; empty: they are made when they are needed, or are all one.
	// Those of own rows, of sums over edges where they are others, and of columns.
	ownScale, rowScale, colScale []float32
	// features belong to in's edges, where the model looks at them.
	features []float32
}

// Bytes is about what the batch holds on the host: its blocks both ways, what is known of its vertices, and rows.
func (r *Batch) Bytes() (n int64) {
	n = 4 * int64(cap(r.Vertices))
	for i := range r.Blocks {
		b := &r.Blocks[i]
		n += 2 * (8*int64(cap(b.Indptr)) + 4*int64(cap(b.Indices)+cap(b.Weights)+cap(b.RowWeights)))
		n += 2 * int64(cap(b.Relations))
	}
	if p := r.Pulled; p != nil {
		n += 4*int64(cap(p.Known.IDs)) + 8*int64(cap(p.Known.NoLoops)+cap(p.Known.All))
	}
	n += r.Pulled.bytes()
	if k, ok := r.Kept.(interface{ Bytes() int64 }); ok {
		n += k.Bytes()
	}
	return n
}

// Prepare makes what the block's layers need.
func (r *Batch) Prepare() {
	for len(r.edges) < len(r.Blocks) {
		r.edges = append(r.edges, edges{})
	}
	for i := range r.Blocks {
		x, e := &r.Blocks[i], &r.edges[i]
		e.in, e.divided.here = sparseRows{x.Indptr, x.Indices, x.Weights}, 0
		if r.form != asDrawn {
			e.reform(x, r.Vertices, r.form)
		}
		if r.graph != nil {
			e.gather(x, r.edgeRow(i, x), r.graph.EdgeDim, r.form)
		}
		if !x.ByID && !r.goesForward(i) && r.schema == nil {
			e.back.ptr, e.back.index, e.place = transpose(x.Src, &e.in, e.back, e.place)
		}
		r.factorsOf(x, e)
	}
	if r.Labels != nil {
		r.gatherLabels()
	}
	if r.First == nil && r.Host.Features.Kind() == graph.Sparse {
		r.prepareFeatures()
	}
}

// goesForward reports whether nothing goes back over a block: the first, where others compute
// its layer too.
func (r *Batch) goesForward(block int) bool {
	return r.forwardOnly || r.First != nil && r.First.Sums() && block == 0 && len(r.Blocks) > 1
}

// gatherLabels takes the labels of the outputs.
func (r *Batch) gatherLabels() {
	if r.Pulled != nil {
		r.known.gather(&r.Pulled.Labels, r.Pulled.places(r.Outputs()), r.targets)
		return
	}
	r.known.gather(r.Labels, r.Vertices[:r.Outputs()], r.targets)
}

// ids are the vertices' in the dataset.
func (r *Batch) ids() []uint32 {
	if r.Pulled != nil {
		return r.Pulled.Known.IDs[:len(r.Vertices)]
	}
	return r.Vertices
}

// edgeRow is the features of a block's edges, by place in the block.
func (r *Batch) edgeRow(block int, x *sample.Block) func(k int64) []float32 {
	if r.Pulled == nil {
		return func(k int64) []float32 { return r.graph.EdgeRows(x.Places[k], x.Places[k]+1) }
	}
	rows, dim := r.Pulled.Known.EdgeFeatures[block], int64(r.graph.EdgeDim)
	return func(k int64) []float32 { return rows[k*dim : (k+1)*dim] }
}

// Outputs is the number of rows of the last layer.
func (r *Batch) Outputs() int {
	if k, ok := r.Kept.(interface{ Outputs() int }); ok {
		return k.Outputs()
	}
	return Outputs(&r.Batch)
}

// Outputs is the number of rows of the last layer of a batch as drawn.
func Outputs(b *sample.Batch) int {
	if len(b.Blocks) == 0 {
		return len(b.Vertices)
	}
	return b.Blocks[len(b.Blocks)-1].Dst
}

// reform copies a block's edges with other loops.
func (e *edges) reform(x *sample.Block, vertices []uint32, f form) {
	e.own.ptr, e.own.index, e.own.value = append(e.own.ptr[:0], 0), e.own.index[:0], e.own.value[:0]
	for i := range x.Dst {
		self := uint32(i)
		if x.ByID {
			self = vertices[i]
		}
		for k := x.Indptr[i]; k < x.Indptr[i+1]; k++ {
			if x.Indices[k] == self {
				continue
			}
			e.own.index = append(e.own.index, x.Indices[k])
			if len(x.Weights) > 0 {
				e.own.value = append(e.own.value, x.Weights[k])
			}
		}
		if f == looped {
			e.own.index = append(e.own.index, self)
			if len(x.Weights) > 0 {
				e.own.value = append(e.own.value, 1)
			}
		}
		e.own.ptr = append(e.own.ptr, int64(len(e.own.index)))
	}
	e.in = e.own
}

// gather copies the features of a block's edges, in its form. A loop that is added has
// the mean of those of the other edges drawn.
func (e *edges) gather(x *sample.Block, row func(k int64) []float32, dim int, f form) {
	e.features = e.features[:0]
	for i := range x.Dst {
		first := len(e.features)
		for k := x.Indptr[i]; k < x.Indptr[i+1]; k++ {
			if f == asDrawn || x.Indices[k] != uint32(i) {
				e.features = append(e.features, row(k)...)
			}
		}
		if f == looped {
			e.features = appendMean(e.features, first, dim)
		}
	}
}

// appendMean appends the mean of the rows from first on; zeros if there are none.
func appendMean(rows []float32, first, dim int) []float32 {
	end := len(rows)
	for c := range dim {
		sum := 0.0
		for at := first + c; at < end; at += dim {
			sum += float64(rows[at])
		}
		rows = append(rows, float32(sum/max(float64((end-first)/dim), 1)))
	}
	return rows
}

// transpose is the transposed rows, in memory of earlier ones: for each column its rows,
// in ascending order, and for each entry its place.
func transpose(cols int, in *sparseRows, old sparseRows, place []uint32) (ptr []int64, index, perm []uint32) {
	ptr = slices.Grow(old.ptr[:0], cols+2)[:cols+2]
	clear(ptr)
	for _, c := range in.index {
		ptr[c+2]++
	}
	for c := range cols {
		ptr[c+2] += ptr[c+1]
	}
	n := len(in.index)
	index, perm = slices.Grow(old.index[:0], n)[:n], slices.Grow(place[:0], n)[:n]
	for i := range len(in.ptr) - 1 {
		for k := in.ptr[i]; k < in.ptr[i+1]; k++ {
			c := in.index[k] + 1
			at := ptr[c]
			ptr[c]++
			index[at], perm[at] = uint32(i), uint32(k)
		}
	}
	return ptr[:cols+1], index, perm
}

// prepareFeatures gathers sparse rows.
func (r *Batch) prepareFeatures() {
	f, to, rows := r.Host.Features, &r.features, r.Vertices
	if r.Pulled != nil {
		f, rows = r.Pulled.Rows(), r.Pulled.places(len(r.Vertices))
	}
	to.ptr, to.index, to.value = append(to.ptr[:0], 0), to.index[:0], to.value[:0]
	for _, v := range rows {
		to.index = append(to.index, f.Indices[f.Indptr[v]:f.Indptr[v+1]]...)
		to.value = append(to.value, f.Values[f.Indptr[v]:f.Indptr[v+1]]...)
		to.ptr = append(to.ptr, int64(len(to.index)))
	}
	r.featuresBack.ptr, r.featuresBack.index, r.featuresPlace = transpose(f.Cols, to, r.featuresBack, r.featuresPlace)
}

// input puts the features of the batch's vertices on the device.
func (r *Batch) input(dev tensor.Device, all nn.Input) nn.Input {
	if r.First != nil {
		return r.First.Begin(r)
	}
	if r.schema != nil {
		return r.typedInput(dev, all.Typed)
	}
	if f := r.Host.Features; f.Kind() == graph.Sparse {
		s := tensor.NewSparse(dev, len(r.Vertices), f.Cols, r.features.ptr, r.features.index, r.features.value)
		return nn.Input{Sparse: s, SparseT: tensor.Transpose(dev, s, r.featuresBack.ptr, r.featuresBack.index,
			r.featuresPlace), Constant: true}
	}
	if r.Pulled != nil {
		return r.fromHost(dev, r.Pulled.onHost(dev), all)
	}
	if r.disk != nil {
		return r.fromHost(dev, r.disk.matrix(dev, r), all)
	}
	rows := r.vertices(dev)
	x := dev.Scratch(all.Type(), rows.Len(), all.Cols)
	dev.GatherRows(x, all.Matrix, rows)
	return nn.Input{Matrix: x, Constant: true}
}

// fromHost is rows in host memory as the input, where they are if they have the input's type.
func (r *Batch) fromHost(dev tensor.Device, rows tensor.Matrix, all nn.Input) nn.Input {
	if r.inPlace = rows.Type() == all.Type(); r.inPlace {
		return nn.Input{Matrix: rows, Constant: true}
	}
	x := dev.Scratch(all.Type(), len(r.Vertices), all.Cols)
	dev.Copy(x, rows)
	return nn.Input{Matrix: x, Constant: true}
}

// vertices are the batch's on the device.
func (r *Batch) vertices(dev tensor.Device) tensor.Index {
	if r.drawn != nil {
		return r.drawn.Vertices()
	}
	return tensor.Indices(dev, r.Vertices)
}

func (r *Batch) freeInput(dev tensor.Device, x nn.Input) {
	if x.Split != nil || r.inPlace {
		return // by then it is, or is not the device's
	}
	if x.Typed != nil {
		r.freeTypes(dev)
		return
	}
	if x.Sparse != nil {
		dev.Free(x.SparseT.Values())
		return
	}
	dev.Free(x.Matrix)
}

// task is the run's task for the rows of this batch.
func (r *Batch) task(dev tensor.Device) nn.Task {
	return r.known.weigh(r.known.task(dev, r.Labels.Kind()), r.weighting, r.Seeds)
}
