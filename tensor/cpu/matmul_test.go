package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/tensor/draw"
)

// levels are the instruction sets of this processor.
func levels() []simd.Level {
	var all []simd.Level
	for l := simd.Generic; l <= simd.Supported(); l++ {
		all = append(all, l)
	}
	return all
}

// randomView is a matrix of normal numbers; with gap it is a view of some columns
// of a wider one, which starts at an odd place.
func randomView(c *Device, r *rand.Rand, t DType, rows, cols int, gap bool) Matrix {
	m := c.New(t, rows, cols)
	if gap {
		m = c.New(t, rows, cols+5).Columns(3, 3+cols)
	}
	host := make([]float64, rows*cols)
	for i := range host {
		host[i] = r.NormFloat64()
	}
	tensor.CopyIn(m, host)
	return m
}

func numbers(m Matrix) []float64 {
	host := make([]float64, m.Rows*m.Cols)
	tensor.CopyOut(host, m)
	return host
}

// inRows are a matrix's numbers row by row, or column by column.
func inRows(m Matrix, transposed bool) []float64 {
	x := numbers(m)
	if !transposed {
		return x
	}
	y := make([]float64, 0, len(x))
	for j := range m.Cols {
		for i := range m.Rows {
			y = append(y, x[i*m.Cols+j])
		}
	}
	return y
}

// dumbMatMul is the product in float64, with the sum of the products' sizes, by
// which errors are judged.
func dumbMatMul(dst, a, b Matrix, op MatMul) (want, size []float64) {
	rows, cols := inRows(a, op.TransA), inRows(b, !op.TransB)
	depth := a.Cols
	if op.TransA {
		depth = a.Rows
	}
	want, size = numbers(dst), make([]float64, dst.Rows*dst.Cols)
	for i := range dst.Rows {
		row := rows[i*depth:][:depth]
		for j := range dst.Cols {
			col := cols[j*depth:][:depth]
			var sum, abs float64
			for k, x := range row {
				p := x * col[k]
				sum += p
				abs += math.Abs(p)
			}
			o := i*dst.Cols + j
			size[o] = abs + math.Abs(want[o])
			if op.Add {
				sum += want[o]
			}
			want[o] = dumbAfter(sum, i, j, op.Epilogue)
		}
	}
	return want, size
}

func dumbAfter(x float64, row, col int, epi Epilogue) float64 {
	if !epi.Bias.IsZero() {
		x += float64(f32Of(epi.Bias)[col])
	}
	if epi.Act == ReLU {
		x = max(x, 0)
	}
	return x * dumbFactor(epi.Dropout, row, col)
}

// tolerance is the error allowed relative to the size of the sum: a few roundings
// of what the numbers are stored as.
func tolerance(m, a, b Matrix, level simd.Level) float64 {
	tol := 2e-6
	if m.Type() == BF16 {
		tol += 1. / 200
	}
	if level >= simd.AMX && a.Type() == BF16 {
		tol += 1. / 200 // weights are rounded for AMX
	}
	return tol
}

func checkProduct(t *testing.T, c *Device, dst, a, b Matrix, op MatMul) {
	t.Helper()
	want, size := dumbMatMul(dst, a, b, op)
	c.MatMul(dst, a, b, op)
	checkNumbers(t, c, dst, a, b, op, want, size)
}

func checkNumbers(t *testing.T, c *Device, dst, a, b Matrix, op MatMul, want, size []float64) {
	t.Helper()
	tol := tolerance(dst, a, b, c.level)
	for i, got := range numbers(dst) {
		if d := math.Abs(got - want[i]); !(d <= 2*tol*(size[i]+1)) {
			t.Fatalf("%v = %v · %v, TransA %v TransB %v Add %v: number (%d,%d) is %g, want %g",
				dst, a, b, op.TransA, op.TransB, op.Add, i/dst.Cols, i%dst.Cols, got, want[i])
		}
	}
}

