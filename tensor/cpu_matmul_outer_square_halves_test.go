package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"starling/tensor/simd"
)

// squareSides are positive numbers of the sizes said, of 40 columns each.
func squareSides(c *CPU, rows int, size func(row, col int) float64) (a, b Matrix) {
	r := rand.New(rand.NewPCG(4, 40))
	a, b = c.New(F32, rows, 40), c.New(F32, rows, 40)
	for i := range a.f32 {
		a.f32[i] = float32(math.Abs(r.NormFloat64()) * size(i/40, i%40))
		b.f32[i] = float32(math.Abs(r.NormFloat64()) * size(i/40, 39-i%40))
	}
	return a, b
}

// TestOuterSquareHalvesAreFloat32: sums of halves miss the exact ones by no more than sums of float32 do, or little more
// where all numbers are positive.
func TestOuterSquareHalvesAreFloat32(t *testing.T) {
	off := func(level simd.Level, positive bool) (sum float64) {
		c := NewCPULevel(2, level)
		defer c.Close()
		a, b := squareSides(c, 4500, func(_, col int) float64 { return math.Exp2(float64(col)) })
		for r, i := rand.New(rand.NewPCG(5, 40)), 0; i < len(a.f32) && !positive; i++ {
			a.f32[i] *= float32(1 - 2*r.IntN(2))
		}
		dst := c.New(F32, 40, 40)
		want, size := dumbMatMul(dst, a, b, tn)
		if level >= simd.AMXFP16 {
			c.tallTallOuterSquareHalves(dst, a, b, tn)
		} else {
			c.MatMul(dst, a, b, tn)
		}
		for i, got := range numbers(dst) {
			d := (got - want[i]) / size[i]
			sum += d * d
		}
		return math.Sqrt(sum)
	}
	for level := simd.AVX512; level <= simd.Supported(); level++ {
		for _, positive := range []bool{false, true} {
			say, times := t.Logf, off(level, positive)/off(simd.AVX512, positive)
			if !(times <= 1.1 || positive && times <= 2.5) {
				say = t.Errorf
			}
			say("%v, positive %v: the error is %.2f times float32's", level, positive, times)
		}
	}
}

// TestOuterSquareHalvesOfChangingColumns: scales of columns are those of some rows, but columns that grow, shrink, appear or
// come and go are as exact as others, and an infinite number spoils its own column only.
func TestOuterSquareHalvesOfChangingColumns(t *testing.T) {
	c := NewCPU(2)
	defer c.Close()
	sizes := []func(row, col int) float64{
		func(k, j int) float64 { return math.Exp2(float64(k/256*(j%5-2)) + float64(j%3*20-20)) },
		func(k, j int) float64 { return []float64{1, 1e-5, 1e2}[(k/64+j)%3] },
		func(k, j int) float64 { return []float64{1, 0}[min((k+100*j)%300, 1)] },
		func(k, j int) float64 { return []float64{0, 1e3}[(k+100*j)/1000%2] },
		func(k, j int) float64 { return []float64{1e3, 1}[min((k+j)%700, 1)] },
	}
	for _, size := range sizes {
		a, b := squareSides(c, 4500, size)
		checkOuterBy(t, a, b, 1e-5, c, (*CPU).tallTallOuterSquareHalves)
		a.f32[2000*40+7], b.f32[4499*40+39] = float32(math.Inf(1)), float32(math.NaN())
		checkOuterBy(t, a, b, 1e-5, c, (*CPU).tallTallOuterSquareHalves)
	}
}

// TestOuterSquareHalvesAfterALargeNumber: a number too large for its column's scale takes no bits from those of other rows,
// before it or behind. The sum has nothing of it to hide them.
func TestOuterSquareHalvesAfterALargeNumber(t *testing.T) {
	c := NewCPU(1)
	defer c.Close()
	const rows = 3*squareHalvesScaled + 50
	a, b := squareSides(c, rows, func(int, int) float64 { return 1 })
	large := squareHalvesScaled + 500
	clear(a.row(large))
	b.f32[large*40+11] = 1e25
	sum := c.New(F32, 40, 40)
	zeroRows(sum)
	var s squareHalves
	s.start(sum, a, b, make([]float32, simd.OuterSquareHalvesRoom))
	for lo := 0; lo < rows; lo += squareHalvesScaled {
		if want := lo >= 2*squareHalvesScaled; s.spoilt != want {
			t.Fatalf("before row %d a number was too large: %v, want %v", lo, s.spoilt, want)
		}
		end := min(rows, lo+squareHalvesScaled)
		s.add(c, a.Slice(lo, end), b.Slice(lo, end))
	}
	want, _ := dumbMatMul(sum, a, b, tn)
	for i, got := range numbers(sum) {
		if !(math.Abs(got-want[i]) <= 1e-5*want[i]) {
			t.Fatalf("number (%d,%d) is %g, want %g", i/40, i%40, got, want[i])
		}
	}
}

// TestOuterSquareHalvesOfEvenColumns: large products go by halves, unless some rows' columns are far larger than others'.
func TestOuterSquareHalvesOfEvenColumns(t *testing.T) {
	c := NewCPULevel(1, simd.Supported())
	defer c.Close()
	if c.halves() {
		for rows, want := range map[int]bool{200000: false, 220000: true} {
			if a := (Matrix{Rows: rows, Cols: 40, stride: 40}); c.outerSquareHalves(a, a) != want {
				t.Errorf("%d rows of 40 x 40 go by halves: %v, want %v", rows, !want, want)
			}
		}
	}
	for name, even := range map[string]struct {
		size func(row, col int) float64
		want bool
	}{
		"all alike":        {func(_, col int) float64 { return math.Exp2(float64(col)) }, true},
		"half zeros":       {func(row, col int) float64 { return float64((row*7 + col) / 3 % 2) }, true},
		"no column":        {func(_, col int) float64 { return float64(min(1, col)) }, true},
		"few rows":         {func(row, col int) float64 { return float64((row + 5*col) / 200 % 2) }, false},
		"a column growing": {func(row, col int) float64 { return 1 + float64(row*(col/39)) }, false},
	} {
		if a, _ := squareSides(c, 4500, even.size); c.evenColumns(a) != even.want {
			t.Errorf("%s: columns are even: %v, want %v", name, !even.want, even.want)
		}
	}
}
