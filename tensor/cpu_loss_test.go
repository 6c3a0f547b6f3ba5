package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// someRows chooses rows of n: most in order, but for gaps; few, shuffled; all or none.
func someRows(c *CPU, n, kind int, r *rand.Rand) Index {
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
	return c.Indices(list)
}

func softmaxOf(x []float64) []float64 {
	top, sum := slices.Max(x), 0.0
	p := make([]float64, len(x))
	for j, v := range x {
		p[j] = math.Exp(v - top)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return p
}

func TestCrossEntropySoftmaxArgmax(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(9, 10))
		for n, e := range elementCases() {
			if e.cols == 0 {
				continue
			}
			x, hx := e.random(c, e.in, r)
			for k := range hx { // equal numbers, so that the first of equals matters
				hx[k] = math.Round(hx[k]*4) / 2
			}
			c.Upload(x, hx)
			labels := make([]uint32, e.rows)
			best := make([]uint32, e.rows)
			for i := range labels {
				row := hx[i*e.cols : (i+1)*e.cols]
				best[i] = uint32(slices.Index(row, slices.Max(row)))
				labels[i] = uint32(r.IntN(e.cols))
				if r.IntN(2) == 0 {
					labels[i] = best[i]
				}
			}
			rows := someRows(c, e.rows, n%4, r)
			const scale = 0.25
			wantP, want := make([]float64, len(hx)), make([]float64, len(hx))
			wantLoss, wantCorrect := 0.0, 0
			chosen := map[uint32]bool{}
			for _, i := range rows.v {
				chosen[i] = true
			}
			for i := range e.rows {
				p := softmaxOf(hx[i*e.cols : (i+1)*e.cols])
				copy(wantP[i*e.cols:], p)
				if !chosen[uint32(i)] {
					continue
				}
				wantLoss -= scale * math.Log(p[labels[i]])
				if labels[i] == best[i] {
					wantCorrect++
				}
				for j := range p {
					want[i*e.cols+j] = scale * p[j]
				}
				want[i*e.cols+int(labels[i])] -= scale
			}
			p := e.blank(c, e.out)
			c.Softmax(p, x)
			alike(t, e.String()+" softmax", e.out, numbersOf(c, p), wantP)
			arg := make([]uint32, e.rows)
			c.Argmax(arg, x)
			if !slices.Equal(arg, best) {
				t.Fatalf("%v: argmax %v, want %v", e, arg, best)
			}
			loss, correct := c.CrossEntropy(Matrix{}, x, c.Indices(labels), rows, scale)
			dx := e.blank(c, e.out)
			if e.in == e.out && n%8 < 4 {
				dx = x
			}
			again, _ := c.CrossEntropy(dx, x, c.Indices(labels), rows, scale)
			if math.Abs(loss-wantLoss) > 1e-5*(1+wantLoss) || correct != wantCorrect || again != loss {
				t.Fatalf("%v: loss %.9g, %.9g, correct %d, want %.9g, %d", e, loss, again, correct, wantLoss, wantCorrect)
			}
			alike(t, e.String()+" gradient", e.out, numbersOf(c, dx), want)
			all = append(append(append(all, loss), numbersOf(c, dx)...), numbersOf(c, p)...)
		}
		return all
	})
}

