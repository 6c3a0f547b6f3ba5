package tensor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"starling/tensor/simd"
)

// elementBench is one kernel: what it runs and the streams it is compared with.
type elementBench struct {
	op            string
	reads, writes []Matrix
	run           func()
}

// BenchmarkElement times each element-wise kernel and, in turns with it, a stream
// of the same bytes. "of-stream" is the median of their ratios: 1 is the machine's
// memory speed, and the engine asks for at most 1.3.
func BenchmarkElement(b *testing.B) {
	for _, typ := range []DType{F32, BF16} {
		for _, dim := range []int{7, 40, 256} {
			c := NewCPU(0)
			for _, k := range elementBenches(c, typ, (48<<20)/dim, dim) {
				b.Run(fmt.Sprintf("op=%s/dim=%d/type=%v", k.op, dim, typ), func(b *testing.B) { k.bench(b, c) })
			}
			c.Close()
		}
	}
}

func elementBenches(c *CPU, typ DType, rows, cols int) []elementBench {
	x, dy, y, dx := c.New(typ, rows, cols), c.New(typ, rows, cols), c.New(typ, rows, cols), c.New(typ, rows, cols)
	for _, m := range []Matrix{x, dy, y, dx} {
		c.Activate(m, m, After{Bias: biasOf(c, cols), Dropout: Dropout{P: 0.5, Key: uint64(len(m.f32))}})
	}
	bias, gamma := biasOf(c, cols), biasOf(c, cols)
	drop := Dropout{P: 0.5, Key: 3}
	sums, mv, gs, stat := c.New(F64, 2, cols), c.New(F64, 2, cols), c.New(F64, 2, cols), c.New(F32, rows, 2)
	labels, all, half := make([]uint32, rows), make([]uint32, rows), make([]uint32, 0, rows/2)
	for i := range rows {
		labels[i], all[i] = uint32(i%cols), uint32(i)
		if i%16 < 8 {
			half = append(half, uint32(i))
		}
	}
	best := make([]uint32, rows)
	in := func(m ...Matrix) []Matrix { return m }
	one := in(y)
	return []elementBench{
		{"zero", nil, one, func() { c.Zero(y) }},
		{"copy", in(x), one, func() { c.Copy(y, x) }},
		{"combine", in(x, dy), one, func() { c.Combine(y, 0.5, x, 0.25, dy) }},
		{"relu", in(x), one, func() { c.Activate(y, x, After{Bias: bias, Act: ReLU}) }},
		{"elu", in(x), one, func() { c.Activate(y, x, After{Bias: bias, Act: ELU}) }},
		{"relu-dropout", in(x), one, func() { c.Activate(y, x, After{Bias: bias, Act: ReLU, Dropout: drop}) }},
		{"elu-dropout", in(x), one, func() { c.Activate(y, x, After{Bias: bias, Act: ELU, Dropout: drop}) }},
		{"relu-grad", in(dy, x), one, func() { c.ActivateGrad(y, dy, x, After{Act: ReLU, Dropout: drop}, gamma) }},
		{"elu-grad", in(dy, x), one, func() { c.ActivateGrad(y, dy, x, After{Act: ELU, Dropout: drop}, gamma) }},
		{"dot", in(x, dy), nil, func() { c.Dot(x, dy) }},
		{"finite", in(x), nil, func() { c.Finite(x) }},
		{"column-sums", in(x), nil, func() { c.ColumnSums(sums, x); c.Moments(mv, sums, int64(rows)) }},
		{"batch-norm", in(x), one, func() { c.BatchNorm(y, x, mv, bias, bias, 1e-5, After{Act: ReLU}) }},
		{"batch-norm-sums", in(dy, x), nil, func() { c.BatchNormSums(gs, dy, x, mv, 1e-5) }},
		{"batch-norm-grad", in(dy, x), one, func() { c.BatchNormGrad(y, dy, x, mv, gs, bias, int64(rows), 1e-5) }},
		{"layer-norm", in(x), one, func() { c.LayerNorm(y, stat, x, bias, bias, 1e-5, After{Act: ReLU}) }},
		{"layer-norm-grad", in(dy, x), one, func() { c.LayerNormGrad(y, gamma, gamma, dy, x, stat, bias) }},
		{"cross-entropy", in(x), one, func() { c.CrossEntropy(y, x, Index{labels}, Index{all}, 1e-3) }},
		{"cross-entropy-half", in(x.Slice(0, rows/2)), one, func() { c.CrossEntropy(y, x, Index{labels}, Index{half}, 1e-3) }},
		{"bce", in(x, dy), one, func() { c.BCE(y, x, dy, Index{all}, 1e-3) }},
		{"softmax", in(x), one, func() { c.Softmax(y, x) }},
		{"argmax", in(x), nil, func() { c.Argmax(best, x) }},
	}
}

