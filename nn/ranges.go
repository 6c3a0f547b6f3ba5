package nn

import (
	"fmt"

	"starling/tensor"
)

// Ranges is a training pass through a model by ranges of rows, for strategies that
// overlap it with what comes from elsewhere. The model is cut where rows have
// something in common, at its points; between them lie phases, in which each row goes
// its own way:
//
//	phase 0 ── point 0 ── phase 1 ── point 1 ── … ── phase n        rows of logits
//
// A point is a layer's aggregation, what else it computes over edges, or a
// batch norm. A phase
// is the end of one layer, what lies between, and the messages of the next. The
// caller runs Forward on every range of every phase, fills points, and goes back
// through Backward; ranges of a phase may come in any order.
type Ranges struct {
	model  *Model
	p      *Pass
	x      Input
	steps  []stepped
	module []int // of each step
	points []int // steps that have a common part

	y, dy            []tensor.Matrix // of each step, and its gradient
	begun, begunGrad int             // steps below, and from which on
}

// Sums are rows to be added up over neighbours: Dst = A·Src, or backwards the
// gradients, Src = Aᵀ·Dst.
type Sums struct {
	Layer    int
	Reduce   Reduction
	Dst, Src tensor.Matrix
}

// Ranges begins a training pass. Constant features are summed here, by p.Agg.
func (m *Model) Ranges(p *Pass, x Input) *Ranges {
	p.InRanges = true
	r := &Ranges{model: m, p: p}
	for i, mod := range m.modules {
		r.add(mod, i)
	}
	r.y, r.dy = make([]tensor.Matrix, len(r.steps)), make([]tensor.Matrix, len(r.steps))
	r.x, r.begunGrad = m.dropInput(p, x), len(r.steps)
	r.begin(0) // which tells whether the first layer's sums are there already
	for i, s := range r.steps {
		if _, ok := s.(common); !ok {
			continue
		}
		if c, ok := s.(*sumConv); !ok || i > 0 || !c.constant {
			r.points = append(r.points, i)
		}
	}
	return r
}

// add takes a module apart.
func (r *Ranges) add(mod Module, i int) {
	var steps []stepped
	switch mod := mod.(type) {
	case *gin:
		steps = []stepped{mod.sum, mod.mlp}
	case *gine:
		steps = []stepped{mod.sum, mod.mlp}
	case *residual:
		s := &skip{}
		steps = []stepped{&skipStart{skip: s}, mod.norm.(stepped), mod.conv.(stepped), &skipEnd{skip: s}}
	case stepped:
		steps = []stepped{mod}
	default:
		panic(fmt.Sprintf("nn: %T cannot be run by ranges", mod))
	}
	for _, s := range steps {
		r.steps, r.module = append(r.steps, s), append(r.module, i)
	}
}

// Phases is the number of phases, one more than there are points.
func (r *Ranges) Phases() int { return len(r.points) + 1 }

// SyncPoint is what rows have in common between two phases.
type SyncPoint uint8

const (
	SumPoint    SyncPoint = iota // a layer's sums: see Sums
	EdgePoint                    // what a layer computes over its edges: see EdgeOperator
	CommonPoint                  // a batch norm: see Whole
)

// SyncPoint says what point i is.
func (r *Ranges) SyncPoint(i int) SyncPoint {
	switch r.steps[r.points[i]].(type) {
	case *sumConv:
		return SumPoint
	case EdgeOperator:
		return EdgePoint
	}
	return CommonPoint
}

// GoesBack reports whether the backward pass through a point needs its neighbours' rows:
// that of the first layer may not.
func (r *Ranges) GoesBack(point int) bool {
	c, ok := r.steps[r.points[point]].(*sumConv)
	return !ok || r.points[point] > 0 || !c.keepsSum()
}

// Width is how wide the rows are that a point is about: those that are added up, sent along edges, or normed.
func (r *Ranges) Width(point int) int {
	switch s := r.steps[r.points[point]].(type) {
	case EdgeOperator:
		return s.Width()
	case *batchNorm:
		return s.gamma.Value.Cols
	}
	c := r.steps[r.points[point]].(*sumConv)
	if c.sumsFirst() {
		return c.in()
	}
	return c.outWidth()
}

// Weights is about how many weights a row meets in a phase, a measure of its work.
func (r *Ranges) Weights(phase int) (n int) {
	from, to := r.bounds(phase)
	last := -1
	for i := max(from, 0); i < to; i++ {
		if mod := r.module[i]; mod != last {
			for _, p := range r.model.Params[r.model.params[mod]:r.model.params[mod+1]] {
				n += p.Value.Rows * p.Value.Cols
			}
			last = mod
		}
	}
	return n
}

// bounds are the steps a phase lies between: it has the second half of step from and
// the first half of step to, where these exist.
func (r *Ranges) bounds(phase int) (from, to int) {
	from, to = -1, len(r.steps)
	if phase > 0 {
		from = r.points[phase-1]
	}
	if phase < len(r.points) {
		to = r.points[phase]
	}
	return from, to
}

