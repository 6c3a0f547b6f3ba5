package store

import (
	"fmt"

	"starling/graph"
	"starling/wire"
)

// Columns are some columns of rows of features: owners take the others out before bytes leave, and
// here they are zero. They travel with a request, one bit each, in whole numbers of 4 bytes.
type Columns struct {
	// Everywhere: they are left out of this worker's own rows too. Else these are whole, and those of
	// all other parts have these columns only, whether they travel or are read in place.
	Everywhere bool

	all    int
	list   []uint32 // ascending
	others []uint32
	bits   []uint32
}

// NewColumns are the columns of a list, ascending, out of so many.
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

// PlanColumns has traffic reckoned with so many columns of remote rows.
func (s *Store) PlanColumns(n int) { s.planned = n }

// Keep has Features pull these columns only, from the next pull on; nil: all.
func (p *Puller) Keep(c *Columns) error {
	switch {
	case c != nil && c.all != p.s.Part.Features.Cols:
		return fmt.Errorf("columns of %d, rows of features have %d", c.all, p.s.Part.Features.Cols)
	case c != nil && p.columns[1] > 0:
		return fmt.Errorf("some columns of a range of columns")
	case c != nil && p.s.Learns():
		return fmt.Errorf("columns that change, and a cache that keeps rows as they were pulled")
	}
	p.keep = c
	return nil
}

// kept is the features of some rows in these columns alone.
func (c *Columns) kept(f *graph.Features, rows []uint32) *graph.Features {
	out := &graph.Features{Rows: len(rows), Cols: len(c.list)}
	for _, v := range rows {
		at := int(v) * f.Cols
		for _, i := range c.list {
			if f.F32 != nil {
				out.F32 = append(out.F32, f.F32[at+int(i)])
			} else {
				out.BF16 = append(out.BF16, f.BF16[at+int(i)])
			}
		}
	}
	return out
}

// serveKept answers with some columns of rows.
func (s *Store) serveKept(c *Columns, packed Packed, local []uint32) (wire.Response, error) {
	f := s.Part.Features
	if f.Kind() == graph.Sparse {
		return wire.Response{Kind: wire.Feature, Body: appendSparse(nil, c.sparse(f, local), count(len(local)))}, nil
	}
	some := c.kept(f, local)
	if packed == Unpacked {
		return wire.Response{Kind: wire.Feature, Body: featureBytes(some)}, nil
	}
	body := make([]byte, packed.rowBytes(4*some.Cols)*some.Rows)
	packed.pack(body, some, count(some.Rows))
	return wire.Response{Kind: wire.Feature, Body: body}, nil
}

// count is 0 to n-1.
func count(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
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

// scatterKept writes the rows of a response that has some columns to places of to.
func (p *Puller) scatterKept(places []uint32, body []byte) {
	size := p.s.rowBytes() / p.keep.all
	if p.s.packed != Unpacked {
		wide := make([]byte, len(places)*len(p.keep.list)*size)
		p.s.packed.unpack(wide, len(p.keep.list)*size, count(len(places)), body)
		body = wide
	}
	for _, at := range places {
		row := p.to[int(at)*p.width : (int(at)+1)*p.width]
		for _, i := range p.keep.list {
			copy(row[int(i)*size:(int(i)+1)*size], body[:size])
			body = body[size:]
		}
	}
}

// clearOthers makes the columns that are not kept zero, in all rows that lack them: those read in
// place, and those of a cache, which has them whole.
func (p *Puller) clearOthers() {
	if p.keep == nil || p.table != Features || len(p.to) == 0 {
		return
	}
	size := p.s.rowBytes() / p.keep.all
	for at, v := range p.numbers {
		if !p.keep.missing(p.s.Book.Owner(v), p.s.Part.Meta.Part) {
			continue
		}
		row := p.to[at*p.width : (at+1)*p.width]
		for _, i := range p.keep.others {
			clear(row[int(i)*size : (int(i)+1)*size])
		}
	}
}
