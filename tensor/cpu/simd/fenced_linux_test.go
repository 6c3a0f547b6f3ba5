package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"unsafe"
)

// fenced is rows whose last number is the last before memory that must not be touched.
func fenced(t *testing.T, rows, cols, gap int, half bool, r *rand.Rand) Block {
	t.Helper()
	const page = 4096
	size := map[bool]int{false: 4, true: 2}[half]
	bytes := ((rows-1)*(cols+gap) + cols) * size
	length := (bytes + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, length+page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err == nil {
		err = syscall.Mprotect(all[length:], syscall.PROT_NONE)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(all) })
	b := Block{Data: unsafe.Pointer(&all[length-bytes]), Stride: (cols + gap) * size, BF16: half}
	for i := range bytes / size {
		(&Block{Data: b.Data, BF16: half}).Set(0, i, float32(r.NormFloat64()))
	}
	return b
}

// numbers returns the numbers of a block, and what lies between its rows.
func numbers(b Block, rows, cols, gap int) (in, between []float32) {
	for i := range rows {
		for j := range cols + gap {
			if i == rows-1 && j >= cols {
				break
			}
			if x := b.At(i, j); j < cols {
				in = append(in, x)
			} else {
				between = append(between, x)
			}
		}
	}
	return in, between
}

// fencedCases runs body on rows of every width up to three vectors and more, for levels above the first.
func fencedCases(t *testing.T, body func(t *testing.T, what string, l Level, rows, cols, gap int, half bool,
	r *rand.Rand)) {
	r := rand.New(rand.NewPCG(5, 1))
	for l := Generic + 1; l <= Supported(); l++ {
		for cols := 1; cols <= 49; cols++ {
			for k, c := range []struct{ rows, gap int }{{1, 0}, {16, 0}, {17, 3}, {47, 3}, {100, 0}, {101, 0},
				{96, 3}} {
				half := (cols+k)%2 == 0
				body(t, fmt.Sprintf("%v, %d x %d, gap %d, bfloat16 %v", l, c.rows, cols, c.gap, half), l, c.rows, cols,
					c.gap, half, r)
			}
		}
	}
}

