package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOuterHalvesOfChangingColumns: scales of columns are those of rows before, but columns that grow, shrink, appear or
// come and go are as exact as others, and an infinite number spoils its own column only.
func TestOuterHalvesOfChangingColumns(t *testing.T) {
	c := NewCPU(2)
	defer c.Close()
	a, b := outerSides(c, func(k, j int) float64 {
		switch j % 8 {
		case 1:
			return math.Exp2(float64(k / 32))
		case 2:
			return math.Exp2(-float64(k / 32))
		case 3:
			return []float64{1, 0}[min(k%300, 1)]
		case 4:
			return []float64{0, 1e3}[k/1000%2]
		case 5:
			return []float64{1, 1e-5}[k/64%2]
		case 6:
			return 1e-25
		case 7:
			return []float64{1e15, 1}[min(k%700, 1)]
		}
		return 1
	})
	b.f32[1500*b.Cols+40] = float32(math.Inf(1))
	checkOuter(t, c, a, b, 2e-6)
}

// TestOuterHalvesBehindALargeNumber: rows behind a number that is far too large for the others' scales keep their bits,
// but for the 64 rows that go with it. The sum has nothing of it to hide them.
func TestOuterHalvesBehindALargeNumber(t *testing.T) {
	c := NewCPU(2)
	defer c.Close()
	a, b := outerSides(c, func(k, j int) float64 { return []float64{1, 1e15}[k%700/699] })
	for k := 699; k < a.Rows; k += 700 {
		clear(a.row(k))
	}
	checkOuter(t, c, a, b, 0.15) // three times 64 of 2600 rows
}

// outerSides are positive numbers, those of the wide side of the sizes said.
func outerSides(c *CPU, size func(row, col int) float64) (a, b Matrix) {
	const rows, classes, cols = 2600, 40, 130
	r := rand.New(rand.NewPCG(3, 3))
	a, b = c.New(F32, rows, classes), c.New(F32, rows, cols)
	for i := range a.f32 {
		a.f32[i] = r.Float32()
	}
	for i := range b.f32 {
		b.f32[i] = float32(math.Abs(r.NormFloat64()) * size(i/cols, i%cols))
	}
	return a, b
}

// checkOuter fails unless aᵀ·b is right up to so much of the sum, and the same on one thread and on c's. Columns with
// infinite numbers are infinite or NaN.
func checkOuter(t *testing.T, c *CPU, a, b Matrix, off float64) {
	checkOuterBy(t, a, b, off, c, (*CPU).MatMul)
}

// checkOuterBy is checkOuter of one way to multiply.
func checkOuterBy(t *testing.T, a, b Matrix, off float64, c *CPU, multiply func(c *CPU, dst, a, b Matrix, op MatMul)) {
	one := NewCPU(1)
	defer one.Close()
	dst, again := c.New(F32, a.Cols, b.Cols), c.New(F32, a.Cols, b.Cols)
	want, _ := dumbMatMul(dst, a, b, tn)
	multiply(one, dst, a, b, tn)
	multiply(c, again, a, b, tn)
	for i, got := range numbers(dst) {
		if want[i]-want[i] != 0 {
			if got-got == 0 {
				t.Fatalf("number (%d,%d) is %g, where one is infinite", i/b.Cols, i%b.Cols, got)
			}
		} else if !(math.Abs(got-want[i]) <= off*want[i]) {
			t.Fatalf("number (%d,%d) is %g, want %g", i/b.Cols, i%b.Cols, got, want[i])
		}
	}
	same := func(x, y float32) bool { return x == y || x != x && y != y }
	if !slices.EqualFunc(dst.f32, again.f32, same) {
		t.Fatal("two threads' sums are not one's")
	}
}
