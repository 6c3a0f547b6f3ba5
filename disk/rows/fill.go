package rows

import (
	"context"
	"fmt"
	"time"
)

// Fill is the rows of a batch, in the order of some numbers, which are those that it was drawn with. It waits until
// the batches before have theirs. The rows are to be given back with Return. It may be called from any goroutine,
// once for each batch.
func (f *Feed) Fill(ctx context.Context, number int64, vertices []uint32) ([]byte, error) {
	b, err := f.fill(ctx, number, vertices)
	if err != nil {
		f.fail(err)
		return nil, f.end.err
	}
	return b, nil
}

func (f *Feed) fill(ctx context.Context, number int64, vertices []uint32) ([]byte, error) {
	if err := wait(ctx, f, f.turnOf(number)); err != nil {
		return nil, err
	}
	if err := wait(ctx, f, f.room); err != nil {
		return nil, err
	}
	s, err := f.take(ctx)
	if err != nil {
		return nil, err
	}
	if s.number != number {
		return nil, fmt.Errorf("rows of batch %d came for batch %d", s.number, number)
	}
	to, err := f.lent.take(int64(len(vertices)) * int64(f.options.Width))
	if err == nil {
		err = f.serve(s, vertices, to)
	}
	if err != nil {
		return nil, err
	}
	f.pass(number)
	return to, nil
}

// Return gives back the rows of a batch.
func (f *Feed) Return(b []byte) {
	f.lent.takeBack(b)
	f.room <- struct{}{}
}

// turnOf is closed when it is a batch's turn.
func (f *Feed) turnOf(number int64) chan struct{} {
	f.turn.Lock()
	defer f.turn.Unlock()
	c := f.turn.wait[number]
	if c == nil {
		c = make(chan struct{})
		f.turn.wait[number] = c
		if f.turn.next == number {
			close(c)
		}
	}
	return c
}

// pass ends a batch's turn.
func (f *Feed) pass(number int64) {
	f.turn.Lock()
	defer f.turn.Unlock()
	delete(f.turn.wait, number)
	f.turn.next = number + 1
	if c := f.turn.wait[number+1]; c != nil {
		close(c)
	}
}

// wait waits for a channel: for other batches, or for training.
func wait(ctx context.Context, f *Feed, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-f.end.done:
		return f.end.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take waits for the next batch whose rows were read, as long as something goes on.
func (f *Feed) take(ctx context.Context) (*staged, error) {
	t := time.NewTicker(f.options.Patience)
	defer t.Stop()
	for before := f.Stats.progress(); ; {
		select {
		case s := <-f.staged:
			if s == nil {
				return nil, f.ended(ctx)
			}
			return s, nil
		case <-t.C:
			now := f.Stats.progress()
			if now == before {
				return nil, fmt.Errorf("%s: no row has come for %v: the disk does not answer", f.options.Files[0].Path,
					f.options.Patience)
			}
			before = now
		case <-f.end.done:
			return nil, f.end.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ended is why no more rows come.
func (f *Feed) ended(ctx context.Context) error {
	if err := wait(ctx, f, f.end.done); err != nil {
		return err
	}
	return f.end.err
}

// serve joins rows that are kept and rows that were read, and keeps some of these.
func (f *Feed) serve(s *staged, vertices []uint32, to []byte) error {
	width := f.options.Width
	for i, v := range s.read {
		f.where[v] = int32(-2 - i)
	}
	for i, v := range vertices {
		at := f.where[v]
		switch {
		case at == absent:
			return fmt.Errorf("batch %d needs row %d, which its first draw did not have", s.number, v)
		case at >= 0:
			copy(to[i*width:(i+1)*width], f.kept[int(at)*width:])
		default:
			copy(to[i*width:(i+1)*width], s.rows[int(-2-at)*width:])
		}
	}
	for _, v := range s.read {
		f.where[v] = absent
	}
	for _, p := range s.puts {
		f.keep(p, s.read[p.read], s.rows[int(p.read)*width:int(p.read+1)*width])
	}
	f.Stats.Rows.Add(int64(s.need.rows))
	f.Stats.Missed.Add(int64(len(s.read)))
	bytes := f.layout.bytesOf(s.need)
	f.read.takeBack(s.rows)
	select {
	case f.back <- bytes:
	case <-f.end.done:
	}
	return nil
}

// keep has a row take a slot, whose row leaves.
func (f *Feed) keep(p put, v uint32, row []byte) {
	if f.used[p.slot] {
		f.where[f.rowOf[p.slot]] = absent
	}
	f.used[p.slot], f.rowOf[p.slot], f.where[v] = true, v, p.slot
	copy(f.kept[int(p.slot)*f.options.Width:], row)
}
