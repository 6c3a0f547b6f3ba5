package nn

import "starling/tensor"

// film is GNN-FiLM (Brockschmidt, ICML 2020, eq. 6) with one kind of edges, as PyG's
// FiLMConv:
//
//	s = x·S;  [βs γs] = x·F0;   z = x·W;  [β γ] = x·F + f
//	y_i = relu(γs_i ⊙ s_i + βs_i) + mean over j in N(i) of relu(γ_i ⊙ z_j + β_i)
//
// The receiving vertex shifts and scales, number by number, what its neighbours (and it
// itself) say. The first term is the second's over a loop at each vertex. x [n, in],
// W and S [in, out], F and F0 [in, 2·out], f [2·out], y [n, out].
type film struct {
	output
	w, films, filmBias *Param
	skip, filmSkip     *Param

	p                *Pass
	x                Input
	sent             int
	z, mod           tensor.Matrix // messages, and [β γ]
	own, ownMod, sum tensor.Matrix

	dz, dmod, down, dmods tensor.Matrix
	loops                 loops
}

func newFiLM(b *builder, in, out int, o output) *film {
	l := &film{output: o}
	l.w = b.weight("lins.0.weight", in, out, fanIn(in))
	l.films = b.weight("films.0.weight", in, 2*out, fanIn(in))
	l.filmBias = b.vector("films.0.bias", 2*out, fanIn(in))
	l.skip = b.weight("lin_skip.weight", in, out, fanIn(in))
	l.filmSkip = b.weight("film_skip.weight", in, 2*out, fanIn(in))
	return l
}

// loops is a graph of a loop at each vertex, made when first needed and kept.
type loops struct {
	ptr   []int64
	index []uint32
}

func (s *loops) of(dev tensor.Device, n int) *tensor.Sparse {
	for i := len(s.ptr); i <= n; i++ {
		s.ptr, s.index = append(s.ptr, int64(i)), append(s.index, uint32(i))
	}
	return tensor.NewSparse(dev, n, n, s.ptr[:n+1], s.index[:n], nil)
}

func (l *film) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, l.sourceRows(p)) }

func (l *film) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, l.sent)
}

func (l *film) Width() int                 { return l.w.Value.Cols }
func (l *film) Over() Form                 { return Form{} }
func (l *film) Sent() []tensor.Matrix      { return []tensor.Matrix{l.z} }
func (l *film) SentGrads() []tensor.Matrix { return []tensor.Matrix{l.dz} }

func (l *film) EdgeForward(e *Edges, lo, hi int) {
	l.p.Dev.FilmMean(l.sum.Slice(lo, hi), e.In.Slice(lo, hi), l.z, l.mod.Slice(lo, hi), false)
}

func (l *film) EdgeBackward(e *Edges) {
	l.p.Dev.FilmMeanGrad(l.dz, l.dmod, e.In, e.Out, l.z, l.mod, l.dy)
}

func (l *film) begin(p *Pass, x Input) tensor.Matrix {
	dst, src := p.Agg.Rows(l.layer)
	l.p, l.x, l.sent = p, x, src
	t, out := p.rowType(), l.w.Value.Cols
	l.z = p.Dev.Scratch(t, p.Agg.MessageRows(l.layer), out)
	l.mod, l.ownMod = p.Dev.Scratch(t, dst, 2*out), p.Dev.Scratch(t, dst, 2*out)
	l.own, l.sum = p.Dev.Scratch(t, dst, out), p.Dev.Scratch(t, dst, out)
	l.y = p.Dev.Scratch(t, dst, out)
	return l.y
}

func (l *film) send(p *Pass, lo, hi int) {
	l.x.times(p.Dev, l.z.Slice(lo, hi), l.w.Value, lo, hi, false, tensor.Epilogue{})
	if own := min(hi, l.own.Rows); lo < own || l.x.Split != nil {
		l.x.ownTimes(p.Dev, l.mod.Slice(lo, own), l.films.Value, lo, own, false, tensor.Epilogue{Bias: l.filmBias.Value})
		l.x.ownTimes(p.Dev, l.own.Slice(lo, own), l.skip.Value, lo, own, false, tensor.Epilogue{})
		l.x.ownTimes(p.Dev, l.ownMod.Slice(lo, own), l.filmSkip.Value, lo, own, false, tensor.Epilogue{})
	}
}

