package graph

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

var nan = float32(math.NaN())

func TestBF16RoundsToNearestEven(t *testing.T) {
	for _, c := range []struct {
		in   float32
		want float32
	}{
		{1, 1}, {-2.5, -2.5}, {0, 0},
		{1 + 1.0/256, 1},            // tie goes to the even neighbour below
		{1 + 3.0/256, 1 + 4.0/256},  // and above
		{1 + 1.01/256, 1 + 2.0/256}, // past the tie goes up
		{float32(math.Inf(1)), float32(math.Inf(1))},
	} {
		if got := FromBF16(ToBF16(c.in)); got != c.want {
			t.Errorf("bf16(%g) = %g, want %g", c.in, got, c.want)
		}
	}
	if got := FromBF16(ToBF16(nan)); got == got {
		t.Errorf("NaN became %g", got)
	}
}

func TestFeatureFormsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const rows, cols = 7, 5
	dense := &Features{Rows: rows, Cols: cols, F32: make([]float32, rows*cols)}
	half := &Features{Rows: rows, Cols: cols, BF16: make([]uint16, rows*cols)}
	sparse := &Features{Rows: rows, Cols: cols, Indptr: []int64{0}, Values: []float32{}}
	for v := range rows {
		for c := range cols {
			if v == 3 || r.IntN(2) == 0 { // row 3 stays zero below
				continue
			}
			x := float32(r.IntN(9) - 4)
			dense.F32[v*cols+c], half.BF16[v*cols+c] = x, ToBF16(x)
			sparse.Indices, sparse.Values = append(sparse.Indices, uint32(c)), append(sparse.Values, x)
		}
		sparse.Indptr = append(sparse.Indptr, int64(len(sparse.Indices)))
	}
	a, b := make([]float32, cols), make([]float32, cols)
	for _, other := range []*Features{half, sparse} {
		for normal, pair := range [][2]*Features{{dense, other}, {dense.RowNormalize(), other.RowNormalize()}} {
			if err := errors.Join(pair[1].Validate(), pair[1].CheckFinite()); err != nil ||
				pair[1].Kind() != other.Kind() {
				t.Fatal(err, pair[1].Kind())
			}
			for v := range uint32(rows) {
				pair[0].CopyRow(a, v)
				pair[1].CopyRow(b, v)
				for c := range a {
					if math.Abs(float64(a[c]-b[c])) > 0.004 {
						t.Errorf("%s normalized=%d: row %d column %d: %g, want %g", other.Kind(), normal, v, c, b[c],
							a[c])
					}
				}
			}
		}
	}
}

func TestBadFeatures(t *testing.T) {
	for name, f := range map[string]*Features{
		"short":      {Rows: 2, Cols: 2, F32: make([]float32, 3)},
		"nan":        {Rows: 1, Cols: 2, F32: []float32{0, nan}},
		"bf16 inf":   {Rows: 1, Cols: 1, BF16: []uint16{0x7f80}},
		"column":     {Rows: 1, Cols: 1, Indptr: []int64{0, 1}, Indices: []uint32{1}, Values: []float32{1}},
		"rows":       {Rows: 2, Cols: 1, Indptr: []int64{0, 1}, Indices: []uint32{0}, Values: []float32{1}},
		"values":     {Rows: 1, Cols: 1, Indptr: []int64{0, 1}, Indices: []uint32{0}, Values: nil},
		"sparse nan": {Rows: 1, Cols: 1, Indptr: []int64{0, 1}, Indices: []uint32{0}, Values: []float32{nan}},
		"falls":      {Rows: 2, Cols: 1, Indptr: []int64{0, 2, 1}, Indices: []uint32{0}, Values: []float32{1}},
	} {
		err := f.Validate()
		if err == nil {
			err = f.CheckFinite()
		}
		if !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadSplitsAndLabels(t *testing.T) {
	labels := &Labels{Classes: 2, Class: []int32{0, 1, -1, 1}}
	if err := labels.Validate(4); err != nil {
		t.Fatal(err)
	}
	good := Splits{Train: []uint32{0}, Val: []uint32{1}, Test: []uint32{3}}
	if err := good.Validate(4, labels); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Splits{
		"empty train": {Val: []uint32{1}},
		"overlap":     {Train: []uint32{0, 1}, Test: []uint32{1}},
		"order":       {Train: []uint32{1, 0}},
		"twice":       {Train: []uint32{1, 1}},
		"absent":      {Train: []uint32{4}},
		"unlabelled":  {Train: []uint32{2}},
	} {
		if err := s.Validate(4, labels); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, class := range map[string][]int32{"high": {0, 1, 2, 0}, "low": {-2, 0, 0, 0}, "short": {0}} {
		if err := (&Labels{Classes: 2, Class: class}).Validate(4); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
