package measure

import (
	"starling/tensor"
	"starling/tensor/cpu"
)

// bench has what kernels of one type need, and frees it.
type bench struct {
	*cpu.Device
	Options
	typ  tensor.DType
	mine []tensor.Matrix
}

// family is kernels that share matrices, which they give back before the next's.
type family func(*bench) []kernel

var families = []family{(*bench).dense, (*bench).sparse, (*bench).elements, (*bench).losses}

func (b *bench) free() {
	for _, m := range b.mine {
		b.Free(m)
	}
	b.mine = nil
}

// filled is a matrix of small numbers: memory that was never written is one page of zeros.
func (b *bench) filled(t tensor.DType, rows, cols int) tensor.Matrix {
	m := b.New(t, rows, cols)
	b.mine = append(b.mine, m)
	line := make([]float32, cols)
	for i := range line {
		line[i] = float32(i%17)/8 - 1
	}
	for i := range rows {
		b.Upload(m.Slice(i, i+1), line)
	}
	return m
}

func (b *bench) rows() tensor.Matrix { return b.filled(b.typ, b.Rows, b.Width) }

func (b *bench) param() tensor.Matrix { return b.filled(tensor.F32, 1, b.Width) }

// dense are the three products of a layer: rows times weights, a gradient times the weights
// transposed, and the gradient of the weights; and those of a last layer of forty classes and of seven.
func (b *bench) dense() []kernel {
	x, y, w, dw := b.rows(), b.rows(), b.filled(tensor.F32, b.Width, b.Width), b.filled(tensor.F32, b.Width, b.Width)
	column, read, move := 2*float64(b.Rows)*float64(b.Width), b.stream(1, 0), b.stream(1, 1)
	work, there := column*float64(b.Width), b.fma(move, x, y)
	all := []kernel{
		{"product", work, func() { b.MatMul(y, x, w, tensor.MatMul{}) }, there},
		{"product-transposed", work, func() { b.MatMul(y, x, w, tensor.MatMul{TransB: true}) }, there},
		{"product-weights", work, func() { b.MatMul(dw, x, y, tensor.MatMul{TransA: true}) }, b.fma(read, x, y)},
	}
	for _, last := range []struct {
		name    string
		classes int
	}{{"product-narrow", 40}, {"product-few", 7}} {
		few, w, dw := b.filled(b.typ, b.Rows, last.classes), b.filled(tensor.F32, b.Width,
			last.classes), b.filled(tensor.F32, b.Width, last.classes)
		work, in, out := column*float64(last.classes), b.fma(read, x, few), b.fma(move, x, few)
		all = append(all, []kernel{
			{last.name, work, func() { b.MatMul(few, x, w, tensor.MatMul{}) }, in},
			{last.name + "-transposed", work, func() { b.MatMul(y, few, w, tensor.MatMul{TransB: true}) }, out},
			{last.name + "-weights", work, func() { b.MatMul(dw, x, few, tensor.MatMul{TransA: true}) }, in},
		}...)
	}
	return all
}

// sparse are SpMM and attention with four heads.
func (b *bench) sparse() []kernel {
	g := newGraph(b.Rows, b.Degree)
	adj := tensor.NewSparse(b, b.Rows, b.Rows, g.ptr, g.index, nil)
	x, y, scale := b.rows(), b.rows(), b.filled(tensor.F32, b.Rows, 1)
	scaled := adj.WithValues(b.filled(tensor.F32, len(g.index), 1)) // GCN's scales of columns lie with the edges
	one, own := float64(b.Width*b.typ.Size()), g.own()
	work, gather := one*float64(len(g.index)), b.gather(x, g.index)
	return append([]kernel{
		{"sum", work, func() { b.Aggregate(y, adj, x, tensor.Aggregate{}) }, gather},
		{"mean", work, func() { b.Aggregate(y, adj, x, tensor.Aggregate{RowScale: scale}) }, gather},
		{"gcn-sum", one * float64(len(own)), func() {
			b.Aggregate(y, scaled, x,
				tensor.Aggregate{RowScale: scale, SelfScale: scale, Self: 1})
		}, b.gather(x, own)},
	}, b.attention(g, x, y, work)...)
}

