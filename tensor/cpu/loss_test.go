package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/tensor"
)

// someRows chooses rows of n: most in order, but for gaps; few, shuffled; all or none.
func someRows(c *Device, n, kind int, r *rand.Rand) Index {
	var list []uint32
	for i := range n {
		most, few := r.IntN(4) > 0 && i%1000 < 850, r.IntN(4) == 0
		if kind == 0 && most || kind == 1 && few || kind == 2 {
			list = append(list, uint32(i))
		}
	}
	if kind == 1 {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return tensor.Indices(c, list)
}

func TestLossesOfBadNumbers(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *Device) []float64 {
		r := rand.New(rand.NewPCG(11, 12))
		for k, cols := range []int{1, 7, 16, 40, 1, 7, 16, 40} {
			typ := []DType{F32, BF16}[k/4]
			for at := range cols {
				m := c.New(typ, 40, cols)
				setNumber(m, 1, at, math.NaN())
				dx := c.New(typ, 40, cols)
				loss, _ := c.crossEntropy(dx, m, tensor.Indices(c, make([]uint32, 40)), tensor.Indices(c, []uint32{1, 2}), 1)
				all, _ := c.crossEntropy(dx, m, tensor.Indices(c, make([]uint32, 40)), someRows(c, 40, 2, r), 1)
				bce := c.bce(dx, m, c.New(typ, 40, cols), tensor.Indices(c, []uint32{1}), 1)
				if !math.IsNaN(loss) || !math.IsNaN(all) || !math.IsNaN(bce) {
					t.Fatalf("%v, %d columns, NaN at %d: losses %g, %g and %g", typ, cols, at, loss, all, bce)
				}
				arg := make([]uint32, 40)
				if c.Argmax(tensor.Indices(c, arg), m); int(arg[1]) >= cols {
					t.Fatalf("%v: argmax %d of %d columns", typ, arg[1], cols)
				}
			}
		}
		// Large numbers must not overflow, nor small ones spoil the sum.
		m := c.New(F32, 1, 3)
		c.Upload(m, []float64{1000, math.Inf(-1), -3e38})
		loss, correct := c.crossEntropy(m, m, tensor.Indices(c, []uint32{0}), tensor.Indices(c, []uint32{0}), 1)
		if loss != 0 || correct != 1 || !slices.Equal(numbersOf(c, m), []float64{0, 0, 0}) {
			t.Fatalf("loss %g, gradient %v", loss, numbersOf(c, m))
		}
		return nil
	})
}

func TestLossPanicsOnBadRows(t *testing.T) {
	c := New(1)
	defer c.Close()
	m, labels := c.New(F32, 3, 2), tensor.Indices(c, []uint32{0, 1, 9})
	for name, rows := range map[string][]uint32{"twice": {1, 0, 1}, "outside": {3}, "label": {2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			c.crossEntropy(m, m, labels, tensor.Indices(c, rows), 1)
		}()
	}
}

// TestLabelsThatAreNoClasses: one of a listed row is found wherever it is, those of other rows do not matter.
func TestLabelsThatAreNoClasses(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *Device) []float64 {
		const rows = 100
		r := rand.New(rand.NewPCG(13, 14))
		for k, cols := range []int{1, 7, 40, 60, 7, 40, 60} {
			m, dx := c.New([]DType{F32, BF16}[k/4], rows, cols), c.New([]DType{F32, BF16, F32}[k%3], rows, cols)
			for at := range rows {
				labels, list := make([]uint32, rows), []uint32{}
				for i := range labels {
					labels[i] = uint32(r.IntN(cols))
					switch listed := r.IntN(2) == 0; {
					case i == at:
						labels[i] = []uint32{uint32(cols), 1 << 16, math.MaxUint32}[r.IntN(3)]
					case listed:
						list = append(list, uint32(i))
					default:
						labels[i] = r.Uint32()
					}
				}
				c.crossEntropy(dx, m, tensor.Indices(c, labels), tensor.Indices(c, list), 1)
				func() {
					defer func() {
						if recover() == nil {
							t.Fatalf("%d columns: label %d of row %d is no class", cols, labels[at], at)
						}
					}()
					c.crossEntropy(dx, m, tensor.Indices(c, labels), tensor.Indices(c, append(list, uint32(at))), 1)
				}()
			}
		}
		return nil
	})
}

// TestWithin finds the rows of every part, of lists that are even and of such as are all at one end.
func TestWithin(t *testing.T) {
	const n = 200
	r := rand.New(rand.NewPCG(2, 6))
	for _, listed := range []func(i int) bool{
		func(int) bool { return false },
		func(int) bool { return true },
		func(i int) bool { return i%16 < 8 },
		func(i int) bool { return i < 30 },
		func(i int) bool { return i >= 190 },
		func(i int) bool { return i == 77 || i > 100 && r.IntN(3) == 0 },
	} {
		var list []uint32
		for i := range n {
			if listed(i) {
				list = append(list, uint32(i))
			}
		}
		for lo := range n + 1 {
			for hi := lo; hi <= n; hi++ {
				var want []uint32
				for _, i := range list {
					if lo <= int(i) && int(i) < hi {
						want = append(want, i)
					}
				}
				if got := within(list, lo, hi, n); !slices.Equal(got, want) {
					t.Fatalf("rows %d to %d of %v: %v", lo, hi, list, got)
				}
			}
		}
	}
}
