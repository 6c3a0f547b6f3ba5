package table

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
)

// npyTable is an npy file: one column, called as the file, or a column for each of its own.
type npyTable struct {
	path  string
	col   Column
	shape []int64
	whole bool
	apart []Column // nil: rows are vectors
}

func openNPY(path string, apart bool) (part, error) {
	a, err := OpenArray(path)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	t := &npyTable{path: path, shape: a.Shape, whole: a.Descr[0] != 'f'}
	t.col = Column{Name: strings.TrimSuffix(filepath.Base(path), ".npy"), Kind: Real}
	if t.whole {
		t.col.Kind = Whole
	}
	switch {
	case len(a.Shape) == 2 && a.Shape[1] > 0 && a.Shape[1] <= math.MaxInt32:
		t.col.Kind, t.col.Width = Vector, int(a.Shape[1])
	case len(a.Shape) != 1:
		return nil, bad(path, "shape", fmt.Sprint(a.Shape), "one dimension, or two: a vector per row", "save it again")
	}
	if apart {
		kind := Real
		if t.whole {
			kind = Whole
		}
		for c := range max(t.col.Width, 1) {
			t.apart = append(t.apart, Column{Name: strconv.Itoa(c + 1), Kind: kind})
		}
	}
	return t, nil
}

func (t *npyTable) columns() []Column {
	if t.apart != nil {
		return t.apart
	}
	return []Column{t.col}
}

func (t *npyTable) rows() (exact, about int64) { return t.shape[0], t.shape[0] }

func (t *npyTable) read(want []Want, each func(*Batch) error) error {
	a, err := OpenArray(t.path)
	if err != nil {
		return err
	}
	defer a.Close()
	b := &Batch{File: t.path, Columns: make([]Values, len(want))}
	width := max(t.col.Width, 1)
	for b.row = 0; b.row < t.shape[0]; b.row += int64(b.Rows) {
		b.Rows = int(min(max(wideNumbers/int64(width), 1), t.shape[0]-b.row))
		raw, err := a.Bytes(b.Rows * width)
		if err != nil {
			return Because(t.path, "", err, "a whole array", "save it again with numpy.save")
		}
		for i, w := range want {
			if err := t.of(w.Name).decode(a.Descr, t.cut(a.Descr, raw, w.Name), w.As, &b.Columns[i]); err != nil {
				return bad(t.path, "", graph.Sentence(err.Error()), "", "save it as the schema has it")
			}
		}
		if err := each(b); err != nil {
			return err
		}
	}
	return nil
}

// of is the table of a column alone.
func (t *npyTable) of(name string) *npyTable {
	if t.apart == nil {
		return t
	}
	return &npyTable{path: t.path, whole: t.whole, col: Column{Name: name, Kind: t.apart[0].Kind}}
}

// cut are the numbers of a column; those of all rows where they are vectors.
func (t *npyTable) cut(descr string, raw []byte, name string) []byte {
	if len(t.apart) < 2 {
		return raw
	}
	size := ItemSizes[descr]
	at := slices.IndexFunc(t.apart, func(c Column) bool { return c.Name == name }) * size
	var out []byte
	for ; at < len(raw); at += len(t.apart) * size {
		out = append(out, raw[at:at+size]...)
	}
	return out
}

// decode converts the numbers of a batch.
func (t *npyTable) decode(descr string, raw []byte, as Kind, v *Values) error {
	v.reset()
	v.Missing = nil
	switch {
	case as == Vector:
		v.Width = max(t.col.Width, 1)
		return EachReal(descr, raw, func(_ int, x float64) { v.Vector = append(v.Vector, float32(x)) })
	case t.col.Kind == Vector:
		return fmt.Errorf("vectors of %d, where one value per row belongs", t.col.Width)
	case t.whole && (as == ID || as == Whole):
		v.Text = nil
		return EachInteger(descr, raw, func(_ int, x int64) error {
			v.Whole = append(v.Whole, x)
			return nil
		})
	case as == ID || as == Whole:
		return fmt.Errorf("numbers with fractions, where whole ones belong")
	}
	return EachReal(descr, raw, func(_ int, x float64) {
		if as == Text {
			text := ""
			if x == x {
				text = strconv.FormatFloat(x, 'f', -1, 64)
			}
			v.Text, v.Missing = append(v.Text, text), append(v.Missing, x != x)
			return
		}
		v.Real, v.Missing = append(v.Real, x), append(v.Missing, x != x)
	})
}
