package store

import (
	"fmt"

	"starling/graph"
)

// Columns are some columns of rows of features: owners take the others out before bytes leave, and
// here they are zero. They travel with a request, one bit each, in whole numbers of 4 bytes.
type Columns struct {
	// Everywhere: they are left out of this worker's own rows too. Else these are whole, and rows of
	// all other parts have these columns only, whether they travel or are read in place.
	Everywhere bool

	all    int
	list   []uint32 // ascending
	others []uint32
	bits   []uint32
}

// NewColumns are the columns of a list, ascending, out of all.
func NewColumns(list []uint32, all int) *Columns {
	c := &Columns{all: all, list: list, bits: make([]uint32, (all+31)/32)}
	for _, i := range list {
		c.bits[i/32] |= 1 << (i % 32)
	}
	for i := range uint32(all) {
		if !c.has(i) {
			c.others = append(c.others, i)
		}
	}
	return c
}

// columnsFrom reads the bits of a request, and returns what follows them.
func columnsFrom(numbers []uint32, all int) (*Columns, []uint32, error) {
	words := (all + 31) / 32
	if len(numbers) < words {
		return nil, nil, fmt.Errorf("%d numbers for the bits of %d columns", len(numbers), all)
	}
	c := &Columns{all: all, bits: numbers[:words:words]}
	for i := range uint32(words * 32) {
		if c.has(i) {
			if int(i) >= all {
				return nil, nil, fmt.Errorf("column %d of %d", i, all)
			}
			c.list = append(c.list, i)
		}
	}
	return c, numbers[words:], nil
}

func (c *Columns) has(i uint32) bool { return c.bits[i/32]>>(i%32)&1 != 0 }

// Count is how many there are.
func (c *Columns) Count() int { return len(c.list) }

// List is these, ascending.
func (c *Columns) List() []uint32 { return c.list }

// missing reports whether rows of a part have these columns only.
func (c *Columns) missing(part, own int) bool { return c != nil && (c.Everywhere || part != own) }

// PlanColumns has the planned traffic count n columns of remote rows.
func (s *Store) PlanColumns(n int) { s.planned = n }

// appendKept appends these columns of a row.
func (c *Columns) appendKept(b, row []byte) []byte {
	size := len(row) / c.all
	for _, i := range c.list {
		b = append(b, row[int(i)*size:(int(i)+1)*size]...)
	}
	return b
}

// spread writes what appendKept appended to its columns of a row.
func (c *Columns) spread(row, kept []byte) {
	size := len(row) / c.all
	for k, i := range c.list {
		copy(row[int(i)*size:], kept[k*size:(k+1)*size])
	}
}

// sparse is some sparse rows without the other columns, whose numbers stay.
func (c *Columns) sparse(f *graph.Features, rows []uint32) *graph.Features {
	out := &graph.Features{Rows: len(rows), Cols: f.Cols, Indptr: []int64{0}}
	for _, v := range rows {
		for e := f.Indptr[v]; e < f.Indptr[v+1]; e++ {
			if c.has(f.Indices[e]) {
				out.Indices, out.Values = append(out.Indices, f.Indices[e]), append(out.Values, f.Values[e])
			}
		}
		out.Indptr = append(out.Indptr, int64(len(out.Indices)))
	}
	return out
}

// clearOthers makes the columns that are not kept zero, in all rows that lack them: rows read in
// place, and rows of a cache, which has them whole.
func (p *Puller) clearOthers() {
	keep := p.form.keep
	if keep == nil || len(p.to) == 0 {
		return
	}
	size := p.width / keep.all
	for at, v := range p.numbers {
		if !keep.missing(p.s.Book.Owner(v), p.s.Part.Meta.Part) {
			continue
		}
		row := p.to[at*p.width : (at+1)*p.width]
		for _, i := range keep.others {
			clear(row[int(i)*size : (int(i)+1)*size])
		}
	}
}
