package exchange

import (
	"errors"

	"starling/event"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Aggregator is the nn.Aggregator of full-graph strategies: while halo rows are on their
// way, it sums over local ones. Its halos say which rows a layer has where; its policy,
// what halo rows are, and when they travel.
type Aggregator struct {
	W       *Worker
	Prepare wire.Bytes // what was sent before the first epoch

	halos    []*Halo // of each layer; a single one serves all
	policy   Policy
	cache    map[nn.Reduction]tensor.Matrix
	copies   tensor.Matrix // halo rows of features on which dropout is drawn
	received bool          // they are here
	epoch    int
	batch    int
	failed   error
}

// Policy brings halo rows, and returns their gradients.
type Policy interface {
	// Begin opens a pass.
	Begin(epoch, batch int, training bool)
	// Exchange starts to bring halo rows: into holds them after Wait. src are local rows.
	Exchange(t Tag, h *Halo, into, src tensor.Matrix) Arrival
	// Reverse starts to return the gradients of halo rows to their owners. After Wait
	// those that peers sent have been added to dst, the gradients of local rows.
	Reverse(t Tag, h *Halo, grads, dst tensor.Matrix) Arrival
	// RowsTo is how many rows of a transfer leave for a peer, in some pass.
	RowsTo(t Tag, h *Halo, peer, epoch int, training bool) int64
	// RowBytes is what a row of a transfer takes on the wire.
	RowBytes(t Tag, numbers tensor.DType, cols int, training bool) int64
	Err() error
	Finish() error
}

// NewAggregator aggregates with one halo for all layers, or with one for each.
func NewAggregator(w *Worker, policy Policy, halos ...*Halo) *Aggregator {
	return &Aggregator{W: w, Prepare: wire.Bytes{}, halos: halos, policy: policy,
		cache: map[nn.Reduction]tensor.Matrix{}}
}

// Halo is the halo of a layer.
func (a *Aggregator) Halo(layer int) *Halo {
	if len(a.halos) == 1 {
		return a.halos[0]
	}
	return a.halos[layer]
}

// Thinning is a policy whose passes may have fewer rows than the halo.
type Thinning interface {
	// Thinned is the halo of this pass.
	Thinned(h *Halo) *Halo
}

// passing is the halo of a layer in this pass.
func (a *Aggregator) passing(layer int) *Halo {
	h := a.Halo(layer)
	if t, ok := a.policy.(Thinning); ok {
		return t.Thinned(h)
	}
	return h
}

func (a *Aggregator) Begin(epoch, batch int, training bool) {
	a.epoch, a.batch = epoch, batch
	a.policy.Begin(epoch, batch, training)
}

func (a *Aggregator) Err() error    { return errors.Join(a.failed, a.policy.Err()) }
func (a *Aggregator) Finish() error { return a.policy.Finish() }

// Masks reports whether gradients travel only where their rows are not zero.
func (a *Aggregator) Masks() bool { return a.W.Masked }

func (a *Aggregator) Rows(layer int) (dst, src int) {
	h := a.Halo(layer)
	return h.Dst, h.Src
}

func (a *Aggregator) MessageRows(layer int) int {
	h := a.passing(layer)
	return h.Src + h.HaloRows()
}

func (a *Aggregator) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	a.sum(a.W.rowsOf(layer, false), a.passing(layer), r, dst, src)
}

func (a *Aggregator) sum(t Tag, h *Halo, r nn.Reduction, dst, src tensor.Matrix) {
	rows := a.W.Dev.Scratch(src.Type(), h.HaloRows(), src.Cols)
	x := a.policy.Exchange(t, h, rows, src)
	h.Local().Sum(r, dst, src, false)
	x.Wait()
	h.Remote().Sum(r, dst, rows, true)
	x.Done()
	a.W.Dev.Free(rows)
}

func (a *Aggregator) SumGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	h := a.passing(layer)
	grads := a.W.Dev.Scratch(ddst.Type(), h.HaloRows(), ddst.Cols)
	h.Remote().SumGrad(r, grads, ddst)
	x := a.policy.Reverse(a.W.gradsOf(layer, false), h, grads, dsrc)
	h.Local().SumGrad(r, dsrc, ddst)
	x.Wait()
	x.Done()
	a.W.Dev.Free(grads)
}

// Constant is always exact: its rows travel once.
func (a *Aggregator) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	if !a.W.CacheFirst {
		return tensor.Matrix{}, false
	}
	sum, ok := a.cache[r]
	if !ok {
		h := a.Halo(0)
		sum = a.W.Dev.Scratch(src.Type(), h.Dst, src.Cols)
		if a.redraws() {
			a.sumCopies(h, r, sum, src, a.held(h, src))
		} else {
			a.sum(featureRows, h, r, sum, src)
		}
		a.cache[r] = sum
	}
	return sum, true
}

// featureRows is the transfer of constant features, which is always exact.
var featureRows = Tag{Layer: -1, Kind: wire.Feature}

// redraws reports whether the features of halo rows are kept, since dropout is drawn on them in every training pass.
func (a *Aggregator) redraws() bool { return a.W.FirstSum() == nn.Redrawn && a.W.Model.DropsInput() }

// Redrawn draws dropout on copies of the halo's features, which travel once:
//
//	sum = A_local·dropout(x_local) + A_halo·dropout(x_halo)
func (a *Aggregator) Redrawn(r nn.Reduction, dropped tensor.Matrix, d *nn.Drawn) (tensor.Matrix, bool) {
	if !a.redraws() {
		return tensor.Matrix{}, false
	}
	h, dev := a.Halo(0), a.W.Dev
	held, draws := a.held(h, d.Features), d.Dropout
	draws.IDs = h.IDs.Slice(h.Src, h.Src+h.HaloRows())
	rows := dev.Scratch(dropped.Type(), h.HaloRows(), dropped.Cols)
	dev.Activate(rows, held, tensor.Epilogue{Dropout: draws})
	sum := dev.Scratch(dropped.Type(), h.Dst, dropped.Cols)
	a.sumCopies(h, r, sum, dropped, rows)
	dev.Free(rows)
	return sum, true
}

