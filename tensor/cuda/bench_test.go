//go:build linux && amd64 && !static

package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
)

// Kernels beside what the GPU can do: sums over neighbours beside a plain gather of the same rows, products
// with cuBLAS and without, passes over numbers beside a copy. Rates are of the bytes or operations that
// must be.
//
//	STARLING_TEST_CUDA=1 go test -run '^$' -bench . ./tensor/cuda
func gpu(b *testing.B, o cuda.Options) *cuda.Device {
	if os.Getenv("STARLING_TEST_CUDA") == "" {
		b.Skip("STARLING_TEST_CUDA=1 measures on a GPU")
	}
	d, err := cuda.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(d.Close)
	return d
}

// loop runs an operation b.N times, after a few.
func loop(b *testing.B, d *cuda.Device, bytes, flops float64, op func()) {
	for range 3 {
		op()
	}
	d.Sync()
	b.ResetTimer()
	for range b.N {
		op()
	}
	d.Sync()
	s := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(s*1e3, "ms")
	if bytes > 0 {
		b.ReportMetric(bytes/s/1e12, "TB/s")
	}
	if flops > 0 {
		b.ReportMetric(flops/s/1e12, "TFLOP/s")
	}
}

func normal(d *cuda.Device, t tensor.DType, rows, cols int) tensor.Matrix {
	m := d.Scratch(t, rows, cols)
	x := make([]float32, rows*cols)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range min(len(x), 1<<20) {
		x[i] = r.Float32() - 0.5
	}
	for lo := 1 << 20; lo < len(x); lo += 1 << 20 {
		copy(x[lo:], x[:1<<20])
	}
	d.Upload(m, x)
	return m
}

var types = map[string]tensor.DType{"f32": tensor.F32, "bf16": tensor.BF16}

func BenchmarkAggregate(b *testing.B) {
	for _, g := range []struct {
		name          string
		nodes, degree int
	}{{"arxiv", 169343, 14}, {"reddit", 232965, 100}} {
		index := make([]uint32, g.nodes*g.degree)
		ptr := make([]int64, g.nodes+1)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range index {
			index[i] = uint32(r.IntN(g.nodes))
		}
		for i := range ptr {
			ptr[i] = int64(i * g.degree)
		}
		for name, t := range types {
			for _, cols := range []int{256, 128, 47} {
				b.Run(fmt.Sprintf("%s/%s/%d", g.name, name, cols), func(b *testing.B) {
					d := gpu(b, cuda.Options{})
					src, dst := normal(d, t, g.nodes, cols), d.Scratch(t, g.nodes, cols)
					s := tensor.NewSparse(d, g.nodes, g.nodes, ptr, index, nil)
					bytes := float64(len(index)) * float64(cols*t.Size())
					loop(b, d, bytes, 0, func() { d.Aggregate(dst, s, src, tensor.Aggregate{}) })
				})
				b.Run(fmt.Sprintf("%s/%s/%d/gather", g.name, name, cols), func(b *testing.B) {
					d := gpu(b, cuda.Options{})
					n := min(len(index), 1<<22)
					src, dst := normal(d, t, g.nodes, cols), d.Scratch(t, n, cols)
					x := tensor.Indices(d, index[:n])
					loop(b, d, float64(n)*float64(cols*t.Size()), 0, func() { d.GatherRows(dst, src, x) })
				})
			}
		}
	}
}

func BenchmarkMatMul(b *testing.B) {
	const rows = 232965
	for _, k := range []struct {
		name string
		t    tensor.DType
		o    cuda.Options
	}{
		{"f32-cublas", tensor.F32, cuda.Options{}}, {"f32-own", tensor.F32, cuda.Options{Exact: true, Plain: true}},
		{"split-own", tensor.F32, cuda.Options{Plain: true}}, {"tf32-cublas", tensor.F32, cuda.Options{TF32: true}},
		{"tf32-own", tensor.F32, cuda.Options{TF32: true, Plain: true}}, {"bf16-cublas", tensor.BF16, cuda.Options{}},
		{"bf16-own", tensor.BF16, cuda.Options{Plain: true}},
	} {
		for _, s := range [][2]int{{256, 256}, {602, 256}, {100, 256}, {256, 47}} {
			run := func(what string, op func(d *cuda.Device, x, w, y tensor.Matrix)) {
				b.Run(fmt.Sprintf("%s/%dx%d/%s", k.name, s[0], s[1], what), func(b *testing.B) {
					d := gpu(b, k.o)
					x, w, y := normal(d, k.t, rows, s[0]), normal(d, tensor.F32, s[0], s[1]), normal(d, k.t, rows, s[1])
					loop(b, d, 0, 2*rows*float64(s[0]*s[1]), func() { op(d, x, w, y) })
				})
			}
			run("forward", func(d *cuda.Device, x, w, y tensor.Matrix) { d.MatMul(y, x, w, tensor.MatMul{}) })
			run("backward", func(d *cuda.Device, x, w, y tensor.Matrix) { d.MatMul(x, y, w, tensor.MatMul{TransB: true}) })
			run("weights", func(d *cuda.Device, x, w, y tensor.Matrix) { d.MatMul(w, x, y, tensor.MatMul{TransA: true}) })
		}
	}
}

func BenchmarkElements(b *testing.B) {
	const rows, cols = 1 << 20, 256
	for name, t := range types {
		size := float64(rows * cols * t.Size())
		run := func(op string, passes float64, f func(d *cuda.Device, x, y, z tensor.Matrix)) {
			b.Run(op+"/"+name, func(b *testing.B) {
				d := gpu(b, cuda.Options{})
				x, y, z := normal(d, t, rows, cols), d.New(t, rows, cols), d.New(t, rows, cols)
				loop(b, d, passes*size, 0, func() { f(d, x, y, z) })
			})
		}
		epi := tensor.Epilogue{Act: tensor.ReLU}
		drop := tensor.Epilogue{Act: tensor.ReLU, Dropout: tensor.Dropout{P: 0.5, Key: 7}}
		run("copy", 2, func(d *cuda.Device, x, y, _ tensor.Matrix) { d.Copy(y, x) })
		run("sum", 3, func(d *cuda.Device, x, y, z tensor.Matrix) { d.Combine(z, 1, x, 1, y) })
		run("relu", 2, func(d *cuda.Device, x, y, _ tensor.Matrix) { d.Activate(y, x, epi) })
		run("dropout", 2, func(d *cuda.Device, x, y, _ tensor.Matrix) { d.Activate(y, x, drop) })
		run("gradient", 3, func(d *cuda.Device, x, y, z tensor.Matrix) { d.ActivateGrad(z, x, y, drop, tensor.Matrix{}) })
		run("gradient-bias", 3, func(d *cuda.Device, x, y, z tensor.Matrix) {
			bias := d.Scratch(tensor.F32, 1, cols)
			d.ActivateGrad(z, x, y, drop, bias)
			d.Free(bias)
		})
		run("column-sum", 1, func(d *cuda.Device, x, _, _ tensor.Matrix) {
			bias := d.Scratch(tensor.F32, 1, cols)
			d.ColumnSum(bias, x, false)
			d.Free(bias)
		})
	}
}