// randomProduct makes the operands of an m x k · k x n product.
func randomProduct(c *Device, r *rand.Rand, m, k, n int, op MatMul, types [3]DType, gap bool) (dst, a, b Matrix) {
	ar, ac, br, bc := m, k, k, n
	if op.TransA {
		ar, ac = k, m
	}
	if op.TransB {
		br, bc = n, k
	}
	return randomView(c, r, types[0], m, n, gap), randomView(c, r, types[1], ar, ac, gap), randomView(c, r, types[2],
		br, bc, gap)
}

var typeCases = [][3]DType{{F32, F32, F32}, {BF16, BF16, F32}, {F32, BF16, F32}, {BF16, F32, F32}, {F32, BF16, BF16},
	{F32, F32, BF16}, {BF16, BF16, BF16}}

func TestMatMulAgainstDumbLoop(t *testing.T) {
	sizes := []struct{ m, k, n int }{
		{1, 1, 1}, {7, 5, 3}, {14, 32, 32}, {33, 33, 33}, {113, 40, 47}, {129, 64, 96},
		{15, 0, 4}, {0, 3, 4}, {3, 4, 0}, {16, 7, 256}, {29, 600, 16}, {300, 31, 17},
		{161, 70, 99}, {40, 1300, 50}, {70, 0, 99}, // wide enough to be split
		{145, 300, 48}, {260, 48, 41}, {128, 1, 33}, {37, 200, 29}, {130, 65, 9},
		{133, 40, 96}, {40, 24, 50}, // shallow enough for the two-way split only
		{130, 100, 7}, {50, 33, 1}, {300, 16, 8}, // few columns
		{300, 7, 7}, {100, 16, 40}, {33, 1, 64}, {40, 16, 100}, // weights in registers
		{100, 9, 7}, {75, 64, 16}, {70, 33, 64}, {64, 100, 16},
		// weight gradients of few columns
		{7, 300, 130}, {200, 1000, 16}, {9, 31, 129}, {17, 300, 40}, {5, 90, 70}, {7, 1100, 7}, {7, 100, 40},
		{32, 200, 130}, {270, 97, 19}, {18, 31, 256}, // of 17 to 32
		{40, 300, 130}, {256, 31, 33}, {48, 97, 141}, // and of 33 to 48
		{40, 300, 40}, {33, 97, 39}, {47, 101, 48}, {45, 31, 26}, {12, 97, 15}, {24, 65, 9}, // by no more
	}
	for _, level := range levels() {
		t.Run(level.String(), func(t *testing.T) {
			c := newLevel(2, level)
			defer c.Close()
			r := rand.New(rand.NewPCG(1, uint64(level)))
			for n, s := range sizes {
				for i, types := range typeCases {
					for trans := range 4 {
						if testing.Short() && (n+i+trans)%8 > 0 {
							continue // every type and every side transposed, but not at every size
						}
						op := MatMul{TransA: trans&1 > 0, TransB: trans&2 > 0, Add: (i+trans)%3 == 1}
						dst, a, b := randomProduct(c, r, s.m, s.k, s.n, op, types, i%2 == trans%2)
						checkProduct(t, c, dst, a, b, op)
					}
				}
			}
		})
	}
}

// anyWidth is one of those that fill vectors, tiles or a byte, or else one at random.
func anyWidth(r *rand.Rand, most int) int {
	full := []int{8, 16, 32, 40, 48, 64, 128, 256}
	if i := r.IntN(3 * len(full)); i < len(full) {
		return full[i]
	}
	return r.IntN(most)
}

func TestMatMulRandomSizes(t *testing.T) {
	for _, level := range levels() {
		t.Run(level.String(), func(t *testing.T) {
			c := newLevel(2, level)
			defer c.Close()
			r := rand.New(rand.NewPCG(2, uint64(level)))
			for range 60 {
				op := MatMul{TransA: r.IntN(2) > 0, TransB: r.IntN(2) > 0, Add: r.IntN(3) == 0}
				dst, a, b := randomProduct(c, r, r.IntN(200), anyWidth(r, 150), anyWidth(r, 120), op,
					typeCases[r.IntN(len(typeCases))], r.IntN(2) > 0)
				checkProduct(t, c, dst, a, b, op)
			}
		})
	}
}

