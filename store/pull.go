package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/graph"
	"starling/wire"
)

// Pulling brings rows of a table, by number, from their owners:
//
//	pull rows   form, numbers [n] uint32 → rows [n] in that form
//
// pullForm is the form of both messages. A row goes down Puller.ask and pullForm.request to its owner's servePull,
// parsePull and pullForm.encode, and up pullForm.decode to where the caller wants it.
const (
	pullService = "pull rows"
	pullBytes   = 8 << 20 // of a reply, so that several are on their way
	sparseRows  = 1 << 14 // per request: their lengths are not known before
)

// servePull answers with rows of this worker.
func (s *Store) servePull(_ context.Context, r *wire.Request) (wire.Response, error) {
	features, typ := s.askedOf(r.Body)
	form, rows, err := parsePull(r.Body, features)
	if err != nil {
		return wire.Response{}, err
	}
	from, err := s.source(s.Part.Meta.Part, form.table, typ)
	if err == nil {
		err = from.local(rows)
	}
	if err != nil {
		return wire.Response{}, err
	}
	if most := form.mostRows(from); len(rows) > most {
		return wire.Response{}, fmt.Errorf("%d rows of %s at once, expected at most %d", len(rows), from.name, most)
	}
	if from.sparse != nil {
		return wire.Response{Kind: from.kind, Body: form.encode(nil, from, rows)}, nil
	}
	body, release := s.buffer(form.bytes(from.width) * len(rows))
	from.lock.Lock()
	defer from.lock.Unlock()
	return wire.Response{Kind: from.kind, Body: form.encode(body[:0], from, rows), Release: release}, nil
}

// Puller pulls rows, with memory of its own that is reused. It is used by one goroutine, and has one pull under way: an
// Ask, then Wait, which only waits for the network, and Take. Features, Labels and Rows do all three.
type Puller struct {
	s     *Store
	span  [2]int // of rows of features: see pullForm
	keep  *Columns
	by    split
	calls calls
	types []*Puller  // of features of each type, in a typed graph
	lists [][]uint32 // of vertices by type
	ahead bool       // what batches need is counted elsewhere

	// The pull under way.
	form    pullForm
	numbers []uint32
	to      []byte // rows of equal length
	width   int    // of one of them
	sparse  *sparsePull
}

// Puller makes one.
func (s *Store) Puller() *Puller {
	return &Puller{s: s, calls: s.newCalls(pullService, "pulling rows of")}
}

// Columns has Features pull columns lo to hi-1 only, which owners take out before bytes leave. It
// is for dense rows, and a store without a cache and that does not pack rows.
func (p *Puller) Columns(lo, hi int) error {
	f := p.s.Part.Features
	size := p.s.rowBytes() / max(f.Cols, 1)
	switch {
	case f.Kind() == graph.Sparse || p.s.caches != nil || p.s.packed != Unpacked:
		return fmt.Errorf("columns of rows that are sparse, packed or cached")
	case lo < 0 || hi <= lo || hi > f.Cols:
		return fmt.Errorf("columns %d to %d of %d", lo, hi, f.Cols)
	}
	p.span = [2]int{lo * size, hi * size}
	return nil
}

// Keep has Features pull these columns only, from the next pull on; nil: all.
func (p *Puller) Keep(c *Columns) error {
	switch {
	case c != nil && c.all != p.s.Part.Features.Cols:
		return fmt.Errorf("columns of %d, rows of features have %d", c.all, p.s.Part.Features.Cols)
	case c != nil && p.span[1] > 0:
		return fmt.Errorf("some columns of a range of columns")
	case c != nil && p.s.Learns():
		return fmt.Errorf("columns that change, and a cache that keeps rows as they were pulled")
	}
	p.keep = c
	return nil
}

// Features fills to with the rows of features of some vertices, in their order.
func (p *Puller) Features(ctx context.Context, id coflow.ID, to *graph.Features, numbers []uint32) error {
	return p.finish(ctx, p.AskFeatures(id, to, numbers))
}

// AskFeatures begins a pull of rows of features.
func (p *Puller) AskFeatures(id coflow.ID, to *graph.Features, numbers []uint32) error {
	f := p.s.Part.Features
	form := pullForm{table: Features, packed: p.s.packed, span: p.span, keep: p.keep}
	to.Rows, to.Cols = len(numbers), f.Cols
	if p.span[1] > 0 && f.Cols > 0 {
		to.Cols = (p.span[1] - p.span[0]) / (p.s.rowBytes() / f.Cols)
	}
	switch f.Kind() {
	case graph.Sparse:
		return p.askSparse(id, form, to, numbers)
	case graph.BFloat16:
		to.BF16 = resize(to.BF16, len(numbers)*to.Cols)
	default:
		to.F32 = resize(to.F32, len(numbers)*to.Cols)
	}
	return p.askRows(id, form, featureBytes(to), numbers)
}

// Labels fills to with the labels of some vertices, in their order.
func (p *Puller) Labels(ctx context.Context, id coflow.ID, to *graph.Labels, numbers []uint32) error {
	l := p.s.Part.Labels
	to.Classes = l.Classes
	switch {
	case l.Multi != nil:
		to.Multi = resize(to.Multi, len(numbers)*l.Classes)
	case l.Values != nil:
		to.Values = resize(to.Values, len(numbers)*l.Classes)
	default:
		to.Class = resize(to.Class, len(numbers))
	}
	if err := p.Rows(ctx, id, Labels, labelBytes(to), numbers); err != nil {
		return err
	}
	if i := slices.IndexFunc(to.Class, func(c int32) bool { return c < -1 || int(c) >= l.Classes }); i >= 0 {
		return fmt.Errorf("worker %d answered a pull with label %d of %d classes", p.s.Book.Owner(numbers[i]),
			to.Class[i], l.Classes)
	}
	return nil
}

