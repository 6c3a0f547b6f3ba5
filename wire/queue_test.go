package wire

import (
	"math/rand/v2"
	"slices"
	"testing"

	"starling/coflow"
)

// The twin of the queue is a list in which the most urgent message is looked for
// from the beginning, for every chunk.
func TestQueueOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		order := coflow.Orders()[i%len(coflow.Orders())]
		q := NewQueue(Options{Order: order})
		var twin []*Message
		for step := range 60 {
			if r.IntN(2) == 0 {
				id := coflow.ID{Type: coflow.Type(r.IntN(4)), Layer: int16(r.IntN(3)), Epoch: uint32(r.IntN(2)),
					Backward: r.IntN(2) == 0}
				size := r.IntN(4) * 100
				m := &Message{head: Header{Key: Key{id, uint32(step)}, Length: int64(size)},
					payload: make([]byte, size), pending: newTestPending()}
				q.Put(m)
				twin = append(twin, m)
			} else if len(twin) > 0 {
				first := 0
				for i := range twin {
					if order.Before(twin[i].head.Key.Coflow, twin[first].head.Key.Coflow) {
						first = i
					}
				}
				q.Lock()
				c := q.Cut(100)
				q.Written(&c, nil)
				q.Unlock()
				if c.m != twin[first] {
					t.Fatalf("%v left before %v", c.m.head.Key, twin[first].head.Key)
				}
				whole := c.offset+int64(len(c.bytes)) == c.m.head.Length
				if whole {
					twin = slices.Delete(twin, first, first+1)
				}
				if c.m.pending.IsDone() != whole {
					t.Fatal("a message is done before its last chunk, or not after it")
				}
			}
			if q.Waiting() != (len(twin) > 0) {
				t.Fatal("waiting")
			}
		}
	}
}

// A message that is being written when the queue ends is not done before that stops.
func TestQueueEnds(t *testing.T) {
	q := NewQueue(Options{Order: coflow.ByType})
	var ms []*Message
	for range 3 {
		m := &Message{head: Header{Length: 10}, payload: make([]byte, 10), pending: newTestPending()}
		ms = append(ms, m)
		q.Put(m)
	}
	q.Lock()
	c := q.Cut(5)
	q.Unlock()
	q.Fail(ErrPeerClosed)
	q.Put(ms[2])
	if ms[0].pending.IsDone() || ms[1].pending.Err() != ErrPeerClosed || ms[2].pending.Err() != ErrPeerClosed {
		t.Error("ended at the wrong time")
	}
	q.Lock()
	q.Written(&c, nil)
	q.Unlock()
	if !ms[0].pending.IsDone() || ms[0].pending.Err() != ErrPeerClosed {
		t.Error("not ended")
	}
}