// Tall enough for several chunks, groups and slices, with what follows a product.
func TestMatMulTall(t *testing.T) {
	for _, level := range levels() {
		t.Run(level.String(), func(t *testing.T) {
			c := newLevel(2, level)
			defer c.Close()
			r := rand.New(rand.NewPCG(3, uint64(level)))
			for i, types := range [][3]DType{{F32, F32, F32}, {BF16, BF16, F32}, {F32, BF16, BF16}} {
				op := MatMul{TransA: true}
				for n, s := range [][3]int{{30, 9001, 35}, {67, 2001, 72}, {50, 6301, 55}, {7, 9001, 12},
					{40, 3001, 130}, {70, 3001, 5}, {41, 5001, 47}} {
					if testing.Short() && (n+i)%3 > 0 {
						continue // every size, but not of every type
					}
					dst, a, b := randomProduct(c, r, s[0], s[1], s[2], op, types, false)
					checkProduct(t, c, dst, a, b, op)
				}
				bias := randomView(c, r, F32, 1, 40, false)
				op = MatMul{TransB: i == 1, Add: i == 2, Epilogue: Epilogue{Bias: bias, Act: ReLU,
					Dropout: Dropout{P: 0.4 + 0.1*float32(i%2), Key: 5, First: 77}}}
				dst, a, b := randomProduct(c, r, 4001, 20, 40, op, types, true)
				checkProduct(t, c, dst, a, b, op)
				for _, depth := range []int{7, 41} {
					op = MatMul{TransB: i == 1, Add: i == 2, Epilogue: Epilogue{Bias: bias, Act: ReLU}}
					dst, a, b = randomProduct(c, r, 4001, depth, 40, op, types, false)
					checkProduct(t, c, dst, a, b, op)
				}
			}
		})
	}
}

// TestFarProducts: results that go by non-temporal stores equal the same rows a few at a time, which do not.
func TestFarProducts(t *testing.T) {
	c := New(2)
	defer c.Close()
	bias, depth := numbered(c, 1, 256), 32
	if testing.Short() {
		depth = 4
		farFrom(t, 4<<20)
	}
	for _, op := range []MatMul{{}, {Epilogue: Epilogue{Bias: bias, Act: ReLU}}} {
		farProduct(t, c, depth, op)
	}
	if c.splitsTwoWay() { // in two pieces, of which the first must stay
		farProduct(t, c, splitDepth+1, MatMul{})
	}
}

func farProduct(t *testing.T, c *Device, depth int, op MatMul) {
	const cols, step = 256, 1024
	rows := int(streamBytes)/4/cols + 41
	got, want, a, b := c.New(F32, rows, cols), c.New(F32, rows, cols), numbered(c, rows, depth), numbered(c, depth,
		cols)
	c.MatMul(got, a, b, op)
	for lo := 0; lo < rows; lo += step {
		hi := min(rows, lo+step)
		c.MatMul(want.Slice(lo, hi), a.Slice(lo, hi), b, op)
	}
	if !slices.Equal(f32Of(got), f32Of(want)) {
		t.Errorf("%d columns, %+v: far results differ", depth, op)
	}
	for _, m := range []Matrix{got, want, a, b} {
		c.Free(m)
	}
}

// numbered is a matrix of numbers that are not all alike, quickly made.
func numbered(c *Device, rows, cols int) Matrix {
	m := c.New(F32, rows, cols)
	for i := range f32Of(m) {
		f32Of(m)[i] = float32(i%251)/64 - 2
	}
	return m
}

func TestMatMulSameForAnyThreads(t *testing.T) {
	all := [][2]int{{24, 33}, {72, 81}, {40, 130}, {7, 130}, {40, 40}}
	if testing.Short() {
		all = all[1:2]
	}
	for _, level := range levels() {
		for _, types := range [][3]DType{{F32, F32, F32}, {F32, BF16, BF16}} {
			for _, op := range []MatMul{{}, {TransB: true}, {TransA: true}} {
				for _, widths := range all {
					sameForAnyThreads(t, level, types, op, widths)
				}
			}
		}
	}
}

