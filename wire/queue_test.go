package wire

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"starling/coflow"
	"starling/internal/testdeadline"
)

// The twin of the queue is a list in which the most urgent message is looked for
// from the beginning, for every chunk.
func TestQueueOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		order := coflow.Orders()[i%len(coflow.Orders())]
		q := newSendQueue(order)
		var twin []*Message
		for step := range 60 {
			if r.IntN(2) == 0 {
				id := coflow.ID{Type: coflow.Type(r.IntN(4)), Layer: int16(r.IntN(3)), Epoch: uint32(r.IntN(2)),
					Backward: r.IntN(2) == 0}
				size := r.IntN(4) * 100
				m := &Message{header: header{key: Key{id, uint32(step)}, length: int64(size)},
					payload: make([]byte, size), pending: newTestPending()}
				q.put(m)
				twin = append(twin, m)
			} else if len(twin) > 0 {
				first := 0
				for i := range twin {
					if order.Before(twin[i].key.Coflow, twin[first].key.Coflow) {
						first = i
					}
				}
				q.Lock()
				c := q.take(100)
				q.written(&c, nil)
				q.Unlock()
				if c.m != twin[first] {
					t.Fatalf("%v left before %v", c.m.key, twin[first].key)
				}
				whole := c.offset+int64(len(c.bytes)) == c.m.length
				if whole {
					twin = slices.Delete(twin, first, first+1)
				}
				if c.m.pending.IsDone() != whole {
					t.Fatal("a message is done before its last chunk, or not after it")
				}
			}
			if q.waiting() != (len(twin) > 0) {
				t.Fatal("waiting")
			}
		}
	}
}

// A message that is being written when the queue ends is not done before that stops.
func TestQueueEnds(t *testing.T) {
	q := newSendQueue(coflow.ByType)
	var ms []*Message
	for range 3 {
		m := &Message{header: header{length: 10}, payload: make([]byte, 10), pending: newTestPending()}
		ms = append(ms, m)
		q.put(m)
	}
	q.Lock()
	c := q.take(5)
	q.Unlock()
	q.end(broken, ErrPeerClosed)
	q.put(ms[2])
	if ms[0].pending.IsDone() || ms[1].pending.Err() != ErrPeerClosed || ms[2].pending.Err() != ErrPeerClosed {
		t.Error("ended at the wrong time")
	}
	q.Lock()
	q.written(&c, nil)
	q.Unlock()
	if !ms[0].pending.IsDone() || ms[0].pending.Err() != ErrPeerClosed {
		t.Error("not ended")
	}
}

// On a slow link all goes by the first connection, and the others end with it.
func TestSlowQueueHasOneConnection(t *testing.T) {
	for _, slow := range []bool{false, true} {
		p := newTCPPeer(newEndpoint(0, []Link{SameProcess, SameHost}, DefaultOptions()), 1, make([]net.Conn, 3))
		p.queue.slow = slow
		var mu sync.Mutex
		var all sync.WaitGroup
		took := make([]int, len(p.conns))
		for i, c := range p.conns {
			all.Go(func() {
				for c.takeBatch() {
					mu.Lock()
					took[i] += len(c.chunks)
					mu.Unlock()
					p.queue.Lock()
					for k := range c.chunks {
						p.queue.written(&c.chunks[k], nil)
					}
					p.queue.Unlock()
				}
			})
		}
		const size = 64 * chunkSize
		var pending []*Pending
		for range 20 {
			m := &Message{header: header{length: size}, payload: make([]byte, size), pending: newTestPending()}
			pending = append(pending, m.pending)
			p.queue.put(m)
		}
		p.queue.end(draining, ErrClosed)
		testdeadline.Wait(t, &all, "connections")
		for _, one := range pending {
			if !one.IsDone() {
				t.Error("a message was left behind")
			}
		}
		if others := took[1] + took[2]; slow && others > 0 {
			t.Errorf("%d chunks left by other connections of a slow link", others)
		}
		if took[0]+took[1]+took[2] != 20*64 {
			t.Errorf("%v chunks, expected %d", took, 20*64)
		}
	}
}
