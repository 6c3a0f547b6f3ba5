package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/wire"
)

// Pushing gives the owners of rows values for them, which Rows.Apply applies:
//
//	push rows   table byte, numbers [n] uint32, values [n, PushWidth] → nothing, once they have been applied
const pushService = "push rows"

// Push gives the owners of rows values for them, and returns when they have been applied. A
// number occurs once.
func (s *Store) Push(ctx context.Context, id coflow.ID, t Table, numbers []uint32, values []byte) error {
	r, err := s.added(t)
	if err != nil || len(numbers) == 0 {
		return err
	}
	var by split
	s.split(&by, r.Offsets, numbers)
	calls := s.newCalls(pushService, "pushing rows to")
	calls.kind = wire.Embedding
	err = s.remoteFirst(&by, s.isOwn, func(q int, places []uint32) error {
		for some := range slices.Chunk(places, r.mostPushed()) {
			calls.send(id, q, some, r.appendPush([]byte{byte(t)}, numbers, values, some), noReply)
		}
		return nil
	}, func(_ int, places []uint32) error {
		return s.applyPush(r, r.appendPush(nil, numbers, values, places))
	})
	return errors.Join(err, calls.wait(ctx))
}

// mostPushed is how many rows one request pushes.
func (r *Rows) mostPushed() int { return max(1, (maxRequest-1)/(4+r.PushWidth)) }

// appendPush appends the numbers at places and then their values.
func (r *Rows) appendPush(b []byte, numbers []uint32, values []byte, places []uint32) []byte {
	b = slices.Grow(b, len(places)*(4+r.PushWidth))
	b = appendAt(b, numbers, places)
	for _, i := range places {
		b = append(b, values[int(i)*r.PushWidth:(int(i)+1)*r.PushWidth]...)
	}
	return b
}

// applyPush applies what appendPush wrote.
func (s *Store) applyPush(r *Rows, body []byte) error {
	if r.Apply == nil || len(body)%(4+r.PushWidth) != 0 {
		return fmt.Errorf("a push of %d bytes to %s", len(body), r.Name)
	}
	n := len(body) / (4 + r.PushWidth)
	rows := numbersOf(body[:4*n])
	if err := r.source(s.Part.Meta.Part).local(rows); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Apply(rows, body[4*n:])
}

// servePush applies rows that a peer pushed.
func (s *Store) servePush(_ context.Context, q *wire.Request) (wire.Response, error) {
	if len(q.Body) == 0 {
		return wire.Response{}, errors.New("a push of 0 bytes")
	}
	r, err := s.added(Table(q.Body[0]))
	if err == nil {
		err = s.applyPush(r, q.Body[1:])
	}
	return wire.Response{Kind: wire.Control}, err
}
