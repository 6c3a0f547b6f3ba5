package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"starling/tensor/simd"
)

// elementCase is one shape and choice of storage for the tests of element-wise
// work: matrices are views with gaps between rows where gap is set.
type elementCase struct {
	rows, cols, gap int
	in, out         DType
}

func (e elementCase) String() string {
	return fmt.Sprintf("%dx%d+%d %v to %v", e.rows, e.cols, e.gap, e.in, e.out)
}

func elementCases() (cases []elementCase) {
	shapes := [][2]int{{0, 5}, {5, 0}, {1, 1}, {3, 1}, {5, 7}, {4, 8}, {2, 15}, {7, 16}, {3, 17}, {2, 31},
		{9, 40}, {3, 63}, {3, 64}, {2, 65}, {5, 100}, {400, 129}, {2, 5000}, {3000, 7}, {70, 9}, {64, 12}, {99, 7}, {40, 31}}
	for i, s := range shapes {
		for k, types := range [][2]DType{{F32, F32}, {BF16, BF16}, {F32, BF16}, {BF16, F32}} {
			if s[0] > 100 && k%3 != 0 {
				continue // large shapes are for chunks and threads: two choices of storage will do
			}
			cases = append(cases, elementCase{s[0], s[1], (i + k) % 3, types[0], types[1]})
		}
	}
	return cases
}

// onEachCPU runs body for every instruction set of this processor, with 1, 2 and 3
// threads. What body returns must be the same bits for any number of threads.
func onEachCPU(t *testing.T, body func(t *testing.T, c *CPU) []float64) {
	for level := simd.Generic; level <= simd.Supported(); level++ {
		var first []float64
		for threads := 1; threads <= 3; threads++ {
			c := NewCPULevel(threads, level)
			got := body(t, c)
			c.Close()
			if threads == 1 {
				first = got
			}
			for i := range got {
				if math.Float64bits(got[i]) != math.Float64bits(first[i]) {
					t.Fatalf("%v: %d threads give %g in place %d, one gives %g", level, threads, got[i], i, first[i])
				}
			}
			if t.Failed() {
				t.Fatalf("at level %v with %d threads", level, threads)
			}
		}
	}
}

// random is a view of rows x cols numbers around zero and what it holds.
func (e elementCase) random(c *CPU, t DType, r *rand.Rand) (Matrix, []float64) {
	m := e.blank(c, t)
	host := make([]float64, e.rows*e.cols)
	for i := range host {
		host[i] = r.NormFloat64()
	}
	c.Upload(m, host)
	c.Download(host, m)
	return m, host
}

// blank is a view full of NaN, so that what an operation leaves out shows.
func (e elementCase) blank(c *CPU, t DType) Matrix {
	whole := c.New(t, e.rows, e.cols+e.gap)
	nan := make([]float64, e.rows*(e.cols+e.gap))
	for i := range nan {
		nan[i] = math.NaN()
	}
	c.Upload(whole, nan)
	return whole.Columns(e.gap, e.gap+e.cols)
}

func vectorOf(c *CPU, n int, r *rand.Rand) (Matrix, []float64) {
	return elementCase{rows: 1, cols: n}.random(c, F32, r)
}

func numbersOf(c *CPU, m Matrix) []float64 {
	host := make([]float64, m.Rows*m.Cols)
	c.Download(host, m)
	return host
}

// alike fails unless got is want up to a relative error: of float32 arithmetic, or of bfloat16 storage.
func alike(t *testing.T, what string, typ DType, got, want []float64) {
	t.Helper()
	tol := 3e-5
	if typ == BF16 {
		tol = 1. / 200
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: place %d is %.9g, want %.9g", what, i, got[i], want[i])
		}
	}
}

func actOf(a Act, x float64) float64 {
	switch {
	case x >= 0 || a == NoAct:
		return x
	case a == ReLU:
		return 0
	case a == ELU:
		return math.Expm1(x)
	}
	return 0.01 * x
}