func sameForAnyThreads(t *testing.T, level simd.Level, types [3]DType, op MatMul, widths [2]int) {
	var first []float64
	for _, threads := range []int{1, 2, 3} {
		c := newLevel(threads, level)
		m, k := 3000, widths[0]
		if testing.Short() {
			m = 1600 // still several groups
		}
		if op.TransA {
			m, k = k, m
		}
		dst, a, b := randomProduct(c, rand.New(rand.NewPCG(4, 4)), m, k, widths[1], op, types, false)
		c.MatMul(dst, a, b, op)
		sums := c.New(F32, 1, a.Cols)
		c.ColumnSum(sums, a, false)
		got := append(numbers(dst), numbers(sums)...)
		c.Close()
		if threads == 1 {
			first = got
		} else if !slices.Equal(got, first) {
			t.Errorf("%v, TransA %v TransB %v, %v wide: %d threads differ from one", level, op.TransA, op.TransB,
				widths, threads)
		}
	}
}

// TestSplitProductsAreFloat32: AMX's sums of two or three parts miss the exact
// product by no more than multiplying and adding in float32 does, or little more where all
// numbers are positive (there sums are large from early on, and it adds to them more often).
func TestSplitProductsAreFloat32(t *testing.T) {
	if simd.Supported() < simd.AMX {
		t.Skip("this processor has no AMX")
	}
	for _, op := range []MatMul{{}, {TransB: true}, {TransA: true}} {
		for _, cols := range []int{96, 40, 12} {
			for _, positive := range []bool{false, true} {
				float32s := splitError(simd.AVX512, op, cols, positive)
				for level := simd.AMX; level <= simd.Supported(); level++ {
					times := splitError(level, op, cols, positive) / float32s
					say := t.Logf
					if !(times <= 1.1 || positive && times <= 2.5) {
						say = t.Errorf
					}
					say("%v, TransA %v TransB %v, %d columns, positive %v: the error is %.2f times float32's", level,
						op.TransA, op.TransB, cols, positive, times)
				}
			}
		}
	}
}

// TestProductsOfAnySize: rows and columns of any size do not take bits from each other, nor do numbers of a row that
// are much smaller than others.
func TestProductsOfAnySize(t *testing.T) {
	for _, level := range levels() {
		c := newLevel(2, level)
		r := rand.New(rand.NewPCG(7, 7))
		for i, op := range []MatMul{{}, {TransB: true}, {TransA: true}, {Add: true}, {TransA: true}} {
			cols := []int{96, 40}[i/4] // the last are weights' gradients of few columns
			dst, a, b := randomProduct(c, r, 130, 90, cols, op, typeCases[0], false)
			zeroRows(dst)
			scale := func(m Matrix, rows bool) {
				for i := range f32Of(m) {
					k, depth := i/m.Cols, i%m.Cols
					if !rows {
						k, depth = depth, k
					}
					f32Of(m)[i] *= float32(math.Exp2(float64(k*37%101-50) - float64(depth*29%13)))
				}
			}
			scale(a, !op.TransA)
			scale(b, op.TransB)
			want, size := dumbMatMul(dst, a, b, op)
			c.MatMul(dst, a, b, op)
			for i, got := range numbers(dst) {
				if !(math.Abs(got-want[i]) <= 2e-6*size[i]) {
					t.Fatalf("%v, TransA %v TransB %v: number (%d,%d) is %g, want %g", level, op.TransA, op.TransB,
						i/dst.Cols, i%dst.Cols, got, want[i])
				}
			}
		}
		c.Close()
	}
}