func biasOf(c *CPU, n int) Matrix {
	m := c.New(F32, 1, n)
	for j := range m.f32 {
		m.f32[j] = float32(j%7)/8 - 0.3
	}
	return m
}

func (k elementBench) bench(b *testing.B, c *CPU) {
	bytes := int64(0)
	for _, m := range append(slices.Clone(k.reads), k.writes...) {
		bytes += m.Bytes()
	}
	b.SetBytes(bytes)
	var mine []Matrix
	stream := k.stream(c, &mine)
	k.run()
	stream()
	var ratios []float64
	for b.Loop() {
		start := time.Now()
		k.run()
		mid := time.Now()
		stream()
		ratios = append(ratios, mid.Sub(start).Seconds()/time.Since(mid).Seconds())
	}
	for _, m := range mine {
		c.Free(m)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-stream")
}

// stream moves the kernel's bytes on all cores: a stream of reads, a copy, or a triad.
func (k elementBench) stream(c *CPU, mine *[]Matrix) func() {
	// Other memory of as many bytes: bfloat16 seen as float32 would be denormals to add.
	floats := func(m Matrix) Matrix {
		n := int(m.Bytes() / 4)
		f := c.Scratch(F32, 1, n)
		for i := range f.f32 {
			f.f32[i] = 1
		}
		*mine = append(*mine, f)
		return f
	}
	const piece = 32 << 10
	each := func(m Matrix, body func(lo, hi int)) {
		c.forRows(m.Cols, piece, func(lo, hi, _, _ int) { body(lo, hi) })
	}
	switch {
	case len(k.writes) == 0:
		var in []Matrix
		for _, m := range k.reads {
			in = append(in, floats(m))
		}
		return func() {
			for _, m := range in {
				each(m, func(lo, hi int) { simd.StreamRead(c.level, m.f32[lo:hi]) })
			}
		}
	case len(k.reads) == 0:
		dst := floats(k.writes[0])
		n := dst.Cols / 2 // half of it copied to the other half is as many bytes
		return func() {
			c.forRows(n, piece, func(lo, hi, _, _ int) { simd.StreamCopy(c.level, dst.f32[lo:hi], dst.f32[n+lo:n+hi]) })
		}
	case len(k.reads) == 1 && k.reads[0].Rows < k.writes[0].Rows:
		dst, src := floats(k.writes[0]), floats(k.reads[0])
		n := (dst.Cols + src.Cols) / 2 // as many bytes as the half that is read and the whole that is written
		return func() {
			c.forRows(n, piece, func(lo, hi, _, _ int) {
				from := lo % (src.Cols - piece)
				simd.StreamCopy(c.level, dst.f32[lo:hi], src.f32[from:from+hi-lo])
			})
		}
	case len(k.reads) == 1:
		dst, src := floats(k.writes[0]), floats(k.reads[0])
		return func() {
			each(dst, func(lo, hi int) { simd.StreamCopy(c.level, dst.f32[lo:hi], src.f32[lo:hi]) })
		}
	}
	dst, p, q := floats(k.writes[0]), floats(k.reads[0]), floats(k.reads[1])
	return func() {
		each(dst, func(lo, hi int) { simd.StreamTriad(c.level, dst.f32[lo:hi], p.f32[lo:hi], q.f32[lo:hi]) })
	}
}
