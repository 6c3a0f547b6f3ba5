package mini

import (
	"starling/nn"
	"starling/tensor"
	"starling/train"
)

// A device that can (tensor.Feeder) has the next batch's edges, labels and rows brought while it computes this one:
//
//	drawers        batch k+2 … is drawn; what the device needs of it is copied to pinned memory (pack)
//	the device     batch k+1 is copied and its rows are gathered, beside the compute of batch k (lay)
//
// Numbers are those of batches that are laid when their step begins.

// laid is a batch on the device before its step begins.
type laid struct {
	made       []onDevice
	taken      []tensor.Matrix
	input      nn.Input
	ids, seeds tensor.Index
	task       nn.Task
	fed        tensor.Fed
}

// feeds has batches be laid ahead, where the device can and every batch is this worker's own.
func (m *batches) feeds(host *hostSide) {
	f, ok := m.Dev.(tensor.Feeder)
	if !ok || m.few {
		return
	}
	m.feeder, host.parcels = f, f.NewParcel
}

// lay begins to bring a batch.
func (m *batches) lay(b *batch) {
	if m.feeder == nil || m.embeddings != nil || b.err != nil || b.empty || len(b.Seeds) == 0 {
		return // it has no step, or one that brings its rows by itself
	}
	l, on := &laid{}, m.on
	before := *on
	on.made, on.taken = nil, nil
	l.fed = m.feeder.Ahead(func() {
		on.begin(b)
		for i := range b.Blocks {
			if b.kind != nil {
				on.scale(&b.Blocks[i], &on.made[i], *b.kind)
			}
		}
		l.input = b.input(m.Dev, m.X, m.Opt)
		l.ids, l.seeds = tensor.Indices(m.Dev, b.ids()), tensor.Indices(m.Dev, b.Seeds)
		l.task = b.known.task(m.Dev, b.labels.Kind())
	})
	l.made, l.taken = on.made, on.taken
	on.made, on.taken, on.batch = before.made, before.taken, before.batch
	b.laid = l
}

// idsOn are the vertices' ids on the device.
func (r *batch) idsOn(dev tensor.Device) tensor.Index {
	if r.laid != nil {
		return r.laid.ids
	}
	return tensor.Indices(dev, r.ids())
}

// pack copies what the device needs of a batch to where it can read it while it computes.
func (r *batch) pack() {
	if r.parcels == nil {
		return
	}
	if r.parcel == nil {
		r.parcel = r.parcels()
	}
	list := []any{r.ids(), r.Seeds, r.known.classes, r.known.marks, r.known.values, r.features.ptr, r.features.index,
		r.features.value, r.featuresBack.ptr, r.featuresBack.index, r.featuresPlace}
	if ids := r.ids(); len(ids) > 0 && len(r.Vertices) > 0 && &ids[0] != &r.Vertices[0] {
		list = append(list, r.Vertices)
	}
	for i := range r.Blocks {
		e := &r.edges[i]
		list = append(list, e.in.ptr, e.in.index, e.in.value, e.rowScale, e.colScale)
		if !r.Blocks[i].ByID && !r.forwardOnly(i) {
			list = append(list, e.back.ptr, e.back.index)
			if r.kind == nil || len(e.in.value) > 0 {
				list = append(list, e.place)
			}
		}
	}
	r.parcel.Pack(list...)
}

// kindOf is the sum of all layers of a model that has nothing but sums over neighbours; nil of others.
func kindOf(f *train.Loop) *nn.Kind {
	k, ok := f.Opt.Model.Sums()
	if !ok || f.Dev.Type() != tensor.F32 {
		return nil
	}
	return &k
}

// factorsOf are a block's, by degrees in the whole graph; none where they are by something else.
func (r *batch) factorsOf(x blockSizes, e *edges) {
	e.rowScale, e.colScale = e.rowScale[:0], e.colScale[:0]
	if r.kind == nil || r.degrees == nil || x.own || *r.kind == nn.Sum {
		return
	}
	for _, v := range r.Vertices[:x.dst] {
		e.rowScale = append(e.rowScale, float32(factor(*r.kind, r.degrees.All[v], r.degrees.NoLoops[v])))
	}
	if *r.kind == nn.Symmetric {
		for _, v := range r.Vertices[:x.src] {
			e.colScale = append(e.colScale, float32(factor(*r.kind, r.degrees.All[v], r.degrees.NoLoops[v])))
		}
	}
}

// blockSizes are what factors are made for: own, if they are not those of the whole graph.
type blockSizes struct {
	dst, src int
	own      bool
}
