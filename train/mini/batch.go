package mini

import (
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/sample"
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
	case strings.HasPrefix(name, "gat"):
		return looped
	case strings.HasSuffix(name, "gcn") || name == "resgcn+":
		if hasLoops {
			return loopFree
		}
	}
	return asDrawn
}

// hostSide is what turns batches as drawn into batches that a device can use,
// while others are trained on.
type hostSide struct {
	features *graph.Features // of all vertices; where they are pulled, of those of this worker
	labels   *graph.Labels   // likewise
	form     form
	graph    *graph.CSR // whose edges have features that the model looks at, or nil
	split    firstLayer // computes the first layer with other workers, or nil
	first    bool       // batches are first blocks alone

	kind    *nn.Kind             // of all layers' sums, if that is known, with
	degrees *nn.Degrees          // of the whole graph
	parcels func() tensor.Parcel // where batches are laid ahead
}

// firstLayer computes the first layers of batches with other workers, which have the features.
type firstLayer interface {
	nn.Split
	// begin is the input of a batch's step.
	begin(b *batch) nn.Input
	// failure is why the layer's rows mean nothing.
	failure() error
}

func newHostSide(f *train.Loop, g *graph.CSR, features *graph.Features, labels *graph.Labels, hasLoops bool) *hostSide {
	h := &hostSide{features: features, labels: labels, form: formOf(f.Model, hasLoops)}
	if f.Opt.Model.EdgeDim > 0 {
		h.graph = g
	}
	return h
}

// batch is a prepared batch: what was drawn, and all that is made of it on the host. Its
// memory is reused.
type batch struct {
	sample.Batch
	*hostSide
	edges []edges
	known batchLabels
	laid  *laid // on the device already
	err   error

	parcel tensor.Parcel
	empty  bool // no worker has a seed vertex

	dag *dag // that samples it, if any does

	// Of iterations of HopGNN: the batches of its time steps, and where models are.
	steps     []*batch
	itinerary *itinerary

	// share is this worker's of a batch that its server's workers compute together; nil: it computes
	// the batch by itself.
	share *coShare

	// pulled is what came from owners; nil: the whole graph is here.
	pulled  *pulled
	inPlace bool // its rows are the input where they are

	// firsts are the first blocks of all workers' batches, where features are split.
	firsts []*firstBlock

	// Sparse features of the batch's vertices, and the other way round.
	features      sparseRows
	featuresBack  sparseRows
	featuresPlace []uint32
}

type sparseRows struct {
	ptr   []int64
	index []uint32
	value []float32
}

// edges are a block's in both directions.
type edges struct {
	in    sparseRows
	back  sparseRows
	place []uint32 // of the entries of back, in in
	own   sparseRows
	// rowScale and colScale are factors of the layer's sums, made with the batch; empty: when they are needed.
	rowScale, colScale []float32
	// features are those of in's edges, where the model looks at them.
	features []float32
}

// bytes is about what the batch holds on the host: its blocks both ways, what is known of its vertices, and rows.
func (r *batch) bytes() (n int64) {
	n = 4 * int64(cap(r.Vertices))
	for i := range r.Blocks {
		b := &r.Blocks[i]
		n += 2 * (8*int64(cap(b.Indptr)) + 4*int64(cap(b.Indices)+cap(b.Weights)+cap(b.RowWeights)))
	}
	if p := r.pulled; p != nil {
		n += 4*int64(cap(p.known.IDs)) + 8*int64(cap(p.known.NoLoops)+cap(p.known.All))
		n += 4*int64(cap(p.features.F32)+cap(p.features.Values)+cap(p.features.Indices)) + 2*int64(cap(p.features.BF16))
	}
	for _, step := range r.steps {
		n += step.bytes()
	}
	return n
}