// elements work on each number, or each row, by itself.
func (b *bench) elements() []kernel {
	x, dy, y := b.rows(), b.rows(), b.rows()
	bias, gamma, dgamma, stat := b.param(), b.param(), b.param(), b.filled(tensor.F32, b.Rows, 2)
	sums, moments, gs := b.filled(tensor.F64, 2, b.Width), b.filled(tensor.F64, 2, b.Width), b.filled(tensor.F64, 2,
		b.Width)
	sum := b.filled(tensor.F64, 1, 1)
	b.ColumnSums(sums, x)
	b.Moments(moments, tensor.Matrix{}, sums, int64(b.Rows), 0)
	b.LayerNorm(y, stat, x, gamma, bias, 1e-5, tensor.Epilogue{})
	drop := tensor.Dropout{P: 0.5, Key: 3}
	relu, elu := tensor.Epilogue{Act: tensor.ReLU, Dropout: drop}, tensor.Epilogue{Act: tensor.ELU, Dropout: drop}
	reluBias, eluBias := relu, elu
	reluBias.Bias, eluBias.Bias = bias, bias
	one, norms := float64(x.Bytes()), float64(stat.Bytes()) // of short rows what layer norm keeps of each is not little
	read, double, move, triad := b.stream(1, 0), b.stream(2, 0), b.stream(1, 1), b.stream(2, 1)
	n := int64(b.Rows)
	return []kernel{
		{"zero", one, func() { b.Zero(y) }, move},
		{"copy", 2 * one, func() { b.Copy(y, x) }, move},
		{"combine", 3 * one, func() { b.Combine(y, 0.5, x, 0.25, dy) }, triad},
		{"relu", 2 * one, func() { b.Activate(y, x, tensor.Epilogue{Bias: bias, Act: tensor.ReLU}) }, move},
		{"elu", 2 * one, func() { b.Activate(y, x, tensor.Epilogue{Bias: bias, Act: tensor.ELU}) }, move},
		{"relu-dropout", 2 * one, func() { b.Activate(y, x, reluBias) }, move},
		{"elu-dropout", 2 * one, func() { b.Activate(y, x, eluBias) }, move},
		{"relu-gradient", 3 * one, func() { b.ActivateGrad(y, dy, x, relu, dgamma) }, triad},
		{"elu-gradient", 3 * one, func() { b.ActivateGrad(y, dy, x, elu, dgamma) }, triad},
		{"dot", 2 * one, func() { b.Dot(sum, x, dy) }, double},
		{"column-sums", one, func() { b.ColumnSums(sums, x) }, read},
		{"batch-norm", 2 * one, func() {
			b.BatchNorm(y, x, moments, gamma, bias, 1e-5,
				tensor.Epilogue{Act: tensor.ReLU})
		}, move},
		{"batch-norm-sums", 2 * one, func() { b.BatchNormSums(gs, dy, x, moments, 1e-5) }, double},
		{"batch-norm-gradient", 3 * one, func() { b.BatchNormGrad(y, dy, x, moments, gs, gamma, n, 1e-5) }, triad},
		{"layer-norm", 2*one + norms, func() {
			b.LayerNorm(y, stat, x, gamma, bias, 1e-5,
				tensor.Epilogue{Act: tensor.ReLU})
		}, move},
		{"layer-norm-gradient", 3*one + norms, func() { b.LayerNormGrad(y, dgamma, dgamma, dy, x, stat, gamma) },
			triad},
	}
}

// losses compare rows, taken for the scores of classes, with labels.
func (b *bench) losses() []kernel {
	x, dy, y := b.rows(), b.rows(), b.rows()
	labels, all := make([]uint32, b.Rows), make([]uint32, b.Rows)
	for i := range all {
		labels[i], all[i] = uint32(i%b.Width), uint32(i)
	}
	half := make([]uint32, 0, b.Rows/2)
	for i := range b.Rows {
		if i%16 < 8 {
			half = append(half, uint32(i))
		}
	}
	class, every, some, best := tensor.Indices(b, labels), tensor.Indices(b, all), tensor.Indices(b,
		half), tensor.Indices(b, make([]uint32, b.Rows))
	one, list := float64(x.Bytes()), 4*float64(b.Rows) // a list of rows, of labels or of results
	lost := b.filled(tensor.F64, 1, 2)
	lines := float64(touched(half, b.Width*b.typ.Size()) + touched(half, 4))
	read, move, triad := b.stream(1, 0), b.stream(1, 1), b.stream(2, 1)
	return []kernel{
		{"cross-entropy", 2*one + 2*list, func() {
			b.Loss(lost, y, x,
				tensor.Loss{Labels: class, Rows: every, Scale: 1e-3})
		}, move},
		{"cross-entropy-half", lines + one + list/2, func() {
			b.Loss(lost, y, x,
				tensor.Loss{Labels: class, Rows: some, Scale: 1e-3})
		}, move},
		{"bce", 3*one + list, func() {
			b.Loss(lost, y, x, tensor.Loss{Kind: tensor.BCE, Targets: dy, Rows: every,
				Scale: 1e-3})
		}, triad},
		{"softmax", 2 * one, func() { b.Softmax(y, x) }, move},
		{"argmax", one + list, func() { b.Argmax(best, x) }, read},
	}
}

// touched is how many bytes listed rows have, in ascending order, with what else is in their
// lines: memory moves no less.
func touched(list []uint32, rowBytes int) (bytes int) {
	const line = 64
	next := 0 // the first line not counted yet
	for _, r := range list {
		first, end := int(r)*rowBytes/line, (int(r+1)*rowBytes+line-1)/line
		bytes += line * (end - max(first, next))
		next = end
	}
	return bytes
}
