package cpu

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"starling/tensor"
	"starling/tensor/bfloat"
	"starling/tensor/cpu/simd"
)

// peerShape is a product of the sizes models have: rows vertices, in -> out.
type peerShape struct {
	name          string
	rows, in, out int
	op            MatMul
}

func (s peerShape) String() string {
	return fmt.Sprintf("%s/rows=%d/in=%d/out=%d", s.name, s.rows, s.in, s.out)
}

func (s peerShape) flops() float64 { return 2 * float64(s.rows) * float64(s.in) * float64(s.out) }

var (
	nn = MatMul{}
	nt = MatMul{TransB: true}
	tn = MatMul{TransA: true}

	peerShapes = []peerShape{
		{"NN", 169343, 256, 256, nn}, {"NT", 169343, 256, 256, nt}, {"TN", 169343, 256, 256, tn},
		{"NN", 169343, 128, 256, nn}, {"NN", 169343, 256, 40, nn}, {"NN", 89250, 500, 256, nn}, {"NN", 60000, 602, 256,
			nn},
		{"NT", 169343, 256, 40, nt}, {"NT", 169343, 40, 256, nt}, {"TN", 169343, 128, 256, tn}, {"TN", 169343, 256, 40,
			tn}, {"TN", 89250, 500, 256, tn}, {"TN", 60000, 602, 256, tn},
		{"NN", 30000, 256, 7, nn}, {"NN", 60000, 256, 47, nn}, {"NN", 19793, 1433, 256, nn}, {"NN", 19793, 1433, 16,
			nn}, {"TN", 19793, 1433, 16, tn},
	}
)

// operands are the matrices of the product: in each case one of them, or dst for
// TN, is the small in x out one.
func (s peerShape) operands(c *Device, rows DType) (dst, a, b Matrix) {
	switch {
	case s.op.TransA:
		dst, a, b = c.New(F32, s.in, s.out), c.New(rows, s.rows, s.in), c.New(rows, s.rows, s.out)
	case s.op.TransB:
		dst, a, b = c.New(rows, s.rows, s.out), c.New(rows, s.rows, s.in), c.New(F32, s.out, s.in)
	default:
		dst, a, b = c.New(rows, s.rows, s.out), c.New(rows, s.rows, s.in), c.New(F32, s.in, s.out)
	}
	for _, m := range []Matrix{a, b} {
		for i := range f32Of(m) {
			f32Of(m)[i] = float32(i%17) - 8
		}
		for i := range b16Of(m) {
			b16Of(m)[i] = bfloat.Round(float32(i%17) - 8)
		}
	}
	return dst, a, b
}

func BenchmarkMatMul(b *testing.B) {
	for _, s := range peerShapes {
		for _, t := range []DType{F32, BF16} {
			for threads := 1; threads <= 2; threads++ {
				b.Run(fmt.Sprintf("%v/type=%v/threads=%d", s, t, threads), func(b *testing.B) {
					c := New(threads)
					defer c.Close()
					dst, x, y := s.operands(c, t)
					c.MatMul(dst, x, y, s.op) // touches the memory
					var rate, ofFMA []float64
					for range b.N {
						t := seconds(func() { c.MatMul(dst, x, y, s.op) })
						rate = append(rate, s.flops()/t)
						ofFMA = append(ofFMA, fmaSeconds(c, s.flops())/t)
					}
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(slices.Max(rate)/1e9, "GFLOP/s")
					b.ReportMetric(median(ofFMA), "of-FMA")
				})
			}
		}
	}
}