// prepare makes what the block's layers need.
func (r *batch) prepare() {
	for len(r.edges) < len(r.Blocks) {
		r.edges = append(r.edges, edges{})
	}
	for i := range r.Blocks {
		x, e := &r.Blocks[i], &r.edges[i]
		e.in = sparseRows{x.Indptr, x.Indices, x.Weights}
		if r.form != asDrawn {
			e.reform(x, r.Vertices, r.form)
		}
		if r.graph != nil {
			e.gather(x, r.edgeRow(i, x), r.graph.EdgeDim, r.form)
		}
		if !x.ByID && !r.forwardOnly(i) {
			e.back.ptr, e.back.index, e.place = transpose(x.Src, &e.in, e.back, e.place)
		}
		r.factorsOf(blockSizes{x.Dst, x.Src, x.OwnDegrees || len(x.RowWeights) > 0 || r.pulled != nil}, e)
	}
	if r.share != nil {
		for _, x := range r.share.blocks {
			x.prepare()
		}
	}
	if r.labels != nil {
		r.gatherLabels()
	}
	if r.split == nil && r.hostSide.features.Kind() == graph.Sparse {
		r.prepareFeatures()
	}
	r.pack()
}

// forwardOnly reports whether nothing goes back over a block: the first, where features are
// split.
func (r *batch) forwardOnly(block int) bool {
	return r.first || r.split != nil && block == 0 && len(r.Blocks) > 1
}

// gatherLabels takes the labels of the outputs.
func (r *batch) gatherLabels() {
	if r.pulled != nil {
		r.known.gather(&r.pulled.labels, r.pulled.places(r.outputs()))
		return
	}
	r.known.gather(r.labels, r.Vertices[:r.outputs()])
}

// ids are the vertices' in the dataset.
func (r *batch) ids() []uint32 {
	if r.pulled != nil {
		return r.pulled.known.IDs[:len(r.Vertices)]
	}
	return r.Vertices
}

// edgeRow is the features of a block's edges, by place in the block.
func (r *batch) edgeRow(block int, x *sample.Block) func(k int64) []float32 {
	if r.pulled == nil {
		return func(k int64) []float32 { return r.graph.EdgeRows(int64(x.Places[k]), int64(x.Places[k])+1) }
	}
	rows, dim := r.pulled.known.EdgeFeatures[block], int64(r.graph.EdgeDim)
	return func(k int64) []float32 { return rows[k*dim : (k+1)*dim] }
}

// outputs are the rows of the last layer.
func (r *batch) outputs() int {
	if r.share != nil {
		return r.share.outputs()
	}
	return outputs(&r.Batch)
}

func outputs(b *sample.Batch) int {
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
func (r *batch) prepareFeatures() {
	f, to, rows := r.hostSide.features, &r.features, r.Vertices
	if r.pulled != nil {
		f, rows = r.pulled.rows(), r.pulled.places(len(r.Vertices))
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
func (r *batch) input(dev tensor.Device, all nn.Input, opt train.Options) nn.Input {
	if r.split != nil {
		return r.split.begin(r)
	}
	if f := r.hostSide.features; f.Kind() == graph.Sparse {
		s := tensor.NewSparse(dev, len(r.Vertices), f.Cols, r.features.ptr, r.features.index, r.features.value)
		return nn.Input{Sparse: s, SparseT: tensor.Transpose(dev, s, r.featuresBack.ptr, r.featuresBack.index,
			r.featuresPlace), Constant: true}
	}
	if r.pulled != nil {
		rows := r.pulled.onHost(dev)
		if r.inPlace = rows.Type() == all.Type(); r.inPlace {
			return nn.Input{Matrix: rows, Constant: true}
		}
		x := dev.Scratch(all.Type(), len(r.Vertices), all.Cols)
		dev.Copy(x, rows)
		return nn.Input{Matrix: x, Constant: true}
	}
	x := dev.Scratch(all.Type(), len(r.Vertices), all.Cols)
	dev.GatherRows(x, all.Matrix, tensor.Indices(dev, r.Vertices))
	return nn.Input{Matrix: x, Constant: true}
}

func (r *batch) freeInput(dev tensor.Device, x nn.Input) {
	if x.Split != nil || r.inPlace {
		return // by then it is, or is not the device's
	}
	if x.Sparse != nil {
		dev.Free(x.SparseT.Values())
		return
	}
	dev.Free(x.Matrix)
}

// task is the run's, for the rows of this batch.
func (r *batch) task(dev tensor.Device) nn.Task {
	return r.known.task(dev, r.labels.Kind())
}
