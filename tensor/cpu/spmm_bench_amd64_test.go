package cpu

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"starling/tensor"
	"starling/tensor/bfloat"
	"starling/tensor/cpu/simd"
)

// benchGraph has uniform random sources: the worst a gather can meet.
func benchGraph(rows, entries int) *edges {
	r := rand.New(rand.NewPCG(1, 1))
	g := &edges{rows: rows, cols: rows, ptr: make([]int64, rows+1), index: make([]uint32, entries)}
	for range entries {
		g.ptr[1+r.IntN(rows)]++
	}
	for i := range rows {
		g.ptr[i+1] += g.ptr[i]
	}
	for e := range g.index {
		g.index[e] = uint32(r.IntN(rows))
	}
	return g
}

// BenchmarkAggregate compares an aggregation with a plain gather of as many rows (1
// is the best one can hope for; the destination rows that aggregation also writes count
// against it), interleaved as a whole (of-plain) and, since the machine's speed changes
// from one to the next, interleaved in steps of some hundred microseconds on each core (of-steps).
// Rows are scaled and entries have values, as in a GCN.
func BenchmarkAggregate(b *testing.B) {
	if simd.Supported() < simd.AVX512 {
		b.Skip("the yardstick needs AVX-512")
	}
	d := New(runtime.GOMAXPROCS(0))
	defer d.Close()
	for _, size := range []struct{ rows, entries, width int }{
		{169343, 2501829, 16}, {169343, 2501829, 32}, {169343, 2501829, 40}, {169343, 2501829, 64}, {169343, 2501829,
			100}, {169343, 2501829, 128},
		{169343, 2501829, 256}, {169343, 2501829, 500}, {89250, 989006, 602}, {20000, 200000, 4096}, {1433, 49216,
			16}, {7000, 1500000, 256}, {500, 1000000, 256},
	} {
		g := benchGraph(size.rows, size.entries)
		for _, t := range []DType{F32, BF16} {
			b.Run(fmt.Sprintf("rows=%d/entries=%d/width=%d/type=%v", size.rows, size.entries, size.width, t),
				func(b *testing.B) {
					src, dst := filled(d, t, size.rows, size.width), filled(d, t, size.rows, size.width)
					defer d.Free(src)
					defer d.Free(dst)
					scale := filled(d, F32, size.rows, 1)
					defer d.Free(scale)
					s := g.sparse(d, false).WithValues(filled(d, F32, size.entries, 1))
					defer d.Free(s.Values())
					bytes := size.width * t.Size()
					plain := func() {
						d.forRows(len(g.index), 4096, func(lo, hi, _, _ int) {
							simd.GatherRows(d.level, bytesOf(src), bytes, g.index[lo:hi])
						})
					}
					run := func() { d.Aggregate(dst, s, src, Aggregate{RowScale: scale}) }
					ratio(b, plain, run, int64(size.entries)*int64(bytes))
					b.ReportMetric(turns(d, g, dst, src, scale, s.Values()), "of-steps")
				})
		}
	}
}

// turns is the median over pieces of the first half of the rows of the time a plain
// gather takes for a piece, against an aggregation of the piece as far into the other half.
func turns(d *Device, g *edges, dst, src, scale, value Matrix) float64 {
	bytes, half := src.Cols*src.Type().Size(), g.rows/2
	var mu sync.Mutex
	var of []float64
	d.forRows(half, max(8, (400<<10)/bytes), func(lo, hi, _, _ int) {
		acc := takeFloats(simd.MaxCols)
		defer floatsPool.Put(acc)
		l, h := lo+half, hi+half
		a := simd.RowSums{
			Src: stridedOf(src), Dst: stridedOf(dst.Slice(l, h)), Rows: h - l, Cols: src.Cols, Ptr: g.ptr[l : h+
				1], Index: g.index,
			Value: f32Of(value), RowScale: f32Of(scale)[l:], Acc: *acc, Stream: dst.Bytes() >= streamBytes,
		}
		plain := seconds(func() {
			simd.GatherRows(d.level, bytesOf(src), bytes, g.index[g.ptr[lo]:g.ptr[hi]])
		})
		ours := seconds(func() { simd.AggregateRows(d.level, &a) })
		each := float64(g.ptr[h]-g.ptr[l]) / float64(g.ptr[hi]-g.ptr[lo])
		mu.Lock()
		of = append(of, each*plain/ours)
		mu.Unlock()
	})
	return median(of)
}

// filled is a matrix of small numbers: fresh memory that was never written would all be one page.
func filled(d *Device, t DType, rows, cols int) Matrix {
	m := d.New(t, rows, cols)
	for i := range f32Of(m) {
		f32Of(m)[i] = float32(i%7) - 3
	}
	for i := range b16Of(m) {
		b16Of(m)[i] = bfloat.Round(float32(i%7) - 3)
	}
	return m
}

