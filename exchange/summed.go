package exchange

import (
	"errors"

	"starling/event"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Summer makes a layer's sums where rows are regrouped over workers: it has no halo.
type Summer interface {
	// Sum: dst = A·src, of this worker's own rows; SumGrad: dsrc = Aᵀ·ddst.
	Sum(t Tag, r nn.Reduction, dst, src tensor.Matrix)
	SumGrad(t Tag, r nn.Reduction, dsrc, ddst tensor.Matrix)
	// Numbers are the numbers that a sum over rows of a width sends to a peer.
	Numbers(width int, backward bool, peer int) int64
}

// Chainer is a Summer that makes sums of sums without whole rows between them.
type Chainer interface {
	// Chain: dst = Aⁿ·src; ChainGrad: dsrc = (Aᵀ)ⁿ·ddst. Numbers are one sum's.
	Chain(t Tag, n int, r nn.Reduction, dst, src tensor.Matrix)
	ChainGrad(t Tag, n int, r nn.Reduction, dsrc, ddst tensor.Matrix)
}

// Summed is the nn.Aggregator of a Summer. The sum over constant features is made once.
type Summed struct {
	W       *Worker
	Moved   *Rows
	Prepare wire.Bytes // what was sent before the first epoch

	by     Summer
	cache  map[nn.Reduction]tensor.Matrix
	epoch  int
	batch  int
	failed error
}

// NewSummed aggregates with the sums of another. Copies of others' features are not kept.
func NewSummed(rows *Rows, by Summer) *Summed {
	rows.W.NoCopies = true
	return &Summed{W: rows.W, Moved: rows, Prepare: wire.Bytes{}, by: by, cache: map[nn.Reduction]tensor.Matrix{}}
}

// Begin opens a pass.
func (s *Summed) Begin(epoch, batch int, training bool) {
	s.epoch, s.batch = epoch, batch
	s.Moved.Begin(epoch, batch, training)
}

func (s *Summed) Err() error          { return errors.Join(s.failed, s.Moved.Err()) }
func (s *Summed) Finish() error       { return s.Moved.Finish() }
func (s *Summed) Caches() []nn.Tensor { return s.W.Saved.Figures }

// Rows are the worker's own, in and out.
func (s *Summed) Rows(int) (dst, src int) { return s.W.Part.Core(), s.W.Part.Core() }

// MessageRows is of edge operators, which are refused.
func (s *Summed) MessageRows(int) int { return s.W.Part.Core() }

func (s *Summed) Edgewise(nn.EdgeOperator) {
	panic(s.W.Strategy + ": an edge operator was not refused")
}
func (s *Summed) EdgewiseGrad(nn.EdgeOperator) {
	panic(s.W.Strategy + ": an edge operator was not refused")
}

func (s *Summed) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	s.by.Sum(s.W.rowsOf(layer, false), r, dst, src)
}

func (s *Summed) SumGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	s.by.SumGrad(s.W.gradsOf(layer, false), r, dsrc, ddst)
}

// Chains reports whether sums of sums are made at once.
func (s *Summed) Chains() bool {
	_, ok := s.by.(Chainer)
	return ok
}

// Chain is Sum of several layers, from one on; ChainGrad is their SumGrad.
func (s *Summed) Chain(layer, n int, r nn.Reduction, dst, src tensor.Matrix) {
	s.by.(Chainer).Chain(s.W.rowsOf(layer, false), n, r, dst, src)
}

func (s *Summed) ChainGrad(layer, n int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	s.by.(Chainer).ChainGrad(s.W.gradsOf(layer, false), n, r, dsrc, ddst)
}

// Constant is made once: the features travel in the first pass.
func (s *Summed) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	if !s.W.CacheFirst {
		return tensor.Matrix{}, false
	}
	sum, ok := s.cache[r]
	if !ok {
		sum = s.W.Dev.Scratch(src.Type(), src.Rows, src.Cols)
		s.by.Sum(featureRows, r, sum, src)
		s.cache[r] = sum
	}
	return sum, true
}

// AllReduce adds sums over all workers.
func (s *Summed) AllReduce(sums tensor.Matrix) {
	v := make([]float64, sums.Rows*sums.Cols)
	s.W.Dev.Download(v, sums)
	start := s.W.Now()
	if err := s.W.AllReduce(s.epoch, s.batch, v); err != nil && s.failed == nil {
		s.failed = err
	}
	s.W.Events.On(event.Span{Name: "sums over all workers", Kind: "wait", Start: start, Dur: s.W.Now().Sub(start)})
	s.W.Dev.Upload(sums, v)
}

// Plan is what the worker will send. All of it is known from the sizes of the parts.
func (s *Summed) Plan(model *nn.Model) *wire.Plan {
	w, p := s.W, wire.NewPlan()
	p.Shared = true
	p.Prepare.AddAll(s.Prepare, 1)
	training := model.Traffic(w.SparseFeatures(), w.FirstSum(), true)
	measuring := model.Traffic(w.SparseFeatures(), w.FirstSum(), false)
	epoch := wire.Bytes{}
	for i, t := range training {
		if t.Chained && s.Chains() {
			continue // with the first of them
		}
		s.PlanSum(p.Once, featureRows, t.Once)
		s.PlanSum(p.OnceMeasured, featureRows, measuring[i].Once-t.Once)
		s.PlanSum(p.Measure, w.rowsOf(t.Layer, false), measuring[i].Forward.Rows)
		s.PlanSum(epoch, w.rowsOf(t.Layer, false), t.Forward.Rows)
		s.PlanSum(epoch, w.gradsOf(t.Layer, false), t.Backward.Rows)
	}
	p.Epoch = func(int) wire.Bytes {
		out := wire.Bytes{}
		out.AddAll(epoch, 1)
		return out
	}
	return p
}

// PlanSum plans a sum over rows of a width; 0: none.
func (s *Summed) PlanSum(into wire.Bytes, t Tag, width int) {
	if width <= 0 {
		return
	}
	size := int64(s.W.Dev.RowType(s.W.Rows).Size())
	for q := range s.W.End.Size() {
		if q != s.W.End.Rank() {
			into.Add(s.W.Class(t.Kind, t.Layer, q), size*s.by.Numbers(width, t.Backward, q))
		}
	}
}
