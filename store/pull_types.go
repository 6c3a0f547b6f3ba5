package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"starling/coflow"
	"starling/graph"
)

// Rows of features of a typed graph have a width for each type. They are pulled type by type, all at the same time: a
// request asks for rows of one type, which its owner knows by their numbers.

// rowBytesOf is the length of a row of features that are not sparse, of a type in a typed graph; 0: it has none.
func (s *Store) rowBytesOf(typ int) int {
	if s.Book.Schema == nil {
		return rowBytes(s.Part.Features)
	}
	m := s.Book.Schema.Types[typ].Features
	switch {
	case m == nil:
		return 0
	case m.Kind == graph.BFloat16:
		return 2 * m.Dim
	}
	return 4 * m.Dim
}

// packedOf is the form that rows of a type travel in.
func (s *Store) packedOf(typ int) Packed {
	if m := s.Book.Schema.Types[typ].Features; m != nil && m.Kind == graph.Dense {
		return s.packed
	}
	return Unpacked
}

// byType are numbers by the types of their vertices, in memory of earlier lists.
func (s *Store) byType(lists [][]uint32, numbers []uint32) [][]uint32 {
	for len(lists) < len(s.Book.Schema.Types) {
		lists = append(lists, nil)
	}
	for t := range lists {
		lists[t] = lists[t][:0]
	}
	for _, v := range numbers {
		t := s.Book.TypeOf(v)
		lists[t] = append(lists[t], v)
	}
	return lists
}

// askedOf are the features that a request to pull is for, and their type: in a typed graph those of its last number.
// What is none of this worker's is refused where rows are looked up.
func (s *Store) askedOf(b []byte) (f *graph.Features, typ int) {
	if s.Book.Schema == nil {
		return s.Part.Features, 0
	}
	if len(b) < 5 {
		return nil, 0
	}
	if v := binary.LittleEndian.Uint32(b[len(b)-4:]); int64(v) < s.Book.Nodes {
		typ = s.Book.TypeOf(v)
	}
	return s.Part.TypeFeatures[typ], typ
}

// typeSource is the part's features of a type.
func (o *Owner) typeSource(typ int) (*rowSource, error) {
	f := o.part.TypeFeatures[typ]
	if f == nil {
		return nil, fmt.Errorf("type %d has no features", typ)
	}
	out := o.rows("features")
	out.typed, out.rows = true, featureBytes(f)
	out.width = len(out.rows) / max(f.Rows, 1)
	for _, run := range o.part.CoreTypes() {
		if run.Type == typ {
			out.runs = append(out.runs, run)
		}
	}
	return out, nil
}

// atType is the row of a number among the rows of the source's type.
func (r *rowSource) atType(number uint32) (row uint32, ok bool) {
	before, v := 0, int(number)-int(r.first)
	for _, run := range r.runs {
		if v >= run.Lo && v < run.Hi {
			return uint32(before + v - run.Lo), true
		}
		before += run.Hi - run.Lo
	}
	return 0, false
}

// Types fills to, which has an entry for each type, with the rows of features of some vertices of a typed graph: those
// of each type in the order of their vertices. A type without features has no columns.
func (p *Puller) Types(ctx context.Context, id coflow.ID, to []graph.Features, numbers []uint32) error {
	return p.finish(ctx, p.AskTypes(id, to, numbers))
}

// AskTypes begins to pull them.
func (p *Puller) AskTypes(id coflow.ID, to []graph.Features, numbers []uint32) error {
	p.forget()
	for range len(p.s.Book.Schema.Types) - len(p.types) {
		p.types = append(p.types, p.s.Puller())
	}
	p.lists = p.s.byType(p.lists, numbers)
	for t, list := range p.lists {
		if to[t].Rows = len(list); len(list) == 0 {
			continue
		}
		if err := p.types[t].askType(id, t, &to[t], list); err != nil {
			return err
		}
	}
	return nil
}

// askType begins to pull rows of vertices of one type.
func (p *Puller) askType(id coflow.ID, typ int, to *graph.Features, numbers []uint32) error {
	m := p.s.Book.Schema.Types[typ].Features
	if m == nil {
		return nil
	}
	to.Rows, to.Cols = len(numbers), m.Dim
	if m.Kind == graph.BFloat16 {
		to.BF16 = resize(to.BF16, len(numbers)*m.Dim)
	} else {
		to.F32 = resize(to.F32, len(numbers)*m.Dim)
	}
	form := pullForm{table: Features, packed: p.s.packedOf(typ), typ: typ}
	return p.askRows(id, form, featureBytes(to), numbers)
}
