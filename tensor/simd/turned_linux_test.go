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
	all, err := syscall.Mmap(-1, 0, length+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
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

// numbers are those of a block, and what lies between its rows.
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

// shortCases runs body on short rows of every width, and their neighbours, for levels above the first.
func shortCases(t *testing.T, body func(t *testing.T, what string, l Level, rows, cols, gap int, half bool, r *rand.Rand)) {
	r := rand.New(rand.NewPCG(5, 1))
	for l := Generic + 1; l <= Supported(); l++ {
		for cols := 1; cols <= ShortRow+1; cols++ {
			for k, c := range []struct{ rows, gap int }{{1, 0}, {16, 0}, {17, 3}, {47, 3}, {100, 0}, {101, 0}, {96, 3}} {
				half := (cols+k)%2 == 0
				body(t, fmt.Sprintf("%v, %d x %d, gap %d, bfloat16 %v", l, c.rows, cols, c.gap, half), l, c.rows, cols, c.gap, half, r)
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

// TestShortSoftmax: softmax of short rows is that of the generic level whichever rows are listed, and touches nothing else.
func TestShortSoftmax(t *testing.T) {
	shortCases(t, func(t *testing.T, what string, l Level, rows, cols, gap int, half bool, r *rand.Rand) {
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
			got, gotRoom := run(l, dst)
			expected, wantRoom := run(Generic, want)
			after, stays := numbers(dst, rows, cols, gap)
			wanted, _ := numbers(want, rows, cols, gap)
			near(t, what, half, after, wanted)
			near(t, what+": sums and gaps", half, gotRoom, wantRoom)
			if got.SeesLabels(l) {
				want := uint32(0)
				for _, i := range list {
					want = max(want, labels[i])
				}
				if seen := slices.Max(got.Seen[:]); seen != want {
					t.Fatalf("%s: the largest label is %d, want %d", what, seen, want)
				}
			}
			if got.Correct != expected.Correct || !slices.Equal(stays, between) {
				t.Fatalf("%s: %d right, want %d; between rows %v", what, got.Correct, expected.Correct, slices.Equal(stays, between))
			}
		}
	})
}

// TestShortFill: rows between those of a list become zero up to the last, also where they are farther apart than a stage has
// rows, in place and not, through the caches and past them; results are those of the same rows without.
func TestShortFill(t *testing.T) {
	const rows, line = 600, 64
	shortCases(t, func(t *testing.T, what string, l Level, _, cols, gap int, half bool, r *rand.Rand) {
		if gap > 0 || !(&Softmax{Cols: cols}).Fills(l) {
			return
		}
		size := map[bool]int{false: 4, true: 2}[half]
		x, labels, first := fenced(t, rows, cols, 0, half, r), make([]uint32, rows), r.IntN(40)
		var list []uint32
		for i := first; i < rows; i++ {
			labels[i] = uint32(r.IntN(cols))
			if i >= 550 && i < 560 || i < 300 && (i/50%2 == 0 || r.IntN(2) == 0 && i/70%3 < 2) || r.IntN(40) == 0 {
				list = append(list, uint32(i))
			}
		}
		for k := 3; k < len(list); k += 20 { // one without numbers leaves those between alone
			x.Set(int(list[k]), r.IntN(cols), float32(math.NaN()))
		}
		run := func(l Level, dst []byte, from Block, fill bool) (s Softmax, room []float32) {
			room = make([]float32, 2*rows+2*(cols+16))
			s = Softmax{X: from, Dst: Block{Data: unsafe.Pointer(&dst[0]), Stride: cols * size, BF16: half, Past: r.IntN(2) == 0},
				Rows: len(list), Cols: cols, List: &list[0], Labels: &labels[0], Fill: fill, First: first,
				Sum: &room[0], Gap: &room[rows], Exp: &room[2*rows], Scale: 0.5}
			s.Run(l)
			return s, room
		}
		copied := func() []byte { // rows of x, with lines of it behind
			b := aligned[byte](rows*cols*size + line)
			copy(b, unsafe.Slice((*byte)(x.Data), rows*cols*size))
			return b
		}
		before, whole, got, same := copied(), copied(), copied(), copied()
		_, wantRoom := run(l, whole, x, false)
		x.Far = r.IntN(2) == 0
		s, room := run(l, got, x, true)
		run(l, same, Block{Data: unsafe.Pointer(&same[0]), Stride: cols * size, BF16: half}, true)
		if last := int(list[len(list)-1]); s.First != last+1 {
			t.Fatalf("%s: row %d comes next, want %d", what, s.First, last+1)
		}
		want := slices.Clone(before)
		clear(want[first*cols*size : s.First*cols*size])
		for k, i := range list {
			at := int(i) * cols * size
			copy(want[at:], whole[at:at+cols*size])
			if same := func(a, b float32) bool { return a == b || a != a && b != b }; !same(room[k], wantRoom[k]) || !same(room[rows+k], wantRoom[rows+k]) {
				t.Fatalf("%s: row %d has sum %g and gap %g, want %g and %g", what, i, room[k], room[rows+k], wantRoom[k], wantRoom[rows+k])
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(same, want) {
			t.Fatalf("%s: rows alike %v, in place %v", what, slices.Equal(got, want), slices.Equal(same, want))
		}
	})
}

// TestShortRowsPastTheCaches: whole lines of short rows that are side by side are the same numbers.
func TestShortRowsPastTheCaches(t *testing.T) {
	const rows = 70
	shortCases(t, func(t *testing.T, what string, l Level, _, cols, gap int, half bool, r *rand.Rand) {
		x, room := fenced(t, rows, cols, gap, half, r), make([]float32, 2*rows+2*(cols+16))
		var dst [2][]byte
		for k := range dst {
			size := map[bool]int{false: 4, true: 2}[half]
			dst[k] = aligned[byte](rows*cols*size + 64)
			s := Softmax{X: x, Dst: Block{Data: unsafe.Pointer(&dst[k][0]), Stride: cols * size, BF16: half, Past: k == 1 && cols <= ShortRow},
				Rows: rows, Cols: cols, Sum: &room[0], Gap: &room[rows], Exp: &room[2*rows], Scale: 1}
			s.Run(l)
		}
		if !slices.Equal(dst[0], dst[1]) {
			t.Fatal(what)
		}
	})
}

// TestShortNormsPastTheCaches: the same of layer norm and its gradient, where these say that they turn rows.
func TestShortNormsPastTheCaches(t *testing.T) {
	const rows = 70
	shortCases(t, func(t *testing.T, what string, l Level, _, cols, gap int, half bool, r *rand.Rand) {
		x, dy, stat, room := fenced(t, rows, cols, gap, half, r), fenced(t, rows, cols, gap, half, r), make([]float32, 2*rows), make([]float32, 3*(cols+16))
		for j := range cols {
			room[2*cols+32+j] = float32(r.NormFloat64())
		}
		var y, dx [2][]byte
		for k := range y {
			size := map[bool]int{false: 4, true: 2}[half]
			result := func(past bool) ([]byte, Block) {
				b := aligned[byte](rows*cols*size + 64)
				return b, Block{Data: unsafe.Pointer(&b[0]), Stride: cols * size, BF16: half, Past: k == 1 && past}
			}
			m := Map{Src: x, Rows: rows, Cols: cols, Stat: &stat[0], StatStride: 8, Moments: true, Eps: 1e-3}
			y[k], m.Dst = result(m.Turned())
			m.Run(l)
			g := LayerGrad{Dy: dy, X: x, Rows: rows, Cols: cols, Stat: &stat[0], StatStride: 8, Gamma: &room[2*cols+32], DGamma: &room[0], DBeta: &room[cols+16]}
			dx[k], g.Dx = result(g.Turned())
			g.Run(l)
		}
		if !slices.Equal(y[0], y[1]) || !slices.Equal(dx[0], dx[1]) {
			t.Fatalf("%s: rows alike %v, gradients %v", what, slices.Equal(y[0], y[1]), slices.Equal(dx[0], dx[1]))
		}
	})
}

// TestShortArgmax: the first largest column of short rows, of which many are alike, zeros of either sign and -Inf among them.
// A NaN spoils no other row, and its own has some column.
func TestShortArgmax(t *testing.T) {
	some := []float32{0, float32(math.Copysign(0, -1)), -1, -2, float32(math.Inf(-1))}
	shortCases(t, func(t *testing.T, what string, l Level, rows, cols, gap int, half bool, r *rand.Rand) {
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

// TestShortLayerNorm: layer norm of short rows and its gradient, with and without parameters, what is kept of rows side by
// side and not.
func TestShortLayerNorm(t *testing.T) {
	shortCases(t, func(t *testing.T, what string, l Level, rows, cols, gap int, half bool, r *rand.Rand) {
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
			m := Map{Src: x, Dst: out, Rows: rows, Cols: cols, Stat: &stat[0], StatStride: 4 * pair, Moments: true, Eps: 1e-3,
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
