package nn

import "starling/tensor"

// folded are the weights that make a relation's keys and values of rows, and what they are made of:
//
//	[K_t·diag(A_r1 … A_rH)·p_r/√D   V_t·diag(B_r1 … B_rH)]
type folded struct {
	w, bias           tensor.Matrix // [in, 2·out], [1, 2·out]
	key, value, scale tensor.Matrix // [out, out]: block-diagonal A and B, and p_r/√D for every column
	scaled            tensor.Matrix // key · scale
}

func (f *folded) free(p *Pass) { freeAll(p, &f.w, &f.bias, &f.key, &f.value, &f.scale, &f.scaled) }

func (l *hgt) fold(r int) *folded {
	dev, n := l.p.Dev, l.wide
	t, source := dev.Type(), l.types.Relations[r].Source
	f := &folded{w: dev.Scratch(t, l.in, 2*n), bias: dev.Scratch(t, 1, 2*n), key: dev.New(t, n, n),
		value: dev.New(t, n, n), scale: dev.Scratch(t, n, n), scaled: dev.Scratch(t, n, n)}
	l.eachBlock(r, f.key, l.keyRel.Value, dev.Copy)
	l.eachBlock(r, f.value, l.valueRel.Value, dev.Copy)
	columns := dev.Scratch(t, 1, n)
	dev.MatMul(columns, l.prior[r].Value, l.spread, tensor.MatMul{})
	dev.MatMul(f.scale, l.ones, columns, tensor.MatMul{})
	dev.Multiply(f.scaled, f.key, f.scale)
	dev.Free(columns)
	w, bias := l.kqv[source].Value, l.kqvBias[source].Value
	dev.MatMul(l.part(f.w, 0), l.part(w, 0), f.scaled, tensor.MatMul{})
	dev.MatMul(l.part(f.w, 1), l.part(w, 2), f.value, tensor.MatMul{})
	dev.MatMul(l.part(f.bias, 0), l.part(bias, 0), f.scaled, tensor.MatMul{})
	dev.MatMul(l.part(f.bias, 1), l.part(bias, 2), f.value, tensor.MatMul{})
	return f
}

// eachBlock calls f with the blocks on the diagonal of a matrix and those of a relation's weights, by head.
func (l *hgt) eachBlock(r int, diagonal, weights tensor.Matrix, f func(block, weight tensor.Matrix)) {
	d := l.wide / l.heads
	for h := range l.heads {
		at := (h*len(l.prior) + r) * d
		f(diagonal.Slice(h*d, (h+1)*d).Columns(h*d, (h+1)*d), weights.Slice(at, at+d))
	}
}

// unfold adds to the gradients of what a relation's weights are folded of, from those of keys and values dkv of rows x.
func (l *hgt) unfold(r int, f *folded, x, dkv tensor.Matrix) {
	dev, n := l.p.Dev, l.wide
	t, source := dev.Type(), l.types.Relations[r].Source
	dw, dbias, d := dev.Scratch(t, l.in, 2*n), dev.Scratch(t, 1, 2*n), dev.Scratch(t, n, n)
	dev.MatMul(dw, x, dkv, tensor.MatMul{TransA: true})
	dev.ColumnSum(dbias, dkv, false)
	w, bias := l.kqv[source], l.kqvBias[source]
	back := func(half, third int, by tensor.Matrix) { // dw = dfolded·byᵀ, dby = wᵀ·dfolded
		dev.MatMul(l.part(w.Grad, third), l.part(dw, half), by, tensor.MatMul{TransB: true, Add: true})
		dev.MatMul(l.part(bias.Grad, third), l.part(dbias, half), by, tensor.MatMul{TransB: true, Add: true})
		dev.MatMul(d, l.part(w.Value, third), l.part(dw, half), tensor.MatMul{TransA: true})
		dev.MatMul(d, l.part(bias.Value, third), l.part(dbias, half), tensor.MatMul{TransA: true, Add: true})
	}
	add := func(block, grad tensor.Matrix) { dev.Combine(grad, 1, grad, 1, block) }
	back(1, 2, f.value)
	l.eachBlock(r, d, l.valueRel.Grad, add)
	back(0, 0, f.scaled)
	dscale, columns := dev.Scratch(t, n, n), dev.Scratch(t, 1, n)
	dev.Multiply(dscale, d, f.key)
	dev.ColumnSum(columns, dscale, false)
	dev.MatMul(l.prior[r].Grad, columns, l.spread, tensor.MatMul{TransB: true, Add: true})
	dev.Multiply(d, d, f.scale)
	l.eachBlock(r, d, l.keyRel.Grad, add)
	freeAll(l.p, &dw, &dbias, &d, &dscale, &columns)
}

