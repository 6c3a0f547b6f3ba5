package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"starling/coflow"
	"starling/wire"
)

// Learnt rows of batches that are drawn ahead. A step changes the rows of its batches and no others, so a row that the
// step before does not change may come while that step is computed, and the others right after their update:
//
//	noted     a worker has drawn a batch: every owner learns which of its rows it needs
//	          note rows     number, skipped uint32, rows [n] uint32 → nothing
//	asked     the worker begins the step before: each owner answers when all workers have noted that step's batch, and
//	          the step before that one has updated its rows. Bit i is set where row i of the list is pending: the step
//	          under way will change it
//	          rows ahead    number uint32 → pending [n] bits, the rows that are not pending
//	pushed    the gradients of the step under way; the answer, which comes after the update, has the pending rows
//
// So each row of a batch crosses the link once, with the bits that it would have had if it was asked for after the
// update, and a step waits for one round trip in place of two. What is sent is a function of the draws, not of time.
// Batches are numbered from 1, the first of the run; a batch without a step is skipped, and changes nothing.
const (
	noteService  = "note rows of embeddings"
	noteHead     = 8
	aheadService = "embeddings ahead"
	aheadHead    = 4
	lastBatch    = 1 << 31 // beside the number of the last one
)

// rowsAhead is a worker's side of it, and what it answers as an owner.
type rowsAhead struct {
	e     *Embeddings
	total uint32 // batches of the run, once it begins
	mu    struct {
		sync.Mutex
		begun uint32                // batch of the step under way
		drawn map[uint32]*NotedRows // that are not asked for
	}
	pending               []*call // answers of the last step, with rows of the batch after it
	remote, pendingRemote atomic.Int64

	owner struct {
		sync.Mutex
		begun   bool   // rows are what the run begins with
		applied uint32 // the last step that updated rows
		noted   map[uint32]*notedBatch
		changed chan struct{} // closed when something of this has
	}
}

// NotedRows are the rows that a batch needs, which owners know.
type NotedRows struct {
	id      coflow.ID
	number  uint32
	numbers []uint32
	by      split
	noted   calls
	asked   calls
}

// notedBatch is what the workers need for a batch of this worker's rows.
type notedBatch struct {
	lists   [][]uint32 // by worker
	here    []bool     // workers that have noted it
	got     int
	skipped bool
	touched []uint64 // bits of the rows that its step changes, once all have noted it
}

func (b *notedBatch) known() bool { return b != nil && b.got == len(b.lists) }

func (b *notedBatch) changes(row uint32) bool { return b.touched[row/64]>>(row%64)&1 > 0 }

// LookAhead has rows come ahead. All workers call it before any of them begins.
func (e *Embeddings) LookAhead() error {
	if len(e.s.here) == 1 {
		return nil
	}
	a := &rowsAhead{e: e}
	a.mu.drawn, a.owner.noted, a.owner.changed = map[uint32]*NotedRows{}, map[uint32]*notedBatch{}, make(chan struct{})
	e.ahead = a
	workers := e.s.end.Size()
	if err := e.s.serve(wire.Service{Name: noteService, MaxRequest: min(noteHead+4*a.rows(), maxResponse),
		Handlers: workers}, a.serveNote); err != nil {
		return err
	}
	return e.s.serve(wire.Service{Name: aheadService, MaxRequest: aheadHead, MaxResponse: maxResponse,
		Handlers: 2 * workers}, a.serveAhead) // of the batch under way, and of the next
}

// LooksAhead reports whether rows come ahead.
func (e *Embeddings) LooksAhead() bool { return e.ahead != nil }

// Begin begins a run of some batches, where rows come ahead: from now on others may have this worker's rows, which are
// filled. Other workers may have asked before.
func (e *Embeddings) Begin(batches int64) {
	a := e.ahead
	if a == nil {
		return
	}
	a.total = uint32(batches)
	a.owner.Lock()
	defer a.owner.Unlock()
	a.owner.begun = true
	a.tell()
}

