package table

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// parquetTable is a Parquet file. It is open only while it is read: a table may have thousands of shards.
type parquetTable struct {
	path  string
	cols  []Column
	count int64
}

func openParquet(path string) (part, error) {
	p, err := OpenParquet(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	t := &parquetTable{path: path, count: p.File.NumRows()}
	for i := range p.Cols {
		t.cols = append(t.cols, Column{Name: p.Cols[i].Name, Kind: p.Cols[i].kind()})
	}
	return t, nil
}

// kind is what the column is, for any reader.
func (c *ParquetColumn) kind() Kind {
	switch {
	case c.time:
		return Time
	case c.List && c.Number():
		return Vector
	case c.Whole() || c.Kind == parquet.Boolean && !c.List:
		return Whole
	case c.Number():
		return Real
	}
	return Text
}

func (t *parquetTable) columns() []Column { return t.cols }

func (t *parquetTable) rows() (exact, about int64) { return t.count, t.count }

func (t *parquetTable) read(want []Want, each func(*Batch) error) error {
	p, err := OpenParquet(t.path)
	if err != nil {
		return err
	}
	defer p.Close()
	b := &Batch{File: t.path, Columns: make([]Values, len(want))}
	for g := range p.File.RowGroups() {
		if err := p.guarded(func() error { return t.group(p, g, want, b, each) }); err != nil {
			return err
		}
	}
	return nil
}

// group reads the batches of a row group.
func (t *parquetTable) group(p *Parquet, g int, want []Want, b *Batch, each func(*Batch) error) error {
	group := p.File.RowGroups()[g]
	var readers []*columnReader
	defer func() {
		for _, r := range readers {
			r.values.Close()
		}
	}()
	for _, w := range want {
		i := slices.IndexFunc(p.Cols, func(c ParquetColumn) bool { return c.Name == w.Name })
		if i < 0 || p.Cols[i].leaf >= len(group.ColumnChunks()) {
			return p.Bad(w.Name, "no such column", "the columns that were there before")
		}
		c := &p.Cols[i]
		readers = append(readers, &columnReader{p: p, c: c, as: w.As,
			values: parquet.NewColumnChunkValueReader(group.ColumnChunks()[c.leaf])})
	}
	for left := group.NumRows(); left > 0; {
		b.Rows = int(min(left, batchRows))
		for _, r := range readers {
			b.Rows = min(b.Rows, r.rowsAtOnce())
		}
		for i, r := range readers {
			if err := r.fill(&b.Columns[i], b.Rows, b.row); err != nil {
				return err
			}
		}
		if err := each(b); err != nil {
			return err
		}
		left -= int64(b.Rows)
		b.row += int64(b.Rows)
	}
	return nil
}

// columnReader reads the cells of a column in a row group.
type columnReader struct {
	p      *Parquet
	c      *ParquetColumn
	as     Kind
	values parquet.ColumnChunkValueReader
	buf    [512]parquet.Value
	at, n  int
	ended  bool
	width  int // of vectors, once one was read
}

// rowsAtOnce bounds a batch of vectors by the numbers in it.
func (r *columnReader) rowsAtOnce() int {
	switch {
	case r.as != Vector:
		return batchRows
	case r.width == 0:
		return 1
	}
	return max(1, wideNumbers/r.width)
}

// peek is the next value; false at the end.
func (r *columnReader) peek() (parquet.Value, bool, error) {
	for r.at == r.n {
		if r.ended {
			return parquet.Value{}, false, nil
		}
		n, err := r.values.ReadValues(r.buf[:])
		r.at, r.n = 0, n
		if err == io.EOF {
			r.ended = true
		} else if err != nil {
			return parquet.Value{}, false, r.p.Bad(r.c.Name, graph.Sentence(err.Error()), "a whole column")
		} else if n == 0 {
			return parquet.Value{}, false, r.p.Bad(r.c.Name, "a page without end", "a whole column")
		}
	}
	return r.buf[r.at], true, nil
}

func (r *columnReader) fill(v *Values, rows int, first int64) error {
	v.reset()
	for i := range rows {
		var err error
		if r.as == Vector {
			err = r.vector(v, i)
		} else {
			err = r.scalar(v)
		}
		if c, ok := err.(*cellError); ok {
			return bad(r.p.Path, fmt.Sprintf("row %d, column %.60s", first+int64(i), r.c.Name), c.found, c.want,
				"correct it")
		}
		if err != nil {
			return err
		}
	}
	if r.as == Vector {
		v.Width = r.width
	}
	v.done()
	return nil
}

func (r *columnReader) scalar(v *Values) error {
	value, ok, err := r.peek()
	if err != nil {
		return err
	}
	if !ok {
		return r.p.Bad(r.c.Name, "fewer values than rows", "one in every row")
	}
	r.at++
	if r.c.List {
		return &cellError{"a list", "one value per row"}
	}
	x := r.c.cell(value)
	missing := x.Missing || x.Text == nil && x.Real != x.Real
	v.Missing = append(v.Missing, missing)
	switch {
	case r.as == Whole || r.as == ID && r.c.Whole():
		return r.whole(v, value, missing)
	case r.as == Text || r.as == ID:
		v.Text = append(v.Text, r.text(value, x, missing))
		return nil
	}
	return r.real(v, x, missing)
}

// whole appends a whole number, to the bit.
func (r *columnReader) whole(v *Values, value parquet.Value, missing bool) error {
	var n int64
	switch kind := value.Kind(); {
	case missing:
	case kind == parquet.Int64 && !(r.c.unsigned && value.Int64() < 0):
		n = value.Int64()
	case kind == parquet.Int32 && r.c.unsigned:
		n = int64(value.Uint32())
	case kind == parquet.Int32:
		n = int64(value.Int32())
	case kind == parquet.Boolean:
		n = int64(r.c.cell(value).Real)
	default:
		return &cellError{value.String(), "a whole number below 2^63"}
	}
	if r.c.time {
		n = r.c.seconds(n)
	}
	v.Text, v.Whole = nil, append(v.Whole, n)
	return nil
}

// text is a cell as text.
func (r *columnReader) text(value parquet.Value, x Cell, missing bool) string {
	switch {
	case missing:
		return ""
	case x.Text != nil:
		return string(x.Text)
	case r.c.Whole() && value.Kind() == parquet.Int64:
		return string(r.c.ID(nil, value.Int64()))
	}
	return strconv.FormatFloat(x.Real, 'f', -1, 64)
}

func (r *columnReader) real(v *Values, x Cell, missing bool) error {
	if x.Text != nil { // a number that is stored as text
		v.Missing = v.Missing[:len(v.Missing)-1]
		return v.addText(string(x.Text), Real, 0)
	}
	if missing {
		x.Real = nan
	} else if math.IsInf(x.Real, 0) || r.c.time {
		return &cellError{fmt.Sprint(x.Real), "a finite number"}
	}
	v.Real = append(v.Real, x.Real)
	return nil
}

// vector appends the list of a row.
func (r *columnReader) vector(v *Values, row int) error {
	start, missing := len(v.Vector), false
	for n := 0; ; n++ {
		value, ok, err := r.peek()
		if err != nil {
			return err
		}
		if !ok && n == 0 {
			return r.p.Bad(r.c.Name, "fewer values than rows", "one in every row")
		}
		if !ok || n > 0 && value.RepetitionLevel() == 0 {
			break
		}
		r.at++
		x := r.c.cell(value)
		if x.Missing || x.Real != x.Real {
			x.Real, missing = nan, true
		}
		if x.Text != nil || math.Abs(x.Real) > math.MaxFloat32 {
			return &cellError{value.String(), "numbers that a float32 can hold"}
		}
		v.Vector = append(v.Vector, float32(x.Real))
	}
	width := len(v.Vector) - start
	whole := width == 1 && missing // the list itself is missing
	switch {
	case whole && r.width == 0:
		return &cellError{"a missing list in the first row", "numbers, which tell the width"}
	case whole:
		for range r.width - 1 {
			v.Vector = append(v.Vector, float32(nan))
		}
	case r.width == 0:
		r.width = width
	case width != r.width:
		return &cellError{fmt.Sprintf("a list of %d", width), fmt.Sprintf("%d, as in the first row", r.width)}
	}
	v.Missing = append(v.Missing, missing)
	return nil
}