func (a *Aggregator) sumCopies(h *Halo, r nn.Reduction, sum, local, halo tensor.Matrix) {
	h.Local().Sum(r, sum, local, false)
	h.Remote().Sum(r, sum, halo, true)
}

// held are the features of halo rows; they are received the first time.
func (a *Aggregator) held(h *Halo, local tensor.Matrix) tensor.Matrix {
	if !a.received {
		a.copies = a.W.Dev.Scratch(local.Type(), h.HaloRows(), local.Cols)
		x := a.policy.Exchange(featureRows, h, a.copies, local)
		x.Wait()
		x.Done()
		a.received = true
	}
	return a.copies
}

func (a *Aggregator) Edgewise(op nn.EdgeOperator) {
	h := a.passing(op.Layer())
	t := a.W.rowsOf(op.Layer(), true)
	var arrivals []Arrival
	for i, m := range op.Sent() {
		t.Scores = i > 0
		arrivals = append(arrivals, a.policy.Exchange(t, h, m.Slice(h.Src, m.Rows), m.Slice(0, h.Src)))
	}
	wait(arrivals)
	op.EdgeForward(h.Edges(op.Over()), 0, h.Dst)
	done(arrivals)
}

func (a *Aggregator) EdgewiseGrad(op nn.EdgeOperator) {
	h := a.passing(op.Layer())
	op.EdgeBackward(h.Edges(op.Over()))
	t := a.W.gradsOf(op.Layer(), true)
	var arrivals []Arrival
	for i, m := range op.SentGrads() {
		t.Scores = i > 0
		arrivals = append(arrivals, a.policy.Reverse(t, h, m.Slice(h.Src, m.Rows), m.Slice(0, h.Src)))
	}
	wait(arrivals)
	done(arrivals)
}

func wait(arrivals []Arrival) {
	for _, x := range arrivals {
		x.Wait()
	}
}

func done(arrivals []Arrival) {
	for _, x := range arrivals {
		x.Done()
	}
}

// AllReduce adds sums over all workers.
func (a *Aggregator) AllReduce(sums tensor.Matrix) {
	v := make([]float64, sums.Rows*sums.Cols)
	a.W.Dev.Download(v, sums)
	start := a.W.Now()
	if err := a.W.AllReduce(a.epoch, a.batch, v); err != nil && a.failed == nil {
		a.failed = err
	}
	a.W.Events.On(event.Span{Name: "sums over all workers", Kind: "wait", Start: start, Dur: a.W.Now().Sub(start)})
	a.W.Dev.Upload(sums, v)
}

// Plan is what the worker will send: its rows.
func (a *Aggregator) Plan(model *nn.Model) *wire.Plan {
	w, p := a.W, wire.NewPlan()
	p.AtMost, p.Shared = w.SparseRows, true
	p.Prepare.AddAll(a.Prepare, 1)
	training := model.Traffic(w.SparseFeatures(), w.FirstSum(), true)
	measuring := model.Traffic(w.SparseFeatures(), w.FirstSum(), false)
	for i, t := range training {
		a.planRows(p.Once, featureRows, nn.Width{Rows: t.Once}, 0, true)
		a.planRows(p.OnceMeasured, featureRows, nn.Width{Rows: measuring[i].Once - t.Once}, 0, false)
		a.planRows(p.Measure, Tag{Layer: t.Layer, Kind: wire.Activation}, measuring[i].Forward, 0, false)
	}
	p.Epoch = func(epoch int) wire.Bytes {
		out := wire.Bytes{}
		for _, t := range training {
			last := w.LastAttention(t.Layer)
			a.planRows(out, Tag{Layer: t.Layer, LastAttention: last, Kind: wire.Activation}, t.Forward, epoch, true)
			a.planRows(out, Tag{Layer: t.Layer, LastAttention: last, Backward: true, Kind: wire.Gradient}, t.Backward,
				epoch, true)
		}
		return out
	}
	return p
}

// SparseFeatures reports whether the features are sparse rows.
func (w *Worker) SparseFeatures() bool {
	return w.Part.Book.Features != nil && w.Part.Features.Indptr != nil
}

// planRows plans the rows and the scores of a transfer.
func (a *Aggregator) planRows(into wire.Bytes, t Tag, width nn.Width, epoch int, training bool) {
	w, h := a.W, a.Halo(max(t.Layer, 0))
	for q := range w.End.Size() {
		class := w.Class(t.Kind, t.Layer, q)
		if width.Rows > 0 {
			each := a.policy.RowBytes(t, w.Dev.RowType(w.Rows), width.Rows, training)
			into.Add(class, a.policy.RowsTo(t, h, q, epoch, training)*each)
			if m, ok := a.policy.(Averaging); ok && !t.AlwaysFresh(training) {
				each := int64(width.Rows * w.Dev.Type().Size())
				into.Add(w.Class(wire.Control, t.Layer, q), m.MeansTo(t, h, q, epoch)*each)
			}
		}
		if width.Scores > 0 {
			scores := t
			scores.Scores = true
			each := a.policy.RowBytes(scores, w.Dev.Type(), width.Scores, training)
			into.Add(class, a.policy.RowsTo(scores, h, q, epoch, training)*each)
		}
	}
}
