package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"starling/coflow"
	"starling/graph"
	"starling/wire"
)

// Table is which rows are pulled. Further ones are those of AddRows.
type Table byte

const (
	Features Table = iota
	Labels
	added // the first of AddRows
)

// A request to pull is a byte for the table, which may have the flag of a range of columns, that of
// some columns and the form that rows travel in; the first byte of the range and the one after it,
// or the bits of columns, if there are any; and numbers.
const (
	pullColumns = 8
	pullSome    = 64
	mostTables  = 8
)

const (
	pullService = "pull rows"
	pullBytes   = 8 << 20 // of a response, so that several are on their way
)

// Puller pulls rows, with memory of its own that is reused. It is used by one goroutine.
type Puller struct {
	s     *Store
	by    split
	calls []*pulling

	// What is being pulled.
	table   Table
	to      []byte
	width   int
	numbers []uint32
	columns [2]int // bytes of a row from the first on and before the second; both 0: all
	keep    *Columns
}

// Puller makes one.
func (s *Store) Puller() *Puller { return &Puller{s: s} }

// pulling is a call under way.
type pulling struct {
	part    int
	id      coflow.ID
	places  []uint32
	request []byte
	bytes   int                             // of the response
	each    func(offset int64, part []byte) // takes it in; nil: it is returned whole
	came    atomic.Int64
	body    []byte
	reply   *wire.Reply
}

// Features fills to with the rows of features of some vertices, in their order.
func (p *Puller) Features(ctx context.Context, id coflow.ID, to *graph.Features, numbers []uint32) error {
	f := p.s.Part.Features
	to.Rows, to.Cols = len(numbers), p.cols()
	switch f.Kind() {
	case graph.Dense:
		to.F32 = resize(to.F32, len(numbers)*to.Cols)
	case graph.BFloat16:
		to.BF16 = resize(to.BF16, len(numbers)*to.Cols)
	default:
		return p.sparse(ctx, id, to, numbers)
	}
	return p.rows(ctx, id, Features, featureBytes(to), numbers)
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
	return p.rows(ctx, id, Labels, labelBytes(to), numbers)
}