func (r *Ranges) begin(step int) {
	for ; r.begun <= step; r.begun++ {
		x := r.x
		if i := r.begun; i > 0 {
			x = madeBy(r.steps[i-1], r.p, r.y[i-1])
		}
		r.y[r.begun] = r.steps[r.begun].begin(r.p, x)
	}
}

// Forward takes rows lo to hi through a phase. The point before it is done for them.
func (r *Ranges) Forward(phase, lo, hi int) {
	from, to := r.bounds(phase)
	r.begin(min(to, len(r.steps)-1))
	if from >= 0 {
		r.steps[from].finish(r.p, lo, hi)
	}
	for _, s := range r.steps[from+1 : to] {
		s.send(r.p, lo, hi)
		s.finish(r.p, lo, hi)
	}
	if to < len(r.steps) {
		r.steps[to].send(r.p, lo, hi)
	}
}

// EndForward says that all rows are through a phase and all before it.
func (r *Ranges) EndForward(phase int) {
	from, to := r.bounds(phase)
	for _, s := range r.steps[max(from, 0):to] {
		s.end(r.p)
	}
}

// Logits are the rows of the last phase, which the caller frees.
func (r *Ranges) Logits() tensor.Matrix {
	r.begin(len(r.steps) - 1)
	return r.y[len(r.steps)-1]
}

// Sums are the sums of a SumPoint point. Rows of Src are there when they are through the
// phase before.
func (r *Ranges) Sums(point int) Sums {
	r.begin(r.points[point])
	return r.steps[r.points[point]].(*sumConv).sums()
}

// SumGrads are the gradients of Sums, where the point GoesBack.
func (r *Ranges) SumGrads(point int) Sums {
	r.beginGrad(r.points[point])
	s, _ := r.steps[r.points[point]].(*sumConv).sumGrads()
	return s
}

// HasEarly reports whether a vertex's own part in the layer of a point needs none of
// the point. Then Early computes it, between Forward of the two phases.
func (r *Ranges) HasEarly(point int) bool {
	c, ok := r.steps[r.points[point]].(*sumConv)
	return ok && c.rootEarly(r.p)
}

func (r *Ranges) Early(point, lo, hi int) { r.steps[r.points[point]].(*sumConv).root(r.p, lo, hi) }

// Edgewise is what a EdgePoint point computes, and EdgewiseGrad the same on the backward pass.
func (r *Ranges) Edgewise(point int) EdgeOperator {
	r.begin(r.points[point])
	return r.steps[r.points[point]].(EdgeOperator)
}

func (r *Ranges) EdgewiseGrad(point int) EdgeOperator {
	r.beginGrad(r.points[point])
	return r.Edgewise(point)
}

// Whole does a CommonPoint point, and WholeGrad goes back through any; all rows have
// gone through the phase before.
func (r *Ranges) Whole(point int)     { r.steps[r.points[point]].(common).gather(r.p) }
func (r *Ranges) WholeGrad(point int) { r.steps[r.points[point]].(common).gatherGrad(r.p) }

// BeginGrad begins the backward pass. dlogits may be overwritten; the caller frees it.
func (r *Ranges) BeginGrad(dlogits tensor.Matrix) {
	clear(r.p.announced)
	r.dy[len(r.steps)-1] = dlogits
}

func (r *Ranges) beginGrad(step int) {
	for r.begunGrad > step {
		r.begunGrad--
		i := r.begunGrad
		r.steps[i].beginGrad(r.p, r.dy[i], i > 0)
		if c, ok := r.steps[i].(common); ok {
			c.makeSentGrads(r.p)
		}
		if dx := r.steps[i].makeDX(r.p); i > 0 {
			r.dy[i-1] = dx
		}
	}
}

// Backward takes the gradient of rows lo to hi back through a phase. The point after
// it is done for them.
func (r *Ranges) Backward(phase, lo, hi int) {
	from, to := r.bounds(phase)
	r.beginGrad(max(from, 0))
	if to < len(r.steps) {
		r.steps[to].sendGrad(r.p, lo, hi)
	}
	for i := to - 1; i > from; i-- {
		s := r.steps[i]
		s.finishGrad(r.p, lo, hi)
		s.rootGrad(r.p, lo, hi)
		s.sendGrad(r.p, lo, hi)
	}
	if from >= 0 {
		r.steps[from].finishGrad(r.p, lo, hi)
	}
}

// Root is what the phase before a point needs of rows after it without the point: a
// vertex's own part in a layer. It comes between Backward of the two phases.
func (r *Ranges) Root(point, lo, hi int) { r.steps[r.points[point]].rootGrad(r.p, lo, hi) }

// Roots reports whether a phase has root weights, whose gradients LearnRoots adds up.
func (r *Ranges) Roots(phase int) bool { return len(r.roots(phase)) > 0 }