func (l *film) gather(p *Pass) { p.Agg.Edgewise(l) }

func (l *film) finish(p *Pass, lo, hi int) {
	sum := l.sum.Slice(lo, hi)
	p.Dev.FilmMean(sum, l.loops.of(p.Dev, hi-lo), l.own.Slice(lo, hi), l.ownMod.Slice(lo, hi), true)
	p.Dev.Activate(l.y.Slice(lo, hi), sum, l.after(p, lo, hi))
}

func (l *film) end(p *Pass) {
	freeAll(p, &l.sum)
	if !p.Train {
		l.release(p)
	}
}

// release frees what the forward pass kept for the backward pass.
func (l *film) release(p *Pass) { freeAll(p, &l.z, &l.mod, &l.own, &l.ownMod) }

func (l *film) beginGrad(p *Pass, dy tensor.Matrix, wantDX bool) {
	l.output.beginGrad(p, dy, wantDX)
	l.down, l.dmods = p.Dev.Scratch(p.rowType(), dy.Rows, l.own.Cols), p.Dev.Scratch(p.rowType(), dy.Rows, l.mod.Cols)
}

func (l *film) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.w.Value.Rows) }

func (l *film) makeSentGrads(p *Pass) {
	if !p.InRanges {
		freeAll(p, &l.own, &l.ownMod)
	}
	l.dz, l.dmod = p.Dev.Scratch(p.rowType(), l.z.Rows, l.z.Cols), p.Dev.Scratch(p.rowType(), l.mod.Rows, l.mod.Cols)
}

func (l *film) finishGrad(p *Pass, lo, hi int) {
	l.grad(p, lo, hi)
	alone := l.loops.of(p.Dev, hi-lo)
	p.Dev.FilmMeanGrad(l.down.Slice(lo, hi), l.dmods.Slice(lo, hi), alone, alone, l.own.Slice(lo, hi),
		l.ownMod.Slice(lo, hi), l.dy.Slice(lo, hi))
}

func (l *film) finishWeightGrad(p *Pass, lo, hi int) {
	l.x.ownGradWeight(p.Dev, l.skip.Grad, l.down, lo, hi, 0)
	l.x.ownGradWeight(p.Dev, l.filmSkip.Grad, l.dmods, lo, hi, 0)
}

func (l *film) gatherGrad(p *Pass) {
	p.Agg.EdgewiseGrad(l)
	if !p.InRanges {
		l.release(p)
		l.freeDY(p)
	}
}

func (l *film) rootGrad(*Pass, int, int) {}

func (l *film) sendGrad(p *Pass, lo, hi int) {
	dx := l.makeDX(p)
	if dx.IsZero() {
		return
	}
	p.Dev.MatMul(dx.Slice(lo, hi), l.dz.Slice(lo, hi), l.w.Value, tensor.MatMul{TransB: true})
	own := min(hi, l.dmod.Rows)
	if lo >= own {
		return
	}
	for _, part := range []struct {
		d tensor.Matrix
		w *Param
	}{{l.dmod, l.films}, {l.down, l.skip}, {l.dmods, l.filmSkip}} {
		p.Dev.MatMul(dx.Slice(lo, own), part.d.Slice(lo, own), part.w.Value, tensor.MatMul{TransB: true, Add: true})
	}
}

func (l *film) sendWeightGrad(p *Pass, lo, hi int) {
	l.x.gradWeight(p.Dev, l.w.Grad, l.dz.Slice(0, l.sent), lo, hi, 0)
	if own := min(hi, l.dmod.Rows); lo < own || l.x.Split != nil {
		l.x.ownGradWeight(p.Dev, l.films.Grad, l.dmod, lo, own, 0)
		p.Dev.ColumnSum(l.filmBias.Grad, l.dmod.Slice(lo, own), true)
	}
}

func (l *film) endGrad(p *Pass) {
	freeAll(p, &l.dz, &l.dmod, &l.down, &l.dmods)
	l.release(p)
	l.x, l.p = Input{}, nil
}
