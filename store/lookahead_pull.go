package store

import (
	"context"
	"errors"

	"starling/coflow"
	"starling/graph"
)

// AheadPuller pulls what one goroutine's batches need by a look-ahead: labels, and rows once per batch. It is used by
// one goroutine, for one batch after the other.
type AheadPuller struct {
	of     *Lookahead
	own    *Puller
	number int64
	asked  bool
	to     [1]graph.Features
	lists  [][]uint32
}

// Puller makes one.
func (l *Lookahead) Puller() *AheadPuller { return &AheadPuller{of: l, own: l.s.Puller()} }

// Begin says which batch is next, by its number from the first that the worker draws.
func (p *AheadPuller) Begin(number int64) { p.number, p.asked = number, false }

// End ends a batch. Others wait for what it needs, so that one that did not pull needs nothing, and all fail when one
// does.
func (p *AheadPuller) End(ctx context.Context, failed error) error {
	if failed == nil && !p.asked {
		failed = p.pull(ctx, coflow.ID{}, make([]graph.Features, len(p.of.caches)), make([][]uint32, len(p.of.caches)))
	}
	if failed != nil {
		p.of.fail(failed)
	}
	return failed
}

// Labels pulls labels, which are of few vertices and needed once.
func (p *AheadPuller) Labels(ctx context.Context, id coflow.ID, to *graph.Labels, numbers []uint32) error {
	return p.own.Labels(ctx, id, to, numbers)
}

// Keep refuses to leave columns out: rows are kept for batches that want all.
func (p *AheadPuller) Keep(c *Columns) error {
	if c != nil {
		return errors.New("columns that change, and rows that are fetched ahead")
	}
	return nil
}

// Features fills to with the rows of features of a batch's vertices, in their order.
func (p *AheadPuller) Features(ctx context.Context, id coflow.ID, to *graph.Features, numbers []uint32) error {
	p.to[0] = *to
	p.lists = append(p.lists[:0], numbers)
	err := p.pull(ctx, id, p.to[:], p.lists)
	*to = p.to[0]
	return err
}

// Types are Features of a typed graph, by type.
func (p *AheadPuller) Types(ctx context.Context, id coflow.ID, to []graph.Features, numbers []uint32) error {
	p.lists = p.of.s.byType(p.lists, numbers)
	return p.pull(ctx, id, to, p.lists)
}

// pull waits until the batch's rows are there, and copies them. Memory for them is taken when they are asked for.
func (p *AheadPuller) pull(ctx context.Context, id coflow.ID, to []graph.Features, lists [][]uint32) error {
	if p.asked {
		return errors.New("a batch that pulls rows twice, and rows that are fetched ahead")
	}
	p.asked = true
	b := p.of.need(id, p.number, lists)
	err := p.of.wait(ctx, b.ready)
	if err == nil {
		err = p.of.arrived(ctx, b)
	}
	if err != nil {
		p.of.drop(ctx, b)
		return err
	}
	var rows [][]byte
	for t, list := range lists {
		p.of.lend(p.of.memory.held, &to[t], t, len(list)*p.of.s.colsOf(t))
		form := p.of.s.featuresOf(&to[t], t, len(list))
		rows = append(rows, featureBytes(&to[t]))
		if err := p.copyHere(form, rows[t], list); err != nil {
			return err
		}
	}
	p.of.serve(b, func(t int, row func(k int) []byte) {
		width := p.of.caches[t].width
		for k, i := range b.places[t] {
			copy(rows[t][int(i)*width:(int(i)+1)*width], row(k))
		}
	})
	return nil
}

// copyHere copies rows that are read in place.
func (p *AheadPuller) copyHere(form pullForm, to []byte, numbers []uint32) error {
	s := p.of.s
	if len(to) == 0 || s.unread {
		return nil
	}
	p.own.form, p.own.numbers, p.own.sparse = form, numbers, nil
	p.own.to, p.own.width = to, len(to)/len(numbers)
	s.split(&p.own.by, s.Book.Offsets, numbers)
	for q, places := range p.own.by.places {
		if len(places) > 0 && s.InPlace(q) {
			if err := p.own.copy(q, places); err != nil {
				return err
			}
		}
	}
	return nil
}

// featuresOf makes to n rows of a type, or of the features of a graph without types, and is how they travel.
func (s *Store) featuresOf(to *graph.Features, typ, n int) pullForm {
	form := pullForm{table: Features, packed: s.packed, typ: typ}
	kind, cols := graph.Dense, s.colsOf(typ)
	if s.Book.Schema != nil {
		if m := s.Book.Schema.Types[typ].Features; m != nil {
			kind = m.Kind
		}
		form.packed = s.packedOf(typ)
	} else {
		kind = s.Part.Features.Kind()
	}
	if to.Rows, to.Cols = n, cols; kind == graph.BFloat16 {
		to.BF16 = resize(to.BF16, n*cols)
	} else {
		to.F32 = resize(to.F32, n*cols)
	}
	return form
}

// RowBytes is what the rows of features of some vertices take.
func (s *Store) RowBytes(vertices []uint32) (n int64) {
	if s.Book.Schema == nil {
		return int64(len(vertices)) * int64(s.rowBytes())
	}
	for _, v := range vertices {
		n += int64(s.rowBytesOf(s.Book.TypeOf(v)))
	}
	return n
}

// colsOf is the number of columns of the features of a type, or of all.
func (s *Store) colsOf(typ int) int {
	if s.Book.Schema == nil {
		return s.Part.Features.Cols
	}
	if m := s.Book.Schema.Types[typ].Features; m != nil {
		return m.Dim
	}
	return 0
}