// BenchmarkFewColumns is products with a narrow side, or those that STARLING_BENCH_SHAPES names as KIND/ROWS/IN/OUT, in
// turns with the FMA peak and with reading what they read and write.
func BenchmarkFewColumns(b *testing.B) {
	shapes := []peerShape{
		{"NN", 50000, 256, 40, nn}, {"TN", 50000, 256, 40, tn}, {"NT", 50000, 40, 256, nt}, {"NT", 50000, 47, 256,
			nt}, {"NT", 50000, 32, 256, nt},
		{"NN", 50000, 256, 7, nn}, {"NT", 50000, 256, 7, nt}, {"TN", 50000, 256, 7, tn}, {"NN", 50000, 256, 16,
			nn}, {"TN", 50000, 256, 16, tn},
		{"NN", 10000, 1433, 7, nn}, {"TN", 10000, 1433, 16, tn}, {"NN", 500000, 7, 7, nn}, {"NN", 200000, 16, 16,
			nn}, {"NN", 200000, 16, 7, nn},
	}
	if named := os.Getenv("STARLING_BENCH_SHAPES"); named != "" {
		shapes = shapesNamed(b, named)
	}
	for _, s := range shapes {
		for _, t := range []DType{F32, BF16} {
			for threads := 1; threads <= 2; threads++ {
				b.Run(fmt.Sprintf("%v/type=%v/threads=%d", s, t, threads),
					func(b *testing.B) { besideReading(b, s, t, threads) })
			}
		}
	}
}

// shapesNamed are products such as "NN/1600/256/40,TN/50000/256/40".
func shapesNamed(b *testing.B, text string) (shapes []peerShape) {
	for one := range strings.SplitSeq(text, ",") {
		var s peerShape
		_, err := fmt.Sscanf(strings.ReplaceAll(one, "/", " "), "%s %d %d %d", &s.name, &s.rows, &s.in, &s.out)
		op, ok := map[string]MatMul{"NN": nn, "NT": nt, "TN": tn}[s.name]
		if err != nil || !ok || min(s.rows, s.in, s.out) < 1 {
			b.Fatalf("STARLING_BENCH_SHAPES has %q, want NN, NT or TN and three sizes, such as NN/1600/256/40", one)
		}
		s.op = op
		shapes = append(shapes, s)
	}
	return shapes
}

// besideReading times one product, and a row of it.
func besideReading(b *testing.B, s peerShape, t DType, threads int) {
	c := New(threads)
	defer c.Close()
	dst, x, y := s.operands(c, t)
	tall := []Matrix{x, dst}
	if s.op.TransA {
		tall[1] = y
	}
	c.MatMul(dst, x, y, s.op) // touches the memory
	var row, ofFMA, ofRead []float64
	for range b.N {
		t := seconds(func() { c.MatMul(dst, x, y, s.op) })
		row = append(row, 1e9*t/float64(s.rows))
		ofFMA = append(ofFMA, fmaSeconds(c, s.flops())/t)
		ofRead = append(ofRead, seconds(func() { readAll(c, tall) })/t)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(row), "ns/row")
	b.ReportMetric(median(ofFMA), "of-FMA")
	b.ReportMetric(median(ofRead), "of-read")
}

// readAll reads matrices on all threads.
func readAll(c *Device, ms []Matrix) {
	for _, m := range ms {
		c.forRows(m.Rows, max(1, (32<<10)/m.Cols), func(lo, hi, _, _ int) {
			if f32Of(m) != nil {
				simd.StreamRead(c.level, f32Of(m)[lo*m.Stride():hi*m.Stride()])
				return
			}
			words := b16Of(m)[lo*m.Stride() : hi*m.Stride()]
			simd.StreamRead(c.level, unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), len(words)/2))
		})
	}
}

// BenchmarkBlocks is a product of 169343 x 256 and 256 x 256 interleaved in steps of under a
// millisecond with the FMA peak, on each core: what its blocks reach at the better
// moments (best: nine turns of ten are below) and the worse. Where a core's sibling thread
// belongs to another tenant, the two are far apart.
func BenchmarkBlocks(b *testing.B) {
	for threads := 1; threads <= 2; threads++ {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			c := New(threads)
			defer c.Close()
			dst, x, y := peerShape{"NN", 169343, 256, 256, nn}.operands(c, F32)
			c.MatMul(dst, x, y, nn)
			g := c.newProduct(x.Cols, dst.Cols)
			panels, workspace := c.packSmall(y, false, g), c.Scratch(F32, c.threads, g.block*simd.LeftPitch)
			tiles := make([]perCore[simd.Tile], c.threads)
			var mu sync.Mutex
			var of []float64
			for range b.N {
				c.forRows(dst.Rows, 4*g.block, func(lo, hi, _, thread int) {
					ours := seconds(func() {
						for i := lo; i < hi; i += g.block {
							end := min(hi, i+g.block)
							c.block(g, &tiles[thread].of, dst.Slice(i, end), x.Slice(i, end), panels,
								rowOf(workspace, thread), false)
						}
					})
					var flops int
					fma := seconds(func() { flops = simd.FMALoop(c.level, 50_000) })
					mu.Lock()
					of = append(of, 2*float64(hi-lo)*float64(g.k*g.n)/ours/(float64(flops)/fma))
					mu.Unlock()
				})
			}
			slices.Sort(of)
			b.ReportMetric(0, "ns/op")
			for name, q := range map[string]float64{"worst-of-FMA": 0.1, "of-FMA": 0.5, "best-of-FMA": 0.9} {
				b.ReportMetric(of[int(q*float64(len(of)-1))], name)
			}
		})
	}
}

