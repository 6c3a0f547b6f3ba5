package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

// shortBench is short rows of one type that are in the second-level cache.
type shortBench struct {
	cols int
	half bool
	r    *rand.Rand
}

const shortBenchRows = 1024

func (s shortBench) block() Block {
	size := map[bool]int{false: 4, true: 2}[s.half]
	m := Block{Data: unsafe.Pointer(&aligned[byte](shortBenchRows*s.cols*size + 64)[0]), Stride: s.cols * size, BF16: s.half}
	for i := range shortBenchRows {
		for j := range s.cols {
			m.Set(i, j, float32(s.r.NormFloat64()))
		}
	}
	return m
}

// softmax is of listed rows, those between become zero; without a list of all, unlabelled.
func (s shortBench) softmax(listed func(i int) bool) func() {
	const rows = shortBenchRows
	room := make([]float32, 2*rows+2*(s.cols+16))
	k := Softmax{X: s.block(), Dst: s.block(), Cols: s.cols, Rows: rows, Sum: &room[0], Gap: &room[rows], Exp: &room[2*rows], Scale: 1}
	if listed != nil {
		labels, list := make([]uint32, rows), []uint32{}
		for i := range labels {
			if labels[i] = uint32(s.r.IntN(s.cols)); listed(i) {
				list = append(list, uint32(i))
			}
		}
		k.Labels, k.List, k.Rows, k.Fill = &labels[0], &list[0], len(list), k.Fills(Supported())
	}
	return func() {
		k.First = 0
		k.Run(Supported())
	}
}

// norms are layer norm, its gradient and argmax.
func (s shortBench) norms() (norm, gradient, argmax func()) {
	const rows = shortBenchRows
	x, y, param, stat, best := s.block(), s.block(), make([]float32, 4*(s.cols+16)), make([]float32, 2*rows), make([]uint32, rows)
	vector := func(i int) *float32 { return &param[i*(s.cols+16)] }
	m := Map{Src: x, Dst: s.block(), Rows: rows, Cols: s.cols, Stat: &stat[0], StatStride: 8, Moments: true, Eps: 1e-5, Scale: vector(0), Bias: vector(1), Act: 1}
	g := LayerGrad{Dx: s.block(), Dy: y, X: x, Rows: rows, Cols: s.cols, Stat: &stat[0], StatStride: 8, Gamma: vector(0), DGamma: vector(2), DBeta: vector(3)}
	a := Argmax{X: x, Rows: rows, Cols: s.cols, Dst: &best[0]}
	return func() { m.Run(Supported()) }, func() { g.Run(Supported()) }, func() { a.Run(Supported()) }
}

// BenchmarkShortRows is what short rows take when memory is not waited for, each that is listed: the best of many, for the
// core has a second thread that may be busy.
func BenchmarkShortRows(b *testing.B) {
	for _, cols := range []int{7, 40} {
		for _, half := range []bool{false, true} {
			s := shortBench{cols, half, rand.New(rand.NewPCG(1, 2))}
			measure := func(name string, rows int, run func()) {
				typ := map[bool]string{false: "float32", true: "bfloat16"}[half]
				b.Run(fmt.Sprintf("%s/cols=%d/%s", name, cols, typ), func(b *testing.B) {
					least := time.Hour
					for range 4000 {
						start := time.Now()
						run()
						least = min(least, time.Since(start))
					}
					b.ReportMetric(float64(least.Nanoseconds())/float64(rows), "ns/row")
				})
			}
			norm, gradient, argmax := s.norms()
			measure("cross-entropy", shortBenchRows, s.softmax(func(int) bool { return true }))
			measure("cross-entropy-half", shortBenchRows/2, s.softmax(func(i int) bool { return i%16 < 8 }))
			measure("softmax", shortBenchRows, s.softmax(nil))
			measure("layer-norm", shortBenchRows, norm)
			measure("layer-norm-gradient", shortBenchRows, gradient)
			measure("argmax", shortBenchRows, argmax)
		}
	}
}
