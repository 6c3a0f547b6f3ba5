package nn

import (
	"starling/graph"
	"starling/rng"
	"starling/tensor"
)

// TypedInput is the input of a typed graph: the rows of each type, of a width of its own. Row i of the pass is of the type
// that Runs say, and is the next row of that type.
type TypedInput struct {
	Runs []graph.Run
	X    []tensor.Matrix // by type; none where rows are learnt
	// Learnt are rows that are parameters themselves, by type; nil where there are features. They are not the model's: each
	// worker has those of its own vertices.
	Learnt []*Param
	// Vertices has the vertices whose rows are learnt, by type.
	Vertices [][]uint32
}

// NewLearnt are the first values of learnt rows: those of a vertex are the same wherever it is.
func NewLearnt(dev tensor.Device, name string, ids []uint32, width int, seed uint64) *Param {
	p := &Param{Name: "node_encoder.embeddings." + name + ".weight", Shape: []int{len(ids), width},
		Value: dev.New(dev.Type(), len(ids), width), Grad: dev.New(dev.Type(), len(ids), width)}
	if _, ok := dev.(dryRun); ok {
		return p
	}
	key := rng.New(seed).Fold(hash(p.Name))
	v := make([]float64, len(ids)*width)
	for i, id := range ids {
		row := key.Fold(uint64(id))
		for c := range width {
			v[i*width+c] = 0.1 * (2*row.Float64(uint64(c)) - 1)
		}
	}
	dev.Upload(p.Value, v)
	return p
}

// rows is how many there are.
func (x *TypedInput) rows() int {
	if len(x.Runs) == 0 { // a worker may have none of a batch
		return 0
	}
	return x.Runs[len(x.Runs)-1].Hi
}

// each calls f with the parts of runs among rows lo to hi, and where they begin among the rows of their type.
func (x *TypedInput) each(lo, hi int, f func(t, at, lo, hi int)) {
	next := make([]int, len(x.X))
	for _, run := range x.Runs {
		if from, to := max(lo, run.Lo), min(hi, run.Hi); from < to {
			f(run.Type, next[run.Type]+from-run.Lo, from, to)
		}
		next[run.Type] += run.Hi - run.Lo
	}
}

// encoder brings the rows of all types to one width:
//
//	y_i = x_i·W_t + b_t, or for a type without features a row that is learnt
//
// x_i [1, in of t], W_t [in of t, out], y [n, out].
type encoder struct {
	rowwise
	output
	wide         int
	weight, bias []*Param // by type; nil where rows are learnt

	x *TypedInput
}

func newEncoder(b *builder, c *TypedConfig, out int) *encoder {
	l := &encoder{wide: out, weight: make([]*Param, len(c.Types)), bias: make([]*Param, len(c.Types))}
	for t := range c.Types {
		if typ := &c.Types[t]; typ.In > 0 {
			l.weight[t] = b.weight("lins."+typ.Name+".weight", typ.In, out, fanIn(typ.In))
			l.bias[t] = b.vector("lins."+typ.Name+".bias", out, fanIn(typ.In))
		}
	}
	return l
}

func (l *encoder) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, 0) }

func (l *encoder) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, false, dy.Rows)
}

func (l *encoder) begin(p *Pass, x Input) tensor.Matrix {
	l.x = x.Typed
	l.y = p.Dev.Scratch(p.rowType(), l.x.rows(), l.wide)
	return l.y
}

func (l *encoder) finish(p *Pass, lo, hi int) {
	l.x.each(lo, hi, func(t, at, lo, hi int) {
		y := l.y.Slice(lo, hi)
		if l.weight[t] == nil {
			p.Dev.Copy(y, l.x.Learnt[t].Value.Slice(at, at+hi-lo))
			return
		}
		p.Dev.MatMul(y, l.x.X[t].Slice(at, at+hi-lo), l.weight[t].Value,
			tensor.MatMul{Epilogue: tensor.Epilogue{Bias: l.bias[t].Value}})
	})
}

func (l *encoder) end(*Pass) {}

func (l *encoder) makeDX(*Pass) tensor.Matrix { return tensor.Matrix{} }

func (l *encoder) finishGrad(*Pass, int, int) {}

func (l *encoder) finishWeightGrad(p *Pass, lo, hi int) {
	l.x.each(lo, hi, func(t, at, lo, hi int) {
		dy := l.dy.Slice(lo, hi)
		if l.weight[t] == nil {
			d := l.x.Learnt[t].Grad.Slice(at, at+hi-lo)
			p.Dev.Combine(d, 1, d, 1, dy)
			return
		}
		p.Dev.ColumnSum(l.bias[t].Grad, dy, true)
		p.Dev.MatMul(l.weight[t].Grad, l.x.X[t].Slice(at, at+hi-lo), dy, tensor.MatMul{TransA: true, Add: true})
	})
}

func (l *encoder) endGrad(*Pass) { l.x = nil }