// ratio times two functions interleaved and reports how much of the first's speed
// the second has (the median over turns, since the machine may be busy with
// other things) and the second's best time and bytes per second.
func ratio(b *testing.B, plain, run func(), bytes int64) {
	plain()
	run()
	best := time.Hour
	var of []float64
	for b.Loop() {
		at := time.Now()
		plain()
		mid := time.Now()
		run()
		tp, tr := mid.Sub(at), time.Since(mid)
		best, of = min(best, tr), append(of, tp.Seconds()/tr.Seconds())
	}
	slices.Sort(of)
	b.ReportMetric(of[len(of)/2], "of-plain")
	b.ReportMetric(float64(bytes)/best.Seconds()/1e9, "GB/s")
	b.ReportMetric(1e3*best.Seconds(), "ms")
}

func BenchmarkAttend(b *testing.B) {
	d := New(runtime.GOMAXPROCS(0))
	defer d.Close()
	for _, size := range []struct{ rows, entries, heads, width int }{
		{169343, 2501829, 4, 32}, {169343, 2501829, 8, 8}, {169343, 2501829, 1, 40}, {7000, 1500000, 4, 32},
	} {
		g := benchGraph(size.rows, size.entries)
		for _, t := range []DType{F32, BF16} {
			for _, p := range []float32{0, 0.5} {
				name := fmt.Sprintf("rows=%d/entries=%d/heads=%d/width=%d/type=%v/drop=%g", size.rows, size.entries,
					size.heads, size.width, t, p)
				cols := size.heads * size.width
				z, dst, dz, ddst := filled(d, t, size.rows, cols), filled(d, t, size.rows, cols), filled(d, t,
					size.rows, cols), filled(d, t, size.rows, cols)
				left, right, stat := filled(d, F32, size.rows, size.heads), filled(d, F32, size.rows,
					size.heads), filled(d, F32, size.rows, 2*size.heads)
				dleft, dright := filled(d, F32, size.rows, size.heads), filled(d, F32, size.rows, size.heads)
				s := g.sparse(d, false)
				st := g.transpose(d, s)
				op := Attention{Heads: size.heads, Slope: 0.2, Dropout: Dropout{P: p, Key: 3}}
				plain := func() {
					d.forRows(len(g.index), 4096, func(lo, hi, _, _ int) {
						simd.GatherRows(d.level, bytesOf(z), cols*t.Size(), g.index[lo:hi])
					})
				}
				bytes := int64(size.entries) * int64(cols*t.Size())
				b.Run("pass=forward/"+name, func(b *testing.B) {
					ratio(b, plain, func() { d.Attend(dst, stat, s, z, left, right, op) }, bytes)
				})
				b.Run("pass=backward/"+name, func(b *testing.B) {
					ratio(b, plain, func() {
						d.AttendGrad(dz, dleft, dright, s, st, z, left, right, stat, dst, ddst,
							op)
					}, bytes)
				})
				for _, m := range []Matrix{z, dst, dz, ddst, left, right, stat, dleft, dright} {
					d.Free(m)
				}
			}
		}
	}
}

func BenchmarkHeadDot(b *testing.B) {
	d := New(runtime.GOMAXPROCS(0))
	defer d.Close()
	const rows, heads, width = 1 << 20, 4, 32
	for _, t := range []DType{F32, BF16} {
		z, dz := filled(d, t, rows, heads*width), filled(d, t, rows, heads*width)
		score, a, da := filled(d, F32, rows, heads), filled(d, F32, 1, heads*width), filled(d, F32, 1, heads*width)
		dot := HeadDot{Score: score, A: a, DA: da}
		all := make([]uint32, rows)
		for i := range all {
			all[i] = uint32(i)
		}
		plain := func() {
			d.forRows(rows, 4096, func(lo, hi, _, _ int) {
				simd.GatherRows(d.level, bytesOf(z), heads*width*t.Size(), all[lo:hi])
			})
		}
		bytes := z.Bytes()
		b.Run(fmt.Sprintf("pass=forward/type=%v", t), func(b *testing.B) {
			ratio(b, plain, func() { d.HeadDot(z, dot, dot) }, bytes)
		})
		b.Run(fmt.Sprintf("pass=backward/type=%v", t), func(b *testing.B) {
			ratio(b, plain, func() { d.HeadDotGrad(dz, z, dot, dot) }, 3*bytes)
		})
		b.Run(fmt.Sprintf("pass=copy/type=%v", t), func(b *testing.B) {
			ratio(b, plain, func() { d.GatherRows(dz, z, tensor.MakeIndex(tensor.FromSlice(len(all), 1, all))) },
				2*bytes)
		})
		for _, m := range []Matrix{z, dz, score, a, da} {
			d.Free(m)
		}
	}
}
