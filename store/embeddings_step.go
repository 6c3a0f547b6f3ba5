package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"starling/coflow"
	"starling/wire"
)

// A step of all workers gives every owner the gradients of its rows. An owner answers once it has the gradients of
// all workers and has updated its rows:
//
//	step embeddings   step, batch uint32, rate float64, numbers [n] uint32, gradients [n, Dim] of Size bytes → nothing
//
// Where rows come ahead the batch's number is there, and the answer has rows of the next (embeddings_ahead.go).
const (
	stepService = "step embeddings"
	stepHead    = 16
)

// stepPush is the gradients of one worker for an owner's rows.
type stepPush struct {
	step   uint32
	batch  uint32 // 0: rows do not come ahead
	rate   float64
	rows   []uint32
	values []byte
}

// pushOf is the request with the gradients at some places.
func (e *Embeddings) pushOf(step int, lr float64, numbers []uint32, gradients []byte, places []uint32) []byte {
	b := make([]byte, stepHead, stepHead+len(places)*(4+e.rows.Width))
	binary.LittleEndian.PutUint32(b, uint32(step))
	binary.LittleEndian.PutUint32(b[4:], e.batch())
	binary.LittleEndian.PutUint64(b[8:], math.Float64bits(lr))
	b = appendAt(b, numbers, places)
	return appendRows(b, gradients, e.rows.Width, places)
}

// appendRows appends the rows at places.
func appendRows(b, rows []byte, width int, places []uint32) []byte {
	for _, i := range places {
		b = append(b, rows[int(i)*width:(int(i)+1)*width]...)
	}
	return b
}

// pushOwn is the same for this worker, without a message. Its memory is reused by the next step; all gradients of one
// worker are in place.
func (e *Embeddings) pushOwn(step int, lr float64, numbers []uint32, gradients []byte, places []uint32) *stepPush {
	p := &e.own
	p.step, p.batch, p.rate, p.rows = uint32(step), e.batch(), lr, p.rows[:0]
	for _, i := range places {
		p.rows = append(p.rows, numbers[i])
	}
	if len(e.s.here) == 1 {
		p.values = gradients
		return p
	}
	p.values = appendRows(slices.Grow(p.values[:0], len(places)*e.rows.Width), gradients, e.rows.Width, places)
	return p
}

// parsePush reads what pushOf wrote; its rows are this worker's.
func (e *Embeddings) parsePush(b []byte) (*stepPush, error) {
	if len(b) < stepHead || (len(b)-stepHead)%(4+e.rows.Width) != 0 {
		return nil, fmt.Errorf("gradients of embeddings in %d bytes", len(b))
	}
	n := (len(b) - stepHead) / (4 + e.rows.Width)
	p := &stepPush{step: binary.LittleEndian.Uint32(b), batch: binary.LittleEndian.Uint32(b[4:]),
		rate: math.Float64frombits(binary.LittleEndian.Uint64(b[8:])),
		rows: numbersOf(b[stepHead : stepHead+4*n]), values: append([]byte(nil), b[stepHead+4*n:]...)}
	return p, e.check(p)
}

// check refuses what no step has, and makes rows those of this worker.
func (e *Embeddings) check(p *stepPush) error {
	if !(p.rate >= 0 && p.rate <= math.MaxFloat64) {
		return fmt.Errorf("a learning rate of %g for embeddings", p.rate)
	}
	if (p.batch > 0) != (e.ahead != nil) {
		return fmt.Errorf("gradients with a batch's number %d, where rows come ahead: %v", p.batch, e.ahead != nil)
	}
	return e.rows.source(e.s.Part.Meta.Part).local(p.rows)
}

func (e *Embeddings) serveStep(ctx context.Context, r *wire.Request) (wire.Response, error) {
	p, err := e.parsePush(r.Body)
	err = e.arrive(ctx, r.From, p, err)
	if err == nil && e.ahead != nil {
		return e.ahead.pendingRows(ctx, r.From, p.batch)
	}
	return wire.Response{Kind: wire.Control}, err
}