// rows is the number of this worker's rows.
func (a *rowsAhead) rows() int { return len(a.e.rows.Data) / a.e.rows.Width }

// Note tells owners which rows a batch needs, in any order of batches; nil where rows do not come ahead. The numbers
// must not change before Fill.
func (e *Embeddings) Note(ctx context.Context, id coflow.ID, number int64, numbers []uint32, skipped bool) (*NotedRows,
	error) {
	a := e.ahead
	if a == nil {
		return nil, nil
	}
	if skipped {
		numbers = nil
	}
	n := &NotedRows{id: id, number: uint32(number), numbers: numbers}
	n.noted, n.asked = e.s.newCalls(noteService, "noting rows of"), e.s.newCalls(aheadService, "pulling rows ahead of")
	n.asked.received = e.s.receivedOf(e.table)
	e.s.split(&n.by, e.rows.Offsets, numbers)
	me, head := e.s.Part.Meta.Part, binary.LittleEndian.AppendUint32(nil, n.number)
	head = binary.LittleEndian.AppendUint32(head, map[bool]uint32{true: 1}[skipped])
	own := appendAt(append([]byte(nil), head...), numbers, n.by.places[me])
	if err := a.take(me, own); err != nil {
		return nil, err
	}
	for i := 1; i < len(e.s.here); i++ {
		q := (me + i) % len(e.s.here)
		n.noted.send(id, q, nil, appendAt(append([]byte(nil), head...), numbers, n.by.places[q]), noReply)
	}
	if skipped {
		return n, n.noted.wait(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.drawn[n.number] = n
	a.ask()
	return n, nil
}

// ask asks for the rows of the batches whose turn has come, in their order. REQUIRES: mu held.
func (a *rowsAhead) ask() {
	for _, number := range []uint32{a.mu.begun, a.mu.begun + 1} {
		n := a.mu.drawn[number]
		if n == nil {
			continue
		}
		delete(a.mu.drawn, number)
		request, me := binary.LittleEndian.AppendUint32(nil, number), a.e.s.Part.Meta.Part
		for i := 1; i < len(a.e.s.here); i++ {
			q := (me + i) % len(a.e.s.here)
			if rows := len(n.by.places[q]); rows > 0 {
				n.asked.send(n.id, q, n.by.places[q], request, (rows+7)/8+rows*a.e.rows.Width)
			}
		}
	}
}

// Fill waits for the rows of a batch, whose step begins, and copies them to memory in the order of its numbers.
func (e *Embeddings) Fill(ctx context.Context, n *NotedRows, to []byte) error {
	a := e.ahead
	a.mu.Lock()
	a.mu.begun = n.number
	a.ask()
	a.mu.Unlock()
	if err := errors.Join(n.noted.wait(ctx), n.asked.wait(ctx)); err != nil {
		return err
	}
	e.copyOwn(to, n)
	for _, c := range n.asked.list {
		if err := a.put(to, c); err != nil {
			return fmt.Errorf("worker %d sent rows of batch %d ahead, and %w", c.part, n.number, err)
		}
	}
	a.pending = nil
	return nil
}

// copyOwn copies this worker's rows.
func (e *Embeddings) copyOwn(to []byte, n *NotedRows) {
	me, width := e.s.Part.Meta.Part, e.rows.Width
	first := uint32(e.rows.Offsets[me])
	e.rows.mu.RLock()
	defer e.rows.mu.RUnlock()
	for _, i := range n.by.places[me] {
		copy(to[int(i)*width:(int(i)+1)*width], e.rows.Data[int(n.numbers[i]-first)*width:])
	}
}

// put copies the rows of an owner, those ahead and the pending ones, to their places.
func (a *rowsAhead) put(to []byte, c *call) error {
	n, width := len(c.places), a.e.rows.Width
	if len(c.body) < (n+7)/8 {
		return fmt.Errorf("%d bytes for %d rows", len(c.body), n)
	}
	marks, early := c.body[:(n+7)/8], c.body[(n+7)/8:]
	var pending []byte
	for _, one := range a.pending {
		if one.part == c.part {
			pending = one.body
		}
	}
	count := 0
	for _, m := range marks {
		count += bits.OnesCount8(m)
	}
	if count > n || len(early) != (n-count)*width || len(pending) != count*width {
		return fmt.Errorf("%d bytes ahead and %d pending ones, of %d rows of which %d are pending", len(early),
			len(pending), n, count)
	}
	a.remote.Add(int64(n))
	a.pendingRemote.Add(int64(count))
	for k, i := range c.places {
		from := &early
		if marks[k/8]>>(k%8)&1 > 0 {
			from = &pending
		}
		if len(*from) < width { // marks beyond the last row
			return errors.New("rows of other places")
		}
		copy(to[int(i)*width:(int(i)+1)*width], *from)
		*from = (*from)[width:]
	}
	return nil
}

// Ahead counts the rows of other workers that batches needed, and those of them that came after the update before.
func (e *Embeddings) Ahead() (rows, pending int64) {
	if e.ahead == nil {
		return 0, 0
	}
	return e.ahead.remote.Load(), e.ahead.pendingRemote.Load()
}

// What follows is the owner's side.

func (a *rowsAhead) serveNote(_ context.Context, r *wire.Request) (wire.Response, error) {
	return wire.Response{Kind: wire.Control}, a.take(r.From, r.Body)
}

// take takes in what a worker needs for a batch.
func (a *rowsAhead) take(rank int, b []byte) error {
	if len(b) < noteHead || len(b)%4 > 0 {
		return fmt.Errorf("a note of rows of %d bytes", len(b))
	}
	number, skipped := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]) > 0
	rows := numbersOf(b[noteHead:])
	if err := a.e.rows.source(a.e.s.Part.Meta.Part).local(rows); err != nil {
		return err
	}
	o := &a.owner
	o.Lock()
	defer o.Unlock()
	if number <= o.applied {
		return fmt.Errorf("worker %d notes rows of batch %d after step %d", rank, number, o.applied)
	}
	x := o.noted[number]
	if x == nil {
		x = &notedBatch{lists: make([][]uint32, len(a.e.s.here)), here: make([]bool, len(a.e.s.here)), skipped: skipped}
		o.noted[number] = x
	}
	if x.here[rank] || x.skipped != skipped {
		return fmt.Errorf("worker %d notes rows of batch %d twice, or otherwise than others", rank, number)
	}
	x.here[rank], x.lists[rank] = true, rows
	if x.got++; x.got == len(x.lists) {
		x.mark(a.rows())
	}
	a.tell()
	return nil
}

