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
		l.ids, l.seeds = b.idsOn(f.Dev), tensor.Indices(f.Dev, b.Seeds)
		l.task = b.task(f.Dev)
	})
	l.made, l.taken = on.made, on.taken
	on.made, on.taken, on.batch = before.made, before.taken, before.batch
	b.laid = l
}

// idsOn are the vertices' ids on the device.
func (r *Batch) idsOn(dev tensor.Device) tensor.Index {
	switch {
	case r.laid != nil:
		return r.laid.ids
	case r.drawn != nil:
		return r.drawn.Vertices()
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
	if r.drawn != nil {
		r.parcel.Pack(r.Seeds, r.known.classes, r.known.marks, r.known.values)
		return
	}
	list := []any{r.ids(), r.Seeds, r.known.classes, r.known.marks, r.known.values, r.features.ptr, r.features.index,
		r.features.value, r.featuresBack.ptr, r.featuresBack.index, r.featuresPlace}
	if r.Pulled != nil && r.First == nil {
		rows := r.Pulled.Rows()
		list = append(list, rows.F32, rows.BF16)
	}
	if ids := r.ids(); len(ids) > 0 && len(r.Vertices) > 0 && &ids[0] != &r.Vertices[0] {
		list = append(list, r.Vertices)
	}
	for i := range r.Blocks {
		e := &r.edges[i]
		list = append(list, e.in.ptr, e.in.index, e.in.value, e.ownScale, e.rowScale, e.colScale)
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

// factorsOf makes a block's factors, where all layers sum alike: those of own rows, those of sums over edges where they
// are others, and those of columns.
func (r *Batch) factorsOf(x *sample.Block, e *edges) {
	e.ownScale, e.rowScale, e.colScale = e.ownScale[:0], e.rowScale[:0], e.colScale[:0]
	if r.kind == nil {
		return
	}
	k := *r.kind
	if k != nn.Sum {
		e.ownScale = r.appendFactors(e.ownScale, x, k, x.Dst)
	}
	for i, w := range x.RowWeights {
		e.rowScale = append(e.rowScale, float32(r.factor(x, r.degrees, k, i)*float64(w)))
	}
	if k == nn.Symmetric {
		e.colScale = r.appendFactors(e.colScale, x, k, x.Src)
	}
}

func (r *Batch) appendFactors(to []float32, x *sample.Block, k nn.Kind, n int) []float32 {
	for i := range n {
		to = append(to, float32(r.factor(x, r.degrees, k, i)))
	}
	return to
}

// factor is the factor of a vertex of a block, by its degree. degrees are of the whole graph, where that is here.
func (r *Batch) factor(x *sample.Block, degrees *nn.Degrees, k nn.Kind, row int) float64 {
	all, noLoops := 0.0, 0.0
	if x.OwnDegrees {
		all, noLoops = x.OwnDegree(row)
	} else {
		all, noLoops = r.degreeOf(degrees, row)
	}
	return Factor(k, all, noLoops)
}

// degreeOf is a vertex's in the whole graph, with and without loops; where it was pulled the first is known of
// destinations only.
func (r *Batch) degreeOf(degrees *nn.Degrees, row int) (all, noLoops float64) {
	if r.Temporal { // sources that are no destinations have none: no model asks for them
		if row < len(r.Degrees) {
			all = r.Degrees[row]
		}
		return all, all
	}
	if p := r.Pulled; p != nil {
		if row < len(p.Known.All) {
			all = p.Known.All[row]
		}
		return all, p.Known.NoLoops[row]
	}
	v := r.Vertices[row]
	return degrees.All[v], degrees.NoLoops[v]
}