// Rows fills to with rows of a table, in the order of their numbers.
func (p *Puller) Rows(ctx context.Context, id coflow.ID, t Table, to []byte, numbers []uint32) error {
	return p.finish(ctx, p.askRows(id, pullForm{table: t}, to, numbers))
}

// forget ends what the last pull has left.
func (p *Puller) forget() {
	p.calls.list = p.calls.list[:0]
	for _, t := range p.types {
		t.calls.list = t.calls.list[:0]
	}
}

// finish waits for a pull that was begun, unless that failed, and ends it.
func (p *Puller) finish(ctx context.Context, failed error) error {
	if failed != nil {
		return errors.Join(failed, p.Wait(ctx))
	}
	if err := p.Wait(ctx); err != nil {
		return err
	}
	return p.Take()
}

// askRows begins a pull of rows of equal length.
func (p *Puller) askRows(id coflow.ID, form pullForm, to []byte, numbers []uint32) error {
	p.to, p.width, p.sparse = to, len(to)/max(len(numbers), 1), nil
	if len(to) == 0 { // a graph without features has rows of no columns
		numbers = nil
	}
	return p.ask(id, form, numbers)
}

// ask asks remote owners for rows, and copies those that are here.
func (p *Puller) ask(id coflow.ID, form pullForm, numbers []uint32) error {
	p.forget()
	p.form, p.numbers = form, numbers
	p.calls.received = p.s.receivedOf(form.table)
	counts := form.table == Features && !p.ahead
	if counts {
		p.s.rows.needed.Add(int64(len(numbers)))
	}
	if form.table == Features && p.sparse == nil && p.s.unread && id.Type != coflow.Bulk {
		return nil
	}
	offsets, here := p.s.placement(form.table)
	p.s.split(&p.by, offsets, numbers)
	return p.s.remoteFirst(&p.by, here, func(q int, places []uint32) error {
		if counts {
			p.s.rows.remote.Add(int64(len(places)))
		}
		most := sparseRows
		if p.sparse == nil {
			places, most = p.cache().take(p.to, p.width, numbers, places), mostRows(p.width)
		}
		for some := range slices.Chunk(places, most) {
			p.request(id, q, some)
		}
		return nil
	}, p.copy)
}

// mostRows is how many rows one request asks for.
func mostRows(width int) int { return max(1, min(pullBytes/max(width, 1), (maxRequest-1)/4)) }

// mostRows is how many rows a request in a form asks an owner for.
func (f *pullForm) mostRows(from *rowSource) int {
	switch {
	case from.sparse != nil:
		return sparseRows
	case f.span[1] > 0:
		return mostRows(f.span[1] - f.span[0])
	}
	return mostRows(from.width)
}

// cache keeps the rows that are pulled; nil: none does.
func (p *Puller) cache() *counted {
	if p.form.table == Features {
		return p.s.cacheOf(p.form.typ)
	}
	return nil
}

// request asks an owner for rows that go to some places.
func (p *Puller) request(id coflow.ID, q int, places []uint32) {
	p.s.rows.requests.Add(1)
	request := p.form.request(p.numbers, places)
	if p.sparse != nil {
		p.calls.send(id, q, places, request, p.sparse.most(len(places)))
		return
	}
	var each func(offset int64, piece []byte)
	if p.form.streams() {
		to, width := p.to, p.width
		each = func(offset int64, piece []byte) { scatter(to, width, places, offset, piece) }
	}
	p.calls.stream(id, q, places, request, p.form.bytes(p.width)*len(places), each)
}

// copy copies rows of a part that is here.
func (p *Puller) copy(q int, places []uint32) error {
	from, err := p.s.source(q, p.form.table, p.form.typ)
	if err != nil {
		return err
	}
	if p.sparse != nil {
		p.sparse.copy(from, p.keep.missing(q, p.s.Part.Meta.Part), p.numbers, places)
		return nil
	}
	if n := len(p.form.of(from.row(0))); n != p.width {
		return fmt.Errorf("rows of %d bytes in part %d, %d here", n, q, p.width)
	}
	from.lock.Lock()
	defer from.lock.Unlock()
	for _, i := range places {
		row, _ := from.at(p.numbers[i])
		copy(p.to[int(i)*p.width:(int(i)+1)*p.width], p.form.of(from.row(row)))
	}
	return nil
}

// Wait waits for the replies. None is under way after it, nor writes to the caller's memory.
func (p *Puller) Wait(ctx context.Context) error {
	err := p.calls.wait(ctx)
	for _, t := range p.types {
		err = t.calls.waitAfter(ctx, err)
	}
	return err
}

// Take ends a pull: it checks the replies, and keeps rows in the cache.
func (p *Puller) Take() error {
	for _, t := range p.types {
		if err := t.Take(); err != nil {
			return err
		}
	}
	for _, c := range p.calls.list {
		if err := p.take(c); err != nil {
			return fmt.Errorf("worker %d answered a pull of %d rows with %w", c.part, len(c.places), err)
		}
	}
	if p.sparse != nil {
		p.sparse.join()
		return nil
	}
	p.clearOthers()
	return nil
}

func (p *Puller) take(c *call) error {
	switch want := p.form.bytes(p.width) * len(c.places); {
	case p.sparse != nil:
		return p.sparse.decode(c)
	case c.stream && c.bytes() != want:
		return fmt.Errorf("%d bytes, expected %d", c.bytes(), want)
	case !c.stream:
		if err := p.form.decode(p.to, p.width, c.places, c.body); err != nil {
			return err
		}
	}
	if p.form.keep == nil { // a cache has whole rows
		p.cache().keep(p.to, p.width, p.numbers, c.places)
	}
	return nil
}
