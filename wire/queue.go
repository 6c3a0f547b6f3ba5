package wire

import (
	"sync"
	"sync/atomic"
)

// queueState is how far a queue has ended.
type queueState uint8

const (
	queueOpen     queueState = iota
	queueDraining            // queued messages still leave
	queueBroken              // nothing leaves any more
)

// Queue holds the messages to one peer, the most urgent coflow first, and cuts them into chunks. The order is
// looked up again for every chunk, so an urgent message overtakes a large one that is under way.
type Queue struct {
	sync.Mutex
	heap  urgency[*Message]
	state queueState
	cause error // of queueBroken, and of messages that come too late
	// onPut and onEnd wake the transport's senders; they are called with the lock held.
	onPut, onEnd func()
	// inFlight counts the chunks that are being written; count the messages that wait, to be read without the lock.
	inFlight int
	count    atomic.Int32
	// left are messages whose owners are notified when the lock is released.
	left []*Message
}

// NewQueue returns an empty queue.
func NewQueue(opt Options) *Queue {
	q := &Queue{onPut: func() {}, onEnd: func() {}}
	q.heap.order = opt.withDefaults().Order
	return q
}

// OnPut and OnEnd set what wakes senders that wait for the queue's lock, which is held: put after every message, end
// when the queue ends, and after that whenever a chunk has left.
func (q *Queue) OnPut(put func()) { q.onPut = put }

// OnEnd sets what is called when the queue ends; see OnPut.
func (q *Queue) OnEnd(end func()) { q.onEnd = end }

// Put adds a message; it fails at once if the queue has ended.
func (q *Queue) Put(m *Message) {
	q.Lock()
	defer q.Unlock()
	if q.state != queueOpen {
		q.leave(m, q.cause)
		return
	}
	q.heap.put(m, m.head.Key.Coflow)
	q.count.Add(1)
	q.onPut()
}

// Waiting reports, without the lock, whether any message has chunks to be cut.
func (q *Queue) Waiting() bool { return q.count.Load() > 0 }

// Empty reports whether no message has chunks to be cut.
// REQUIRES: the lock held.
func (q *Queue) Empty() bool { return q.heap.empty() }

// First is the message that the next chunk is cut from.
// REQUIRES: the lock held, and the queue not empty.
func (q *Queue) First() *Message { return q.heap.first() }

// Ended reports whether the queue takes no more messages.
// REQUIRES: the lock held.
func (q *Queue) Ended() bool { return q.state != queueOpen }

// Broken reports whether nothing leaves the queue any more.
// REQUIRES: the lock held.
func (q *Queue) Broken() bool { return q.state == queueBroken }

// Idle reports whether nothing is in flight.
// REQUIRES: the lock held.
func (q *Queue) Idle() bool { return q.inFlight == 0 }

// Cut cuts a chunk of at most max bytes off the first message.
// REQUIRES: the lock held, and the queue not empty.
func (q *Queue) Cut(max int) Chunk {
	m := q.First()
	n := min(int64(max), m.Rest())
	c := Chunk{m: m, offset: m.next, bytes: m.payload[m.next : m.next+n]}
	m.next += n
	m.inFlight++
	q.inFlight++
	if m.Rest() == 0 {
		m.cut = true
		q.heap.take()
		q.count.Add(-1)
	}
	return c
}

// Take cuts a chunk of at most max bytes off the most urgent message, if there is one.
func (q *Queue) Take(max int) (Chunk, bool) {
	q.Lock()
	defer q.Unlock()
	if q.Empty() {
		return Chunk{}, false
	}
	return q.Cut(max), true
}

// Sent records that the bytes of a chunk were sent, and may change, or why they were not.
func (q *Queue) Sent(c Chunk, err error) {
	q.Lock()
	defer q.Unlock()
	q.Written(&c, err)
}

// Written is Sent for a caller that holds the lock.
// REQUIRES: the lock held.
func (q *Queue) Written(c *Chunk, err error) {
	m := c.m
	m.inFlight--
	q.Unhold(1)
	if err != nil && m.failed == nil {
		m.failed = err
	}
	if m.cut && m.inFlight == 0 {
		q.leave(m, m.failed)
	}
}

// Hold counts something that is no chunk as in flight, until Unhold.
// REQUIRES: the lock held.
func (q *Queue) Hold() { q.inFlight++ }

// Unhold ends n of what is in flight.
// REQUIRES: the lock held.
func (q *Queue) Unhold(n int) {
	q.inFlight -= n
	if q.Ended() {
		q.onEnd() // for senders that wait for the last to leave
	}
}

// leave ends a message. Its owner may run code of users, which Unlock calls.
// REQUIRES: the lock held.
func (q *Queue) leave(m *Message, err error) {
	if m.owner == nil {
		m.Left(err)
		return
	}
	m.failed = err
	q.left = append(q.left, m)
}

// Unlock unlocks the queue, and notifies the owners of messages that have left.
func (q *Queue) Unlock() {
	left := q.left
	q.left = nil
	q.Mutex.Unlock()
	for _, m := range left {
		m.Left(m.failed)
	}
}

// Close makes the queue take no more messages. Those in it still leave.
func (q *Queue) Close() { q.end(queueDraining, ErrClosed) }

// Fail ends the queue and all messages in it. A message that is being written from fails when that has stopped.
func (q *Queue) Fail(cause error) { q.end(queueBroken, cause) }

func (q *Queue) end(state queueState, cause error) {
	q.Lock()
	defer q.Unlock()
	if state <= q.state {
		return
	}
	q.state, q.cause = state, cause
	q.onEnd()
	if state != queueBroken {
		return
	}
	for _, m := range q.heap.clear() {
		m.cut = true
		m.failed = cause
		if m.inFlight == 0 {
			q.leave(m, cause)
		}
	}
	q.count.Store(0)
}

// Drained reports whether all messages were sent, or have failed.
func (q *Queue) Drained() bool {
	q.Lock()
	defer q.Unlock()
	return q.Empty() && q.Idle()
}