// TestLargeProductsAreThoseOfTheirParts: what is written by non-temporal stores, with rows that
// are not a whole unit, is what
// parts are that stay in them, or what AMX makes of these; and so is what is read
// from memory in other blocks.
func TestLargeProductsAreThoseOfTheirParts(t *testing.T) {
	c := New(2)
	defer c.Close()
	shapes := []struct {
		typ  DType
		k, n int
		off  float64
	}{{F32, 7, 40, 0}, {BF16, 7, 40, 0}, {F32, 40, 37, 1e-4}, {F32, 33, 41, 1e-4}, {F32, 1030, 40, 0}, {F32, 1030, 16,
		0}}
	if testing.Short() {
		shapes = shapes[:2] // the others are of loops that only wider instructions have
		farFrom(t, 4<<20)
	}
	for _, s := range shapes {
		rows := int(streamBytes)/(s.n*s.typ.Size()) + 21
		if s.k > 128 {
			rows = farResult/(s.k*s.typ.Size()) + 21
		}
		part := min(50_000, rows/3)
		a, b := c.New(s.typ, rows, s.k), randomView(c, rand.New(rand.NewPCG(9, 9)), F32, s.k, s.n, false)
		line := make([]float32, s.k)
		for i := range rows {
			for j := range line {
				line[j] = float32((i*s.k+j)%29-14) / 8
			}
			c.Upload(a.Slice(i, i+1), line)
		}
		whole, parts := c.New(s.typ, rows, s.n), c.New(s.typ, rows, s.n)
		c.MatMul(whole, a, b, MatMul{})
		for lo := 0; lo < rows; lo += part {
			hi := min(rows, lo+part)
			c.MatMul(parts.Slice(lo, hi), a.Slice(lo, hi), b, MatMul{})
		}
		same := slices.EqualFunc(f32Of(whole), f32Of(parts),
			func(x, y float32) bool { return math.Abs(float64(x-y)) <= s.off })
		if !same || !slices.Equal(b16Of(whole), b16Of(parts)) {
			t.Errorf("%v: %v of %v differs from its parts", c.level, whole, a)
		}
		for _, m := range []Matrix{a, whole, parts} {
			c.Free(m)
		}
	}
}

// TestProductsKeepNaN: what is not a number makes its row so, or its column, and no other.
func TestProductsKeepNaN(t *testing.T) {
	for _, level := range levels() {
		c := newLevel(2, level)
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
			for _, op := range []MatMul{{}, {TransA: true}} {
				for _, types := range [][3]DType{{F32, F32, F32}, {F32, BF16, BF16}, {BF16, BF16, F32}} {
					for _, widths := range [][2]int{{7, 7}, {40, 40}, {64, 64}, {40, 130}, {130, 40}, {130, 24},
						{130, 12}, {24, 130}, {7, 130}, {130, 7}} {
						badProduct(t, c, widths, op, types, bad)
					}
				}
			}
		}
		c.Close()
	}
}

// badProduct is a product with what is not a number in row 5 of a, or in column 5.
func badProduct(t *testing.T, c *Device, widths [2]int, op MatMul, types [3]DType, bad float32) {
	m, k := 70, widths[0]
	if op.TransA {
		m, k = k, m
	}
	dst, a, b := randomProduct(c, rand.New(rand.NewPCG(8, 8)), m, k, widths[1], op, types, false)
	host := make([]float32, a.Rows*a.Cols)
	c.Download(host, a)
	host[5*a.Cols+5] = bad
	c.Upload(a, host)
	c.MatMul(dst, a, b, op)
	for i, got := range numbers(dst) {
		if finite := !math.IsNaN(got) && !math.IsInf(got, 0); finite != (i/dst.Cols != 5) {
			t.Fatalf("%v = %v · %v at %v, TransA %v, with %g in row 5: number (%d,%d) is %g",
				dst, a, b, c.level, op.TransA, bad, i/dst.Cols, i%dst.Cols, got)
		}
	}
}

// splitError is the error of a product of random, or of positive, numbers, relative to what was added up.
func splitError(level simd.Level, op MatMul, cols int, positive bool) float64 {
	c := newLevel(2, level)
	defer c.Close()
	dst, a, b := randomProduct(c, rand.New(rand.NewPCG(6, 6)), 130, 700, cols, op, typeCases[0], false)
	for _, m := range []Matrix{a, b} {
		for i, x := range f32Of(m) {
			if positive && x < 0 {
				f32Of(m)[i] = -x
			}
		}
	}
	want, size := dumbMatMul(dst, a, b, op)
	c.MatMul(dst, a, b, op)
	var sum float64
	for i, got := range numbers(dst) {
		d := (got - want[i]) / size[i]
		sum += d * d
	}
	return math.Sqrt(sum)
}