// gate is the last linear map of a type with its share folded in, and what the type's own rows are multiplied by:
//
//	w = s·O, bias = s·o, past = (1-s)·I        past is none where y is not as wide as x, and s is 1
type gate struct {
	shares        tensor.Matrix // [1, 2]: s and 1-s
	w, bias, past tensor.Matrix
}

// gate is made when first asked for in a pass.
func (l *hgt) gate(t int) *gate {
	if l.gates[t] != nil {
		return l.gates[t]
	}
	dev, n := l.p.Dev, l.wide
	typ := dev.Type()
	g := &gate{w: dev.Scratch(typ, n, n), bias: dev.Scratch(typ, 1, n)}
	l.gates[t] = g
	if l.in != n {
		dev.Copy(g.w, l.post[t].Value)
		dev.Copy(g.bias, l.postBias[t].Value)
		return g
	}
	g.shares, g.past = dev.New(typ, 1, 2), dev.Scratch(typ, n, n)
	dev.Copy(g.shares.Columns(0, 1), l.skips[t].Value)
	dev.Softmax(g.shares, g.shares)
	scale := func(dst, m tensor.Matrix, share int) {
		k := dst.Rows * dst.Cols
		dev.MatMul(dst.Reshape(k, 1), m.Reshape(k, 1), g.shares.Columns(share, share+1), tensor.MatMul{})
	}
	scale(g.w, l.post[t].Value, 0)
	scale(g.bias, l.postBias[t].Value, 0)
	scale(g.past, l.eye, 1)
	return g
}

// gateGrad adds to the gradients of a type's last linear map and of its share, for rows lo to hi.
func (l *hgt) gateGrad(t int, x, dy tensor.Matrix, lo, hi int) {
	dev, n, g := l.p.Dev, l.wide, l.gate(t)
	typ := dev.Type()
	dw, dbias, rows := dev.Scratch(typ, n, n), dev.Scratch(typ, 1, n), l.gelu(lo, hi)
	dev.MatMul(dw, rows, dy, tensor.MatMul{TransA: true})
	dev.ColumnSum(dbias, dy, false)
	if g.past.IsZero() {
		dev.Combine(l.post[t].Grad, 1, l.post[t].Grad, 1, dw)
		dev.Combine(l.postBias[t].Grad, 1, l.postBias[t].Grad, 1, dbias)
	} else {
		k := n * n
		s := g.shares.Columns(0, 1)
		dev.MatMul(l.post[t].Grad.Reshape(k, 1), dw.Reshape(k, 1), s, tensor.MatMul{Add: true})
		dev.MatMul(l.postBias[t].Grad.Reshape(n, 1), dbias.Reshape(n, 1), s, tensor.MatMul{Add: true})
		d := dev.New(typ, 1, 2)
		addDot(dev, d.Columns(0, 1), dw, l.post[t].Value)
		addDot(dev, d.Columns(0, 1), dbias, l.postBias[t].Value)
		addDot(dev, d.Columns(1, 2), dy, x)
		ds := d.Columns(0, 1)
		dev.Combine(ds, 1, ds, -1, d.Columns(1, 2))
		dev.Multiply(ds, ds, s)
		dev.Multiply(ds, ds, g.shares.Columns(1, 2))
		dev.Combine(l.skips[t].Grad, 1, l.skips[t].Grad, 1, ds)
		dev.Free(d)
	}
	freeAll(l.p, &dw, &dbias, &rows)
}