func slopeOf(a Act, x float64) float64 {
	switch {
	case x >= 0 || a == NoAct:
		return 1
	case a == ReLU:
		return 0
	case a == ELU:
		return math.Exp(x)
	}
	return 0.01
}

func dropsOf(e elementCase, r *rand.Rand) []Dropout {
	ids := make([]uint32, e.rows)
	for i := range ids {
		ids[i] = r.Uint32()
	}
	return []Dropout{
		{}, {P: 0.3, Key: r.Uint64(), First: 7}, {P: 0.5, Key: r.Uint64(), IDs: Index{ids}},
		{P: 0.6, Key: r.Uint64(), IDs: Index{ids}}, {P: 0.5, Key: r.Uint64(), First: 9},
	}
}

func (d Dropout) dumbFactor(i, j int) float64 {
	if d.P == 0 {
		return 1
	}
	key, id := d.Key, d.id(i)
	kept := simd.Draw(simd.RowKey(key, id), uint32(j)) >= d.threshold()
	if d.P == 0.5 {
		kept = simd.RowBits(key, id, uint32(j/64))>>(j%64)&1 != 0
	}
	if kept {
		return d.scale()
	}
	return 0
}

func TestActivateAndItsGradient(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(1, 2))
		for n, e := range elementCases() {
			for act := NoAct; act <= LeakyReLU; act++ {
				after := After{Act: act, Dropout: dropsOf(e, r)[(n+int(act))%5]}
				src, x := e.random(c, e.in, r)
				bias, b := vectorOf(c, e.cols, r)
				if n%2 == 0 {
					after.Bias = bias
				} else {
					clear(b)
				}
				want, slope := make([]float64, len(x)), make([]float64, len(x))
				for i := range e.rows {
					for j := range e.cols {
						k := i*e.cols + j
						v := x[k] + b[j]
						f := after.Dropout.dumbFactor(i, j)
						want[k] = actOf(act, v) * f
						slope[k] = f * slopeOf(act, v)
					}
				}
				y := e.blank(c, e.out)
				c.Activate(y, src, after)
				name := fmt.Sprintf("%v %v p=%g", e, act, after.Dropout.P)
				alike(t, name, e.out, numbersOf(c, y), want)
				serial := e.blank(c, e.out)
				c.activateSerial(serial, src, after)
				alike(t, name+" serial", F32, numbersOf(c, serial), numbersOf(c, y))
				all = append(all, numbersOf(c, y)...)

				if act == ELU { // its slope is recovered from y as stored
					for k, v := range numbersOf(c, y) {
						if f := slope[k]; f != 0 && v < 0 {
							slope[k] = after.Dropout.scale() + v
						}
					}
				}
				dy, g := e.random(c, e.in, r)
				dbias, db := vectorOf(c, e.cols, r)
				for k := range g {
					g[k] *= slope[k]
					if e.cols > 0 {
						db[k%e.cols] += g[k]
					}
				}
				dx := e.blank(c, e.out)
				if n%3 == 0 && e.in == e.out {
					dx = dy
				}
				c.ActivateGrad(dx, dy, y, after, dbias)
				alike(t, name+" gradient", e.out, numbersOf(c, dx), g)
				if e.out == F32 {
					alike(t, name+" bias", F32, numbersOf(c, dbias), db)
				}
				all = append(append(all, numbersOf(c, dx)...), numbersOf(c, dbias)...)
			}
		}
		return all
	})
}

func TestELUIsAccurateNearZero(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) []float64 {
		x := []float64{-1e-20, -1e-7, -1e-3, -0.1, -0.34, -0.35, -1, -10, -86, -88, -1000, math.Inf(-1), 0, 3}
		m := c.New(F32, 1, len(x))
		c.Upload(m, x)
		c.Download(x, m)
		c.Activate(m, m, After{Act: ELU})
		got := numbersOf(c, m)
		for i, v := range x {
			if want := actOf(ELU, v); !(math.Abs(got[i]-want) <= 3e-7*math.Abs(want)) {
				t.Errorf("elu(%g) = %.9g, want %.9g", v, got[i], want)
			}
		}
		return got
	})
}

