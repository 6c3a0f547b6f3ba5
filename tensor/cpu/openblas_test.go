//go:build openblas

package cpu

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/ebitengine/purego"

	"starling/tensor/cpu/simd"
)

// The comparison with OpenBLAS (Debian: libopenblas0-pthread), ours, OpenBLAS and
// a plain FMA loop taking turns in one run:
//
//	go test -tags openblas -run '^$' -bench Peers ./tensor
//
// Reported per shape and threads: our best rate, and the median of its ratios to the
// FMA loop's and OpenBLAS's right after. OPENBLAS_CORETYPE=SKYLAKEX is set here unless the
// environment names another, because Debian's version takes newer processors for old ones.

type openblas struct {
	threads func(n int32)
	sgemm   func(order, transA, transB, m, n, k int32, alpha float32, a *float32, lda int32, b *float32, ldb int32,
		beta float32, c *float32, ldc int32)
	core func() string
}

func openOpenBLAS(b *testing.B) openblas {
	if os.Getenv("OPENBLAS_CORETYPE") == "" && simd.Supported() >= simd.AVX512 {
		os.Setenv("OPENBLAS_CORETYPE", "SKYLAKEX")
	}
	lib, err := purego.Dlopen("libopenblas.so.0", purego.RTLD_NOW)
	if err != nil {
		b.Skipf("OpenBLAS is not installed (Debian: apt-get install libopenblas0-pthread): %v", err)
	}
	var o openblas
	purego.RegisterLibFunc(&o.threads, lib, "openblas_set_num_threads")
	purego.RegisterLibFunc(&o.sgemm, lib, "cblas_sgemm")
	purego.RegisterLibFunc(&o.core, lib, "openblas_get_corename")
	return o
}

func (o openblas) multiply(dst, a, b Matrix, op MatMul) {
	trans := func(t bool) int32 { return map[bool]int32{false: 111, true: 112}[t] }
	depth := a.Cols
	if op.TransA {
		depth = a.Rows
	}
	o.sgemm(101, trans(op.TransA), trans(op.TransB), int32(dst.Rows), int32(dst.Cols), int32(depth),
		1, &f32Of(a)[0], int32(a.Stride()), &f32Of(b)[0], int32(b.Stride()), 0, &f32Of(dst)[0], int32(dst.Stride()))
}

// readSeconds is how long it takes to read matrices on all threads: with the time at the FMA peak, the
// roofline of a product of them.
func readSeconds(c *Device, ms ...Matrix) (t float64) {
	for _, m := range ms {
		const piece = 32 << 10 // numbers
		t += seconds(func() {
			c.forRows(len(f32Of(m)), piece, func(lo, hi, _, _ int) { simd.StreamRead(c.level, f32Of(m)[lo:hi]) })
		})
	}
	return t
}

func BenchmarkPeers(b *testing.B) {
	blas := openOpenBLAS(b)
	for _, s := range peerShapes {
		// OpenBLAS would have cores that we have not
		for threads := 1; threads <= min(2, runtime.GOMAXPROCS(0)); threads++ {
			b.Run(fmt.Sprintf("%v/threads=%d", s, threads), func(b *testing.B) {
				c := New(threads)
				defer c.Close()
				blas.threads(int32(threads))
				dst, x, y := s.operands(c, F32)
				c.MatMul(dst, x, y, s.op) // touches the memory
				var rate, ofFMA, ofRoof, ofBLAS []float64
				for range b.N {
					t := seconds(func() { c.MatMul(dst, x, y, s.op) })
					rate = append(rate, s.flops()/t)
					fma := fmaSeconds(c, s.flops())
					ofFMA = append(ofFMA, fma/t)
					ofRoof = append(ofRoof, max(fma, readSeconds(c, dst, x, y))/t)
					ofBLAS = append(ofBLAS, seconds(func() { blas.multiply(dst, x, y, s.op) })/t)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(slices.Max(rate)/1e9, "GFLOP/s")
				b.ReportMetric(median(ofFMA), "of-FMA")
				b.ReportMetric(median(ofRoof), "of-roofline")
				b.ReportMetric(median(ofBLAS), "of-"+blas.core())
			})
		}
	}
}