func TestLossesOfBadNumbers(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) []float64 {
		r := rand.New(rand.NewPCG(11, 12))
		for k, cols := range []int{1, 7, 16, 40, 1, 7, 16, 40} {
			typ := []DType{F32, BF16}[k/4]
			for at := range cols {
				m := c.New(typ, 40, cols)
				m.set(1, at, math.NaN())
				dx := c.New(typ, 40, cols)
				loss, _ := c.CrossEntropy(dx, m, c.Indices(make([]uint32, 40)), c.Indices([]uint32{1, 2}), 1)
				all, _ := c.CrossEntropy(dx, m, c.Indices(make([]uint32, 40)), someRows(c, 40, 2, r), 1)
				bce := c.BCE(dx, m, c.New(typ, 40, cols), c.Indices([]uint32{1}), 1)
				if !math.IsNaN(loss) || !math.IsNaN(all) || !math.IsNaN(bce) {
					t.Fatalf("%v, %d columns, NaN at %d: losses %g, %g and %g", typ, cols, at, loss, all, bce)
				}
				arg := make([]uint32, 40)
				if c.Argmax(arg, m); int(arg[1]) >= cols {
					t.Fatalf("%v: argmax %d of %d columns", typ, arg[1], cols)
				}
			}
		}
		// Large numbers must not overflow, nor small ones spoil the sum.
		m := c.New(F32, 1, 3)
		c.Upload(m, []float64{1000, math.Inf(-1), -3e38})
		loss, correct := c.CrossEntropy(m, m, c.Indices([]uint32{0}), c.Indices([]uint32{0}), 1)
		if loss != 0 || correct != 1 || !slices.Equal(numbersOf(c, m), []float64{0, 0, 0}) {
			t.Fatalf("loss %g, gradient %v", loss, numbersOf(c, m))
		}
		return nil
	})
}

func TestBCE(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(11, 12))
		for n, e := range elementCases() {
			x, hx := e.random(c, e.in, r)
			for k := range hx {
				hx[k] *= 20
			}
			c.Upload(x, hx)
			c.Download(hx, x)
			y, hy := e.random(c, []DType{F32, BF16}[n%2], r)
			for k := range hy {
				hy[k] = float64(r.IntN(3)) / 2
			}
			c.Upload(y, hy)
			rows := someRows(c, e.rows, n%4, r)
			const scale = 0.5
			want, wantLoss := make([]float64, len(hx)), 0.0
			for _, i := range rows.v {
				for k := int(i) * e.cols; k < (int(i)+1)*e.cols; k++ {
					v := hx[k]
					wantLoss += scale * (max(v, 0) - v*hy[k] + math.Log1p(math.Exp(-math.Abs(v))))
					want[k] = scale * (1/(1+math.Exp(-v)) - hy[k])
				}
			}
			all = append(all, e.loss(t, c, x, n%8 < 4, wantLoss, want, func(dx Matrix) float64 { return c.BCE(dx, x, y, rows, scale) })...)
		}
		return all
	})
}

// loss is a loss and its gradient, which may be in the place of x, compared with what they should be.
func (e elementCase) loss(t *testing.T, c *CPU, x Matrix, inPlace bool, wantLoss float64, want []float64, compute func(dx Matrix) float64) []float64 {
	t.Helper()
	loss := compute(Matrix{})
	dx := e.blank(c, e.out)
	if e.in == e.out && inPlace {
		dx = x
	}
	again := compute(dx)
	if math.Abs(loss-wantLoss) > 1e-6*(1+wantLoss) || again != loss {
		t.Fatalf("%v: loss %.12g, %.12g, want %.12g", e, loss, again, wantLoss)
	}
	alike(t, e.String()+" gradient", e.out, numbersOf(c, dx), want)
	return append([]float64{loss}, numbersOf(c, dx)...)
}

func TestLossPanicsOnBadRows(t *testing.T) {
	c := NewCPU(1)
	defer c.Close()
	m, labels := c.New(F32, 3, 2), c.Indices([]uint32{0, 1, 9})
	for name, rows := range map[string][]uint32{"twice": {1, 0, 1}, "outside": {3}, "label": {2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			c.CrossEntropy(m, m, labels, c.Indices(rows), 1)
		}()
	}
}

// TestLabelsThatAreNoClasses: one of a listed row is found wherever it is, those of other rows do not matter.
func TestLabelsThatAreNoClasses(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) []float64 {
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
				c.CrossEntropy(dx, m, c.Indices(labels), c.Indices(list), 1)
				func() {
					defer func() {
						if recover() == nil {
							t.Fatalf("%d columns: label %d of row %d is no class", cols, labels[at], at)
						}
					}()
					c.CrossEntropy(dx, m, c.Indices(labels), c.Indices(append(list, uint32(at))), 1)
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