// BenchmarkZeroSkipping is products that skip zeros interleaved with those that do not, which
// take as long whatever the numbers: how many
// times as fast lists are, at the worse moments, in the middle and at the better (a tenth, half, nine tenths).
func BenchmarkZeroSkipping(b *testing.B) {
	shapes := []peerShape{{"NN", 20000, 256, 256, nn}, {"NN", 20000, 256, 64, nn}, {"NT", 20000, 256, 256, nt},
		{"TN", 1600, 256, 256, tn}, {"TN", 20000, 256, 256, tn}, {"TN", 20000, 256, 128, tn}, {"TN", 20000, 256, 602,
			tn}}
	for level := simd.AVX2; level <= simd.Supported(); level++ {
		for _, s := range shapes {
			for _, zeros := range []float64{0.5, 0.75, 0.9} {
				for threads := 1; threads <= 2; threads++ {
					b.Run(fmt.Sprintf("%v/zeros=%v/level=%v/threads=%d", s, zeros, level, threads), func(b *testing.B) {
						c := newLevel(threads, level)
						defer c.Close()
						timesSkipping(b, c, s, zeros)
					})
				}
			}
		}
	}
}

func timesSkipping(b *testing.B, c *Device, s peerShape, zeros float64) {
	dst, full, y := s.operands(c, F32)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range f32Of(full) {
		f32Of(full)[i] = r.Float32() + 0.5
	}
	x := c.New(F32, full.Rows, full.Cols)
	c.Copy(x, full)
	dropNumbers(x, r, zeros)
	lists := c.tallSmallSkipping
	if s.op.TransA {
		lists = c.tallTallSkipping
	}
	var times []float64
	for range b.N {
		without := seconds(func() { c.MatMul(dst, full, y, s.op) })
		times = append(times, without/seconds(func() { lists(dst, x, y, s.op) }))
	}
	slices.Sort(times)
	b.ReportMetric(0, "ns/op")
	for name, q := range map[string]float64{"worst-times": 0.1, "times": 0.5, "best-times": 0.9} {
		b.ReportMetric(times[int(q*float64(len(times)-1))], name)
	}
}

func BenchmarkColumnSum(b *testing.B) {
	ones := slices.Repeat([]float32{1}, 256)
	for _, t := range []DType{F32, BF16} {
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("rows=169343/cols=256/type=%v/threads=%d", t, threads), func(b *testing.B) {
				c := New(threads)
				defer c.Close()
				src, dst := c.New(t, 169343, 256), c.New(F32, 1, 256)
				for i := range src.Rows { // untouched memory is all one page of zeros
					tensor.CopyIn(src.Slice(i, i+1), ones)
				}
				b.SetBytes(src.Bytes())
				b.ResetTimer()
				for range b.N {
					c.ColumnSum(dst, src, false)
				}
			})
		}
	}
}

// fmaSeconds is how long a plain FMA loop on all threads of the device takes for so
// many operations: as many as the product's it is compared with, because on a busy
// machine a short burst finds a moment of full speed that a long product cannot.
func fmaSeconds(c *Device, flops float64) float64 {
	const steps = 2_000
	each := simd.FMALoop(c.level, steps)
	chunks := max(1, int(flops/float64(each)))
	t := seconds(func() {
		c.run(chunks, func(int, int) { simd.FMALoop(c.level, steps) })
	})
	return t * flops / (float64(each) * float64(chunks))
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

func seconds(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}