func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// bytesOf is the memory of numbers.
func bytesOf[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// featureBytes and labelBytes are rows of equal length as bytes.
func featureBytes(f *graph.Features) []byte {
	if f.F32 != nil {
		return bytesOf(f.F32)
	}
	return bytesOf(f.BF16)
}

func labelBytes(l *graph.Labels) []byte {
	switch {
	case l.Multi != nil:
		return l.Multi
	case l.Values != nil:
		return bytesOf(l.Values)
	}
	return bytesOf(l.Class)
}

// Columns has Features pull columns lo to hi-1 only, which owners take out before bytes leave. It
// is for dense rows, and a store without a cache and that does not pack rows.
func (p *Puller) Columns(lo, hi int) error {
	f := p.s.Part.Features
	size := p.s.rowBytes() / max(f.Cols, 1)
	switch {
	case f.Kind() == graph.Sparse || p.s.cache != nil || p.s.packed != Unpacked:
		return fmt.Errorf("columns of rows that are sparse, packed or cached")
	case lo < 0 || hi <= lo || hi > f.Cols:
		return fmt.Errorf("columns %d to %d of %d", lo, hi, f.Cols)
	}
	p.columns = [2]int{lo * size, hi * size}
	return nil
}

// cols is how many columns of features are pulled.
func (p *Puller) cols() int {
	f := p.s.Part.Features
	if p.columns[1] == 0 || f.Cols == 0 {
		return f.Cols
	}
	return (p.columns[1] - p.columns[0]) / (p.s.rowBytes() / f.Cols)
}

// Rows fills to with rows of a table, which AddRows has added, in the order of their numbers.
func (p *Puller) Rows(ctx context.Context, id coflow.ID, t Table, to []byte, numbers []uint32) error {
	return p.rows(ctx, id, t, to, numbers)
}

// table is a part's rows of equal length, and how long one is.
func (o *Owner) table(t Table) (rows []byte, width int, err error) {
	switch t {
	case Features:
		rows = featureBytes(o.part.Features)
	case Labels:
		if o.part.Labels == nil {
			return nil, 0, fmt.Errorf("part %d has no labels", o.part.Meta.Part)
		}
		rows = labelBytes(o.part.Labels)
	default:
		return nil, 0, fmt.Errorf("table %d is not known", t)
	}
	return rows, len(rows) / max(o.part.Core(), 1), nil
}

// rows pulls rows of equal length into to.
func (p *Puller) rows(ctx context.Context, id coflow.ID, t Table, to []byte, numbers []uint32) error {
	if err := p.ask(id, t, to, numbers); err != nil {
		return errors.Join(err, p.wait(ctx))
	}
	if err := p.wait(ctx); err != nil {
		return err
	}
	return p.take()
}

// ask asks remote owners for rows that go into to, and copies those that are here.
func (p *Puller) ask(id coflow.ID, t Table, to []byte, numbers []uint32) error {
	p.calls, p.table, p.to, p.numbers = p.calls[:0], t, to, numbers
	if len(numbers) == 0 || len(to) == 0 { // a graph without features has rows of no columns
		return nil
	}
	if t == Features {
		p.s.rows.needed.Add(int64(len(numbers)))
	}
	p.width = len(to) / len(numbers)
	offsets, here := p.s.placement(t)
	p.s.split(&p.by, offsets, numbers)
	return p.s.remoteFirst(&p.by, here, func(q int, places []uint32) error {
		if t == Features {
			p.s.rows.remote.Add(int64(len(places)))
		}
		places = p.cache().take(to, p.width, numbers, places)
		for some := range slices.Chunk(places, mostRows(p.width)) {
			p.askRows(id, q, some)
		}
		return nil
	}, p.copyRows)
}

// mostRows is how many rows one call asks for.
func mostRows(width int) int { return max(1, min(pullBytes/max(width, 1), (maxRequest-1)/4)) }

// cache is that of the rows that are pulled.
func (p *Puller) cache() *counted {
	if p.table == Features {
		return p.s.cache
	}
	return nil
}

// askRows calls an owner for rows that go to some places.
func (p *Puller) askRows(id coflow.ID, q int, places []uint32) {
	if p.table == Features && p.keep != nil {
		size := p.s.rowBytes() / p.keep.all
		p.request(id, q, p.table, p.numbers, places,
			p.s.packed.rowBytes(size*len(p.keep.list))*len(places)).call(p.s.end)
		return
	}
	if p.table == Features && p.s.packed != Unpacked {
		p.request(id, q, p.table, p.numbers, places, p.s.packed.rowBytes(p.width)*len(places)).call(p.s.end)
		return
	}
	c, to, width := p.request(id, q, p.table, p.numbers, places, p.width*len(places)), p.to, p.width
	c.each = func(offset int64, part []byte) {
		c.came.Add(int64(len(part)))
		scatter(to, width, places, offset, part)
	}
	c.call(p.s.end)
}

// copyRows copies rows of a part that is here.
func (p *Puller) copyRows(q int, places []uint32) error {
	rows, width, first, err := p.s.rowsOf(q, p.table)
	if err != nil {
		return err
	}
	lo, hi := columnsOf(p.columns, p.table, width)
	if hi-lo != p.width {
		return fmt.Errorf("rows of %d bytes in part %d, %d here", width, q, p.width)
	}
	if r, err := p.s.added(p.table); err == nil {
		r.mu.RLock()
		defer r.mu.RUnlock()
	}
	for _, i := range places {
		at := int(p.numbers[i]-first) * width
		copy(p.to[int(i)*p.width:(int(i)+1)*p.width], rows[at+lo:at+hi])
	}
	return nil
}

// columnsOf is the range of a row's bytes that is pulled.
func columnsOf(columns [2]int, t Table, width int) (lo, hi int) {
	if t == Features && columns[1] > 0 {
		return columns[0], columns[1]
	}
	return 0, width
}

// wait waits for the answers. None is under way after it, nor writes to the caller's memory.
func (p *Puller) wait(ctx context.Context) (err error) {
	for _, c := range p.calls {
		if err != nil {
			c.reply.Cancel()
			<-c.reply.Done()
			continue
		}
		if c.body, err = c.reply.Wait(ctx); err != nil {
			<-c.reply.Done()
		}
		p.s.received(c.part, p.table).Add(c.came.Load() + int64(len(c.body)))
	}
	return err
}

// take checks the answers, and keeps rows in the cache.
func (p *Puller) take() error {
	for _, c := range p.calls {
		if came := c.came.Load() + int64(len(c.body)); came != int64(c.bytes) {
			return fmt.Errorf("worker %d answered a pull of %d rows with %d bytes, expected %d", c.part, len(c.places),
				came, c.bytes)
		}
		switch {
		case p.table == Features && p.keep != nil: // no cache keeps such rows
			p.scatterKept(c.places, c.body)
			continue
		case c.each == nil:
			p.s.packed.unpack(p.to, p.width, c.places, c.body)
		}
		p.cache().keep(p.to, p.width, p.numbers, c.places)
	}
	p.clearOthers()
	return nil
}

// scatter copies a piece of a response, rows for places, to where they go.
func scatter(to []byte, width int, places []uint32, offset int64, part []byte) {
	for len(part) > 0 && int(offset) < width*len(places) {
		row, in := int(offset)/width, int(offset)%width
		n := min(len(part), width-in)
		copy(to[int(places[row])*width+in:], part[:n])
		part, offset = part[n:], offset+int64(n)
	}
}

// request prepares a call to an owner for the rows of numbers at places, of so many bytes; 0: of any.
func (p *Puller) request(id coflow.ID, q int, t Table, numbers, places []uint32, bytes int) *pulling {
	how := byte(t)
	if t == Features {
		how |= byte(p.s.packed) << 4
	}
	request := append(make([]byte, 0, 9+4*len(places)), how)
	if t == Features && p.columns[1] > 0 {
		request[0] |= pullColumns
		request = binary.LittleEndian.AppendUint32(request, uint32(p.columns[0]))
		request = binary.LittleEndian.AppendUint32(request, uint32(p.columns[1]))
	}
	if t == Features && p.keep != nil {
		request[0] |= pullSome
		request = append(request, bytesOf(p.keep.bits)...)
	}
	for _, i := range places {
		request = binary.LittleEndian.AppendUint32(request, numbers[i])
	}
	p.s.traffic[q].requests.Add(int64(len(request)))
	p.s.rows.requests.Add(1)
	c := &pulling{part: q, id: id, places: places, request: request, bytes: bytes}
	p.calls = append(p.calls, c)
	return c
}

func (c *pulling) call(end wire.Endpoint) {
	c.reply = end.Call(c.part, wire.Call{Service: pullService, Coflow: c.id, Kind: wire.Topology, Request: c.request,
		Limit: c.bytes, Each: c.each})
}

// servePull answers with rows: of equal length, or of sparse features their lengths, columns
// and values.
func (s *Store) servePull(_ context.Context, r *wire.Request) (wire.Response, error) {
	if len(r.Body)%4 != 1 {
		return wire.Response{}, fmt.Errorf("a request of %d bytes", len(r.Body))
	}
	t, packed, numbers := Table(r.Body[0]&7), Packed(r.Body[0]>>4&3), numbersOf(r.Body[1:])
	if packed > Int8 || packed != Unpacked && (t != Features || s.Part.Features.Kind() != graph.Dense) {
		return wire.Response{}, fmt.Errorf("rows of table %d in form %d", t, packed)
	}
	var columns [2]int
	if r.Body[0]&pullColumns != 0 {
		if len(numbers) < 2 || t != Features || packed != Unpacked || s.Part.Features.Kind() == graph.Sparse ||
			numbers[0] >= numbers[1] || int(numbers[1]) > s.rowBytes() {
			return wire.Response{}, fmt.Errorf("a range of columns in a request of %d bytes for table %d", len(r.Body), t)
		}
		columns, numbers = [2]int{int(numbers[0]), int(numbers[1])}, numbers[2:]
	}
	if t >= added {
		return s.serveRows(t, numbers)
	}
	var some *Columns
	if r.Body[0]&pullSome != 0 {
		var err error
		if t != Features || columns[1] > 0 {
			return wire.Response{}, fmt.Errorf("some columns of table %d", t)
		}
		if some, numbers, err = columnsFrom(numbers, s.Part.Features.Cols); err != nil {
			return wire.Response{}, err
		}
	}
	own := s.here[s.Part.Meta.Part]
	local, err := own.local(nil, numbers)
	if err != nil {
		return wire.Response{}, err
	}
	if some != nil {
		return s.serveKept(some, packed, local)
	}
	if t == Features && s.Part.Features.Kind() == graph.Sparse {
		return wire.Response{Kind: wire.Feature, Body: appendSparse(nil, s.Part.Features, local)}, nil
	}
	rows, width, err := own.table(t)
	if err != nil {
		return wire.Response{}, err
	}
	if packed != Unpacked {
		body, release := s.buffer(packed.rowBytes(width) * len(local))
		packed.pack(body, s.Part.Features, local)
		return wire.Response{Kind: wire.Feature, Body: body, Release: release}, nil
	}
	lo, hi := columnsOf(columns, t, width)
	each := hi - lo
	body, release := s.buffer(each * len(local))
	for i, v := range local {
		copy(body[i*each:(i+1)*each], rows[int(v)*width+lo:int(v)*width+hi])
	}
	return wire.Response{Kind: wire.Feature, Body: body, Release: release}, nil
}

// numbersOf copies numbers off a message.
func numbersOf(b []byte) []uint32 {
	out := make([]uint32, len(b)/4)
	copy(bytesOf(out), b)
	return out
}

// AskFeatures begins a pull of rows of features that are not sparse, in parts: Wait, which only
// waits for the network, and Take follow.
func (p *Puller) AskFeatures(id coflow.ID, to *graph.Features, numbers []uint32) error {
	to.Rows, to.Cols = len(numbers), p.cols()
	if p.s.Part.Features.Kind() == graph.BFloat16 {
		to.BF16 = resize(to.BF16, len(numbers)*to.Cols)
	} else {
		to.F32 = resize(to.F32, len(numbers)*to.Cols)
	}
	return p.ask(id, Features, featureBytes(to), numbers)
}

// Wait waits for what AskFeatures asked.
func (p *Puller) Wait(ctx context.Context) error { return p.wait(ctx) }

// Take ends what AskFeatures began.
func (p *Puller) Take() error { return p.take() }