// mark sets the bits of the rows that a step changes, of some.
func (b *notedBatch) mark(rows int) {
	b.touched = make([]uint64, (rows+63)/64)
	for _, list := range b.lists {
		for _, v := range list {
			b.touched[v/64] |= 1 << (v % 64)
		}
	}
}

// tell wakes those who wait. REQUIRES: owner held.
func (a *rowsAhead) tell() {
	close(a.owner.changed)
	a.owner.changed = make(chan struct{})
}

// until waits until something is so, and does it. Both are called with the owner's lock held.
func (a *rowsAhead) until(ctx context.Context, so func() bool, do func()) error {
	o := &a.owner
	for {
		o.Lock()
		if so() {
			do()
			o.Unlock()
			return nil
		}
		changed := o.changed
		o.Unlock()
		if err := a.e.s.await(ctx, changed); err != nil {
			return err
		}
	}
}

// done reports whether all steps up to one have updated rows. REQUIRES: owner held.
func (a *rowsAhead) done(number uint32) bool {
	for k := number; k > a.owner.applied; k-- {
		if x := a.owner.noted[k]; !x.known() || !x.skipped {
			return false
		}
	}
	return true
}

// check refuses gradients of rows that were not noted for their step: other workers may have them already.
func (a *rowsAhead) check(pushes []*stepPush) error {
	o := &a.owner
	o.Lock()
	x := o.noted[pushes[0].batch&^lastBatch]
	known := x.known()
	o.Unlock()
	if !known {
		return fmt.Errorf("gradients of batch %d, whose rows were not noted", pushes[0].batch&^lastBatch)
	}
	for rank, p := range pushes {
		for _, v := range p.rows {
			if !x.changes(v) {
				return fmt.Errorf("worker %d pushed a gradient of row %d, which no worker noted for batch %d", rank, v,
					p.batch&^lastBatch)
			}
		}
	}
	return nil
}