func TestCopyCombineDotFinite(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, e := range elementCases() {
			x, hx := e.random(c, e.in, r)
			y, hy := e.random(c, e.out, r)
			dst := e.blank(c, e.out)
			c.Copy(dst, x)
			alike(t, e.String()+" copy", e.out, numbersOf(c, dst), hx)
			wide := e.blank(c, F64)
			c.Copy(wide, x)
			c.Copy(dst, wide)
			alike(t, e.String()+" copy by float64", e.out, numbersOf(c, dst), hx)

			want := make([]float64, len(hx))
			dot := 0.0
			for k := range want {
				want[k] = 2.5*hx[k] - 0.5*hy[k]
				dot += hx[k] * hy[k]
			}
			c.Combine(dst, 2.5, x, -0.5, y)
			alike(t, e.String()+" combine", e.out, numbersOf(c, dst), want)
			if got := c.Dot(x, y); math.Abs(got-dot) > 1e-9*(1+float64(len(hx))) {
				t.Fatalf("%v: dot %.15g, want %.15g", e, got, dot)
			}
			all = append(append(all, numbersOf(c, dst)...), c.Dot(x, y))
			c.Combine(y, 2.5, x, -0.5, y)
			alike(t, e.String()+" combine in place", e.out, numbersOf(c, y), want)
			c.Combine(y, 3, x, 0, Matrix{})
			for k := range want {
				want[k] = 3 * hx[k]
			}
			alike(t, e.String()+" scale", e.out, numbersOf(c, y), want)
			checkFinite(t, c, e, x, r)
			c.Zero(y)
			alike(t, e.String()+" zero", F64, numbersOf(c, y), make([]float64, len(hx)))
		}
		return all
	})
}

func checkFinite(t *testing.T, c *CPU, e elementCase, x Matrix, r *rand.Rand) {
	t.Helper()
	if !c.Finite(x) {
		t.Fatalf("%v: finite numbers are said not to be", e)
	}
	if e.rows*e.cols == 0 {
		return
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		i, j := r.IntN(e.rows), r.IntN(e.cols)
		was := x.get(i, j)
		x.set(i, j, bad)
		if c.Finite(x) {
			t.Fatalf("%v: %g at (%d,%d) was not seen", e, bad, i, j)
		}
		x.set(i, j, was)
	}
}

func TestNaNGoesThroughActivations(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) []float64 {
		for act := NoAct; act <= LeakyReLU; act++ {
			for _, typ := range []DType{F32, BF16} {
				m := c.New(typ, 3, 21)
				m.set(1, 20, math.NaN())
				c.Activate(m, m, After{Act: act})
				if !math.IsNaN(m.get(1, 20)) {
					t.Errorf("%v of a NaN in %v is %g", act, typ, m.get(1, 20))
				}
			}
		}
		return nil
	})
}

// TestPassChunk: chunks grow to a megabyte where there are enough for many cores, and depend on nothing but the matrices.
func TestPassChunk(t *testing.T) {
	for _, x := range []struct{ rows, bytes, want int }{
		{100, 2048, 128},          // a quarter of a megabyte
		{16384, 2048, 128},        // 128 chunks of that
		{16384 + 4096, 2048, 160}, // as many larger ones
		{1 << 20, 2048, 512},      // a megabyte
		{1 << 20, 1 << 21, 4},     // rows of more than that
		{1 << 24, 28, 37440},      // whole lines of short rows
	} {
		if got := passChunk(x.rows, x.bytes); got != x.want {
			t.Errorf("%d rows of %d bytes: chunks of %d rows, want %d", x.rows, x.bytes, got, x.want)
		}
	}
}