// batch is the number of the batch whose step is under way, and whether it is the last; 0: rows do not come ahead.
func (e *Embeddings) batch() uint32 {
	if e.ahead == nil {
		return 0
	}
	e.ahead.mu.Lock()
	defer e.ahead.mu.Unlock()
	number := e.ahead.mu.begun
	if number == e.ahead.total {
		number |= lastBatch
	}
	return number
}

// Step gives owners the gradients of rows, by this worker, and returns when the rows of all owners
// have been updated with the gradients of all workers. All workers call it once per step; a number occurs
// once.
func (e *Embeddings) Step(ctx context.Context, id coflow.ID, step int, lr float64, numbers []uint32,
	gradients []byte) error {
	by := &e.by
	e.s.split(by, e.rows.Offsets, numbers)
	calls := e.s.newCalls(stepService, "updating embeddings of")
	calls.kind = wire.Embedding
	if e.ahead != nil {
		calls.received = e.s.receivedOf(e.table)
	}
	me := e.s.Part.Meta.Part
	for i := 1; i < len(e.s.here); i++ { // all owners, also those without a row of the batch: they wait for all workers
		q := (me + i) % len(e.s.here)
		calls.send(id, q, nil, e.pushOf(step, lr, numbers, gradients, by.places[q]), e.mostPending(q))
	}
	own := e.pushOwn(step, lr, numbers, gradients, by.places[me])
	err := e.arrive(ctx, me, own, e.check(own))
	err = errors.Join(err, calls.wait(ctx))
	if e.ahead != nil {
		e.ahead.pending = calls.list
	}
	return err
}

// round is the pushes of one step.
type round struct {
	first  int         // the worker that pushed first
	pushes []*stepPush // by worker
	got    int
	done   chan struct{} // rows have been updated, or err is set
	err    error
}

// arrive takes a worker's push, unless it was refused, and waits until the last of the step has updated the rows.
func (e *Embeddings) arrive(ctx context.Context, rank int, p *stepPush, err error) error {
	if err != nil {
		err = fmt.Errorf("worker %d pushed %w", rank, err) // all workers learn it, and whose push it was
	}
	if p == nil {
		return err
	}
	r, err := e.join(rank, p, err)
	if err != nil {
		return err
	}
	if err := e.s.await(ctx, r.done); err != nil {
		return err
	}
	return r.err
}

// join adds a push to its round. The last one ends it: rows are updated, unless a push was refused, which all workers
// then learn.
func (e *Embeddings) join(rank int, p *stepPush, refused error) (*round, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.mu.rounds[p.step]
	if r == nil {
		for step, other := range e.mu.rounds { // a step ends on all workers before one begins the next
			return nil, fmt.Errorf("worker %d pushes gradients of step %d, and worker %d those of step %d", rank,
				p.step, other.first, step)
		}
		r = &round{first: rank, pushes: make([]*stepPush, len(e.s.here)), done: make(chan struct{})}
		e.mu.rounds[p.step] = r
	}
	if r.pushes[rank] != nil {
		return nil, fmt.Errorf("worker %d pushes gradients of step %d twice", rank, p.step)
	}
	r.pushes[rank] = p
	if r.err == nil {
		r.err = refused
	}
	if r.got++; r.got == len(r.pushes) {
		if r.err == nil {
			r.err = e.updateAll(r.pushes)
		}
		delete(e.mu.rounds, p.step)
		close(r.done)
	}
	return r, nil
}

// updateAll updates rows with the pushes of all workers, which are of the same batch.
func (e *Embeddings) updateAll(pushes []*stepPush) error {
	for rank, p := range pushes {
		if p.batch != pushes[0].batch {
			return fmt.Errorf("worker %d pushed gradients of batch %d, and worker 0 those of batch %d", rank, p.batch,
				pushes[0].batch)
		}
	}
	if e.ahead == nil {
		e.update(pushes)
		return nil
	}
	if err := e.ahead.check(pushes); err != nil {
		return err
	}
	e.update(pushes)
	e.ahead.applied(pushes[0].batch &^ lastBatch)
	return nil
}
