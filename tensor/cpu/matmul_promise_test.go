package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"starling/internal/testseed"
)

// adversarial are numbers that split products, by themselves, lose bits of: what they make of the
// number in row i of a or b, where k is its place in the sum.
var adversarial = []struct {
	name string
	a, b func(r *rand.Rand, k int, x float64) float64
}{
	{"ordinary", asIs, asIs},
	{"columns from 1e-8 to 1e8, inverse weights", spread(1), spread(-1)},
	{"columns from 1e-8 to 1e8", spread(1), asIs},
	{"weights from 1e-8 to 1e8", asIs, spread(1)},
	{"1e8 with weight 0", at7(1e8), at7(0)},
	{"1e12 with weight 0", at7(1e12), at7(0)},
	{"weight 1e12 of 0", at7(0), at7(1e12)},
	{"from 1e33 on", times(1e33), times(1e-3)},
	{"1e37 and 1e-37", times(1e37), times(1e-37)},
	{"1e-3 and 1e36", times(1e-3), times(1e36)},
	{"below 1e-32", times(1e-33), asIs},
	{"weights below 1e-36", asIs, times(1e-36)},
	{"products below 1e-38", times(1e-20), times(1e-20)},
	{"an untrained row times 1e9", at7(1e9), at7(0)},
	{"any exponent", anyExponent, anyExponent},
	{"half zeros, any exponent", halfZeros(anyExponent), halfZeros(anyExponent)},
	{"half zeros", halfZeros(asIs), halfZeros(asIs)},
}

func asIs(_ *rand.Rand, _ int, x float64) float64 { return x }

func times(f float64) func(*rand.Rand, int, float64) float64 {
	return func(_ *rand.Rand, _ int, x float64) float64 { return f * x }
}

func spread(sign float64) func(*rand.Rand, int, float64) float64 {
	return func(_ *rand.Rand, k int, x float64) float64 { return x * math.Pow(10, sign*float64(k%17-8)) }
}

func at7(f float64) func(*rand.Rand, int, float64) float64 {
	return func(_ *rand.Rand, k int, x float64) float64 {
		if k == 7 {
			return f * x
		}
		return x
	}
}

func anyExponent(r *rand.Rand, _ int, x float64) float64 { return math.Ldexp(x, r.IntN(81)-40) }

func halfZeros(f func(*rand.Rand, int, float64) float64) func(*rand.Rand, int, float64) float64 {
	return func(r *rand.Rand, k int, x float64) float64 { return f(r, k, x) * float64(r.IntN(2)) }
}

// TestProductsKeepFloat32sPromise: errors are at most 32·k·2⁻²⁴·(|A|·|B|) place by place, whatever
// finite numbers are multiplied, on every instruction set.
func TestProductsKeepFloat32sPromise(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.New(t), 1))
	shapes := [][3]int{{130, 96, 80}, {70, 24, 64}, {40, 700, 49}}
	if testing.Short() {
		shapes = [][3]int{{33, 24, 20}, {18, 12, 16}, {10, 175, 13}}
	}
	for _, level := range levels() {
		c := newLevel(2, level)
		for i, x := range adversarial {
			for j, op := range []MatMul{{}, {TransB: true}, {TransA: true}, {Add: true}, {TransA: true, Add: true}} {
				s := shapes[(i+j)%len(shapes)] // every one with every operation and with all numbers
				if op.TransA {
					s = [3]int{s[1], 13 * s[0], s[2]}
				}
				dst, a, b := randomProduct(c, r, s[0], s[1], s[2], op, typeCases[0], false)
				adverse(r, a, op.TransA, x.a)
				adverse(r, b, !op.TransB, x.b)
				checkPromise(t, c, x.name, dst, a, b, op, s[1])
			}
		}
		c.Close()
	}
}

// adverse makes f's numbers of those of m, whose rows are places in the sum, or whose columns are.
func adverse(r *rand.Rand, m Matrix, rows bool, f func(*rand.Rand, int, float64) float64) {
	for i := range m.Rows {
		for j, x := range rowOf(m, i) {
			k := j
			if rows {
				k = i
			}
			rowOf(m, i)[j] = float32(f(r, k, float64(x)))
		}
	}
}

func checkPromise(t *testing.T, c *Device, name string, dst, a, b Matrix, op MatMul, k int) {
	t.Helper()
	if !op.Add {
		c.Zero(dst) // what it held is no part of the promise
	}
	want, size := dumbMatMul(dst, a, b, op)
	c.MatMul(dst, a, b, op)
	for i, got := range numbers(dst) {
		if size[i] > math.MaxFloat32/2 {
			continue
		}
		most := 32 * float64(k) * (size[i]/(1<<24) + math.SmallestNonzeroFloat32/32)
		if !(math.Abs(got-want[i]) <= most) {
			t.Errorf("%s: %v = %v · %v at %v, %+v: number (%d,%d) is %g, want %g, off by %.3g of the bound", name, dst, a, b,
				c.level, op, i/dst.Cols, i%dst.Cols, got, want[i], math.Abs(got-want[i])/most)
			return
		}
	}
}