func near(t *testing.T, what string, half bool, got, want []float32) {
	t.Helper()
	tol := 3e-5
	if half {
		tol = 1. / 200
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= tol*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("%s: place %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// special makes some rows of a block zeros of either sign, of which the first is the largest, and one number of others
// -Inf, but not in one column.
func special(x Block, i, cols, not int, r *rand.Rand) {
	switch j := r.IntN(cols); {
	case i%7 == 3:
		for j := range cols {
			x.Set(i, j, float32(math.Copysign(0, r.NormFloat64())))
		}
	case i%7 == 5 && j != not:
		x.Set(i, j, float32(math.Inf(-1)))
	}
}

// TestFencedSoftmax: softmax equals the generic level's whichever rows are listed, and touches nothing else.
func TestFencedSoftmax(t *testing.T) {
	fencedCases(t, func(t *testing.T, what string, l Level, rows, cols, gap int, half bool, r *rand.Rand) {
		x, labels := fenced(t, rows, cols, gap, half, r), make([]uint32, rows)
		var some, all []uint32
		for i := range labels {
			labels[i] = uint32(r.IntN(cols))
			special(x, i, cols, int(labels[i]), r)
			all = append(all, uint32(i))
			if i == rows-1 || r.IntN(3) > 0 {
				some = append(some, uint32(i))
			}
		}
		for _, list := range [][]uint32{all, some} {
			dst := fenced(t, rows, cols, gap, half, r)
			want := Block{Data: unsafe.Pointer(&make([]byte, rows*dst.Stride+64)[0]), Stride: dst.Stride, BF16: half}
			for i := range rows {
				for j := range cols {
					want.Set(i, j, dst.At(i, j))
				}
			}
			_, between := numbers(dst, rows, cols, gap)
			run := func(l Level, dst Block) (s Softmax, room []float32) {
				room = make([]float32, 2*rows+2*(cols+16))
				s = Softmax{X: x, Dst: dst, Rows: len(list), Cols: cols, List: &list[0], Labels: &labels[0],
					Sum: &room[0], Gap: &room[rows], Exp: &room[2*rows], Scale: 0.5}
				s.Run(l)
				return s, room[:2*rows]
			}
			got, gotBits := run(l, dst)
			expected, wantBits := run(Generic, want)
			after, stays := numbers(dst, rows, cols, gap)
			wanted, _ := numbers(want, rows, cols, gap)
			near(t, what, half, after, wanted)
			near(t, what+": sums and gaps", half, gotBits, wantBits)
			if got.Correct != expected.Correct || !slices.Equal(stays, between) {
				t.Fatalf("%s: %d right, want %d; between rows %v", what, got.Correct, expected.Correct,
					slices.Equal(stays, between))
			}
		}
	})
}

// TestFencedArgmax: the first largest column of rows, of which many are alike, zeros of either
// sign and -Inf among them.
// A NaN spoils no other row, and its own has some column.
func TestFencedArgmax(t *testing.T) {
	some := []float32{0, float32(math.Copysign(0, -1)), -1, -2, float32(math.Inf(-1))}
	fencedCases(t, func(t *testing.T, what string, l Level, rows, cols, gap int, half bool, r *rand.Rand) {
		x := fenced(t, rows, cols, gap, half, r)
		for i := range rows {
			for j := range cols {
				x.Set(i, j, some[min(i%len(some)+r.IntN(3), len(some)-1)]) // zero is not always there
			}
		}
		got, want := make([]uint32, rows+1), make([]uint32, rows+1)
		check := func() {
			(&Argmax{X: x, Rows: rows, Cols: cols, Dst: &got[0]}).Run(l)
			(&Argmax{X: x, Rows: rows, Cols: cols, Dst: &want[0]}).Run(Generic)
		}
		if check(); !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
		for i := 0; i < rows; i += 3 {
			for j := r.IntN(cols); j < cols; j += 1 + r.IntN(cols) {
				x.Set(i, j, float32(math.Copysign(math.NaN(), r.NormFloat64())))
			}
		}
		check()
		for i := range want {
			if i%3 == 0 && i < rows && got[i] < uint32(cols) {
				got[i] = want[i]
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s, with NaN: %v, want %v", what, got, want)
		}
	})
}

// TestFencedLayerNorm: layer norm and its gradient, with and without parameters, what is kept of rows side by
// side and not.
func TestFencedLayerNorm(t *testing.T) {
	fencedCases(t, func(t *testing.T, what string, l Level, rows, cols, gap int, half bool, r *rand.Rand) {
		x, dy := fenced(t, rows, cols, gap, half, r), fenced(t, rows, cols, gap, half, r)
		vector := func() []float32 {
			v := make([]float32, cols+15)
			for i := range cols {
				v[i] = float32(r.NormFloat64())
			}
			return v
		}
		gamma, beta, pair := vector(), vector(), 2+cols/2%2
		run := func(l Level) (y, dx, stat, dgamma, dbeta []float32) {
			out, back := fenced(t, rows, cols, gap, half, r), fenced(t, rows, cols, gap, half, r)
			_, before := numbers(out, rows, cols, gap)
			stat, dgamma, dbeta = make([]float32, pair*rows), make([]float32, cols+15), make([]float32, cols+15)
			m := Map{Src: x, Dst: out, Rows: rows, Cols: cols, Stat: &stat[0], StatStride: 4 * pair, Moments: true,
				Eps:   1e-3,
				Scale: &gamma[0], Act: uint8(cols % 4)}
			if cols%3 > 0 {
				m.Bias = &beta[0]
			}
			m.Run(l)
			g := LayerGrad{Dx: back, Dy: dy, X: x, Rows: rows, Cols: cols, Stat: &stat[0], StatStride: 4 * pair,
				Gamma: &gamma[0], DGamma: &dgamma[0], DBeta: &dbeta[0]}
			g.Run(l)
			y, after := numbers(out, rows, cols, gap)
			if !slices.Equal(before, after) {
				t.Fatalf("%s: what is between rows has changed", what)
			}
			dx, _ = numbers(back, rows, cols, gap)
			return y, dx, stat, dgamma[:cols], dbeta[:cols]
		}
		y, dx, stat, dgamma, dbeta := run(l)
		wantY, wantDx, wantStat, wantGamma, wantBeta := run(Generic)
		near(t, what, half, y, wantY)
		if cols > 1 { // one number has no deviation, and a gradient that is nothing but rounding
			scaled := func(v []float32) []float32 {
				for i := range v {
					v[i] /= 1 + stat[i/cols*pair+1]
				}
				return v
			}
			near(t, what+": gradient", half, scaled(dx), scaled(wantDx))
		}
		near(t, what+": moments", half, stat, wantStat)
		near(t, what+": gamma's gradient", half, dgamma, wantGamma)
		near(t, what+": beta's gradient", half, dbeta, wantBeta)
	})
}