func TestColumnSum(t *testing.T) {
	for _, level := range levels() {
		c := newLevel(2, level)
		r := rand.New(rand.NewPCG(5, uint64(level)))
		for _, rows := range []int{0, 1, 2, 3, 4, 7, 64, 5000} {
			for _, cols := range []int{0, 1, 7, 16, 33, 64, 100, 256} {
				for i := range 4 {
					src := randomView(c, r, DType(i%2), rows, cols, i > 1)
					dst := randomView(c, r, F32, 1, cols, i > 1)
					add := rows%2 > 0
					want, size := make([]float64, cols), make([]float64, cols)
					if add {
						want = numbers(dst)
					}
					for j, x := range numbers(src) {
						want[j%cols] += x
						size[j%cols] += math.Abs(x)
					}
					c.ColumnSum(dst, src, add)
					for j, got := range numbers(dst) {
						if math.Abs(got-want[j]) > 2e-6*(size[j]+1) {
							t.Fatalf("%v, column %d of %v: %g, want %g", level, j, src, got, want[j])
						}
					}
				}
			}
		}
		c.Close()
	}
}

func TestMatMulRefusesWrongSizes(t *testing.T) {
	c := New(1)
	defer c.Close()
	for i, call := range []func(){
		func() { c.MatMul(c.New(F32, 2, 2), c.New(F32, 2, 3), c.New(F32, 4, 2), MatMul{}) },
		func() { c.MatMul(c.New(F32, 2, 2), c.New(F32, 2, 3), c.New(F32, 3, 3), MatMul{}) },
		func() {
			c.MatMul(c.New(F32, 2, 2), c.New(F32, 2, 2), c.New(F32, 2, 2),
				MatMul{Epilogue: Epilogue{Bias: c.New(F32, 1, 3)}})
		},
		func() { c.ColumnSum(c.New(F32, 1, 3), c.New(F32, 5, 2), false) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("call %d was accepted", i)
				}
			}()
			call()
		}()
	}
}

// TestPlainMatMul: with PlainMatMul every product has the bits that it has without AMX, whatever the types.
func TestPlainMatMul(t *testing.T) {
	if simd.Supported() < simd.AMX {
		t.Skip("this processor has no AMX")
	}
	plain := NewWith(Options{Threads: 2, Level: simd.Supported(), PlainMatMul: true})
	want := newLevel(2, simd.AVX512)
	defer plain.Close()
	defer want.Close()
	for _, s := range [][3]int{{300, 256, 256}, {300, 128, 40}, {1000, 40, 64}, {100, 16, 7}} {
		for _, types := range typeCases {
			for _, op := range []MatMul{{}, {TransB: true}, {TransA: true, ZerosA: 0.75}} {
				var results [2][]float64
				for i, c := range []*Device{plain, want} {
					dst, a, b := randomProduct(c, rand.New(rand.NewPCG(3, 3)), s[0], s[1], s[2], op, types, false)
					c.MatMul(dst, a, b, op)
					results[i] = numbers(dst)
				}
				if !slices.Equal(results[0], results[1]) {
					t.Errorf("%v, %v, %+v: the bits differ from AVX-512's", s, types, op)
				}
			}
		}
	}
}

// dumbFactor is what dropout multiplies a number by.
func dumbFactor(d Dropout, i, j int) float64 {
	if d.P == 0 {
		return 1
	}
	key, id := d.Key, tensor.RowID(d, i)
	kept := draw.Column(draw.RowKey(key, id), uint32(j)) >= d.Threshold()
	if d.P == 0.5 {
		kept = draw.RowBits(key, id, uint32(j/64))>>(j%64)&1 != 0
	}
	if kept {
		return d.Scale()
	}
	return 0
}
