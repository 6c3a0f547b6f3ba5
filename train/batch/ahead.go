package batch

import (
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// A device that can (tensor.Feeder) has the next batch's edges, labels and rows brought while it computes this one:
//
//	drawers        batch k+2 … is drawn; what the device needs of it is copied to pinned memory (pack)
//	the device     batch k+1 is copied and its rows are gathered, beside the compute of batch k (lay)
//
// Numbers are the same as where a batch is laid when its step begins.

// laid is a batch on the device before its step begins.
type laid struct {
	made       []onDevice
	taken      []tensor.Matrix
	input      nn.Input
	ids, seeds tensor.Index
	task       nn.Task
	fed        tensor.Fed
}

// ahead lays batches by a device that can.
type ahead struct {
	feeder tensor.Feeder
	on     *Blocks
}

// newAhead is nil where the device cannot.
func newAhead(dev tensor.Device, on *Blocks, host *Host) *ahead {
	f, ok := dev.(tensor.Feeder)
	if !ok {
		return nil
	}
	host.parcels = f.NewParcel
	return &ahead{f, on}
}

// lay begins to bring a batch.
func (a *ahead) lay(f *train.Loop, b *Batch) {
	if b.Err != nil || b.Empty || len(b.Seeds) == 0 {
		return // it has no step
	}
	l, on := &laid{}, a.on
	before := *on
	on.made, on.taken = nil, nil
	l.fed = a.feeder.Ahead(func() {
		on.Begin(b)
		for i := range b.Blocks {
			if b.kind != nil {
				on.scale(&b.Blocks[i], &on.made[i], *b.kind)
			}
		}
		l.input = b.input(f.Dev, f.X)
		l.ids, l.seeds = tensor.Indices(f.Dev, b.ids()), tensor.Indices(f.Dev, b.Seeds)
		l.task = b.task(f.Dev)
	})
	l.made, l.taken = on.made, on.taken
	on.made, on.taken, on.batch = before.made, before.taken, before.batch
	b.laid = l
}

// idsOn are the vertices' ids on the device.
func (r *Batch) idsOn(dev tensor.Device) tensor.Index {
	if r.laid != nil {
		return r.laid.ids
	}
	return tensor.Indices(dev, r.ids())
}

// pack copies what the device needs of a batch to where it can read it while it computes.
func (r *Batch) pack() {
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
		if !r.Blocks[i].ByID && !r.goesForward(i) {
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

// factorsOf makes a block's factors from degrees in the whole graph; own: they are made from others.
func (r *Batch) factorsOf(x *sample.Block, own bool, e *edges) {
	e.rowScale, e.colScale = e.rowScale[:0], e.colScale[:0]
	if r.kind == nil || r.degrees == nil || own || *r.kind == nn.Sum {
		return
	}
	for _, v := range r.Vertices[:x.Dst] {
		e.rowScale = append(e.rowScale, float32(Factor(*r.kind, r.degrees.All[v], r.degrees.NoLoops[v])))
	}
	if *r.kind == nn.Symmetric {
		for _, v := range r.Vertices[:x.Src] {
			e.colScale = append(e.colScale, float32(Factor(*r.kind, r.degrees.All[v], r.degrees.NoLoops[v])))
		}
	}
}