func (r *Ranges) roots(phase int) (out []rooted) {
	from, to := r.bounds(phase)
	for i := min(to, len(r.steps)) - 1; i >= max(from, 0); i-- {
		if c, ok := r.steps[i].(rooted); ok && c.rootWeight() != nil {
			out = append(out, c)
		}
	}
	return out
}

// LearnRoots is Learn for the root weights, which can leave once the last range has
// been learnt from, while the other weights are.
func (r *Ranges) LearnRoots(phase, lo, hi int, last bool) {
	for _, c := range r.roots(phase) {
		c.rootWeightGrad(r.p, lo, hi)
		if last {
			r.p.ready(c.rootWeight())
		}
	}
}

// Learn adds to the gradients of the other parameters what rows lo to hi of a phase say,
// after Backward of these, which may have been several ranges. They come in ascending order.
func (r *Ranges) WeightGrad(phase, lo, hi int) {
	from, to := r.bounds(phase)
	if to < len(r.steps) {
		r.steps[to].sendWeightGrad(r.p, lo, hi)
	}
	for i := to - 1; i > from; i-- {
		r.steps[i].finishWeightGrad(r.p, lo, hi)
		r.steps[i].sendWeightGrad(r.p, lo, hi)
	}
	if from >= 0 {
		r.steps[from].finishWeightGrad(r.p, lo, hi)
	}
}

// EndBackward says that all is done for a phase and those after it, and frees it.
func (r *Ranges) EndBackward(phase int) {
	from, to := r.bounds(phase)
	for i := min(to, len(r.steps)-1); i > from; i-- {
		r.steps[i].endGrad(r.p)
		r.free(i)
		if mod := r.module[i]; i == 0 || r.module[i-1] != mod {
			r.p.ready(r.model.Params[r.model.params[mod]:r.model.params[mod+1]]...)
		}
	}
	if phase == 0 {
		r.model.freeInput(r.p)
	}
}

// free gives back the rows of a step and their gradient, but for those that are the
// caller's or still needed on the way around a residual block.
func (r *Ranges) free(i int) {
	last := len(r.steps) - 1
	switch s := r.steps[i].(type) {
	case *skipStart:
		r.p.Dev.Free(s.dy)
		return
	case *skipEnd:
		return
	}
	if i == last {
		return
	}
	r.p.Dev.Free(r.y[i])
	if _, around := r.steps[i+1].(*skipEnd); !around {
		r.p.Dev.Free(r.dy[i])
	}
}

// skip is the path around a residual block (see residual.go), as two steps that work
// in place: the first remembers x and adds its gradient, the second adds x and
// remembers its gradient.
type skip struct {
	rowwise
	x, dy tensor.Matrix
}

func (*skip) end(*Pass)                        {}
func (*skip) endGrad(*Pass)                    {}
func (*skip) finishWeightGrad(*Pass, int, int) {}

type skipStart struct {
	*skip
	dx tensor.Matrix
}

func (s *skipStart) begin(_ *Pass, x Input) tensor.Matrix {
	s.x = x.Matrix
	return s.x
}

func (s *skipStart) finish(*Pass, int, int) {}

func (s *skipStart) beginGrad(_ *Pass, dy tensor.Matrix, _ bool) { s.dx = dy }

func (s *skipStart) makeDX(*Pass) tensor.Matrix { return s.dx }

func (s *skipStart) finishGrad(p *Pass, lo, hi int) {
	dx := s.dx.Slice(lo, hi)
	p.Dev.Combine(dx, 1, dx, 1, s.dy.Slice(lo, hi))
}

type skipEnd struct {
	*skip
	y tensor.Matrix
}

func (s *skipEnd) begin(_ *Pass, y Input) tensor.Matrix {
	s.y = y.Matrix
	return s.y
}

func (s *skipEnd) finish(p *Pass, lo, hi int) {
	y := s.y.Slice(lo, hi)
	p.Dev.Combine(y, 1, y, 1, s.x.Slice(lo, hi))
}

func (s *skipEnd) beginGrad(_ *Pass, dy tensor.Matrix, _ bool) { s.dy = dy }

func (s *skipEnd) makeDX(*Pass) tensor.Matrix { return s.dy }

func (s *skipEnd) finishGrad(*Pass, int, int) {}

// Kept are the matrices that a phase makes for the backward pass. The forward pass uses them
// last two phases later, around a residual block; the backward pass in this phase and the
// next.
func (r *Ranges) Kept(phase int) (list []tensor.Matrix) {
	from, to := r.bounds(phase)
	add := func(m tensor.Matrix) {
		for _, other := range list {
			if tensor.Same(m, other) {
				return // made in place of another
			}
		}
		if !m.IsZero() && m.Rows*m.Cols > 0 {
			list = append(list, m)
		}
	}
	for i := max(from, 0); i < min(to, len(r.steps)-1); i++ {
		if _, around := r.steps[i].(*skipStart); !around {
			add(r.y[i])
		}
	}
	if from >= 0 {
		if c, ok := r.steps[from].(*sumConv); ok && c.keepsSum() && (!c.constant || c.drawn) {
			add(c.sum)
		}
	}
	return list
}