// applied takes in that a step has updated rows. What was noted of the steps before it is not asked for any more: all
// workers have the rows of this one.
func (a *rowsAhead) applied(number uint32) {
	o := &a.owner
	o.Lock()
	defer o.Unlock()
	for k := range o.noted {
		if k < number {
			delete(o.noted, k)
		}
	}
	o.applied = number
	a.tell()
}

func (a *rowsAhead) serveAhead(ctx context.Context, r *wire.Request) (wire.Response, error) {
	if len(r.Body) != aheadHead {
		return wire.Response{}, fmt.Errorf("a request of %d bytes for rows ahead", len(r.Body))
	}
	number := binary.LittleEndian.Uint32(r.Body)
	var list []uint32
	var before *notedBatch // nil: it is the first
	err := a.until(ctx, func() bool {
		before = a.owner.noted[number-1]
		x := a.owner.noted[number]
		return a.owner.begun && x != nil && x.here[r.From] && (number == 1 || before.known() && a.done(max(number, 2)-2))
	}, func() { list = a.owner.noted[number].lists[r.From] })
	if err != nil {
		return wire.Response{}, err
	}
	e := a.e
	b, release := e.s.buffer((len(list)+7)/8 + len(list)*e.rows.Width)
	marks := (len(list) + 7) / 8
	clear(b[:marks])
	at := marks
	e.rows.mu.RLock()
	defer e.rows.mu.RUnlock()
	for i, v := range list {
		if before != nil && before.changes(v) {
			b[i/8] |= 1 << (i % 8)
			continue
		}
		at += copy(b[at:], e.rows.Data[int(v)*e.rows.Width:(int(v)+1)*e.rows.Width])
	}
	return wire.Response{Kind: wire.Embedding, Body: b[:at], Release: release}, nil
}

// pendingRows answers a worker's push of a step's gradients, once rows are updated: those of the next batch that the
// step changed.
func (a *rowsAhead) pendingRows(ctx context.Context, rank int, step uint32) (wire.Response, error) {
	out := wire.Response{Kind: wire.Embedding}
	if step&lastBatch > 0 {
		return out, nil
	}
	var list []uint32
	var before *notedBatch
	if err := a.until(ctx, func() bool {
		x := a.owner.noted[step+1]
		return x != nil && x.here[rank]
	}, func() { list, before = a.owner.noted[step+1].lists[rank], a.owner.noted[step] }); err != nil {
		return out, err
	}
	if !before.known() {
		return out, fmt.Errorf("no rows were noted of batch %d", step)
	}
	e := a.e
	b, release := e.s.buffer(len(list) * e.rows.Width)
	b = b[:0]
	e.rows.mu.RLock()
	defer e.rows.mu.RUnlock()
	for _, v := range list {
		if before.changes(v) {
			b = append(b, e.rows.Data[int(v)*e.rows.Width:(int(v)+1)*e.rows.Width]...)
		}
	}
	out.Body, out.Release = b, release
	return out, nil
}

// mostPending is the most bytes of rows that an owner's answer to a push has.
func (e *Embeddings) mostPending(q int) int {
	if e.ahead == nil {
		return noReply
	}
	return max(1, int(e.rows.Offsets[q+1]-e.rows.Offsets[q])*e.rows.Width)
}
