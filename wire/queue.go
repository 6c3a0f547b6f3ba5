package wire

import (
	"sync"
	"sync/atomic"

	"starling/coflow"
)

// ending is how a queue ends.
type ending uint8

const (
	open     ending = iota
	draining        // what is queued still leaves
	broken          // nothing leaves any more
)

// sendQueue holds the messages to one peer, the most urgent coflow first. It is
// asked again for every chunk, so an urgent message overtakes a large one that is
// under way.
type sendQueue struct {
	sync.Mutex
	wake   sync.Cond
	others sync.Cond // for connections after the first, while the link is slow
	slow   bool
	// class are for connections that carry one class of coflows each; nil: all carry all.
	class []sync.Cond
	heap  urgency[*Message]
	state ending
	cause error // of broken, and of messages that come too late
	// inFlight is how many chunks are being written; count how many messages wait,
	// to be read without the lock.
	inFlight int
	count    atomic.Int32
	// gone are messages that have left, and whose owners are to be told.
	gone []*Message
	// quiet: the goroutine that puts a message also sends it, so none is woken.
	quiet bool
}

func newSendQueue(order coflow.Order) *sendQueue {
	q := &sendQueue{}
	q.heap.order = order
	q.wake.L, q.others.L = &q.Mutex, &q.Mutex
	return q
}

// divide makes a message leave only by the connection of its class.
func (q *sendQueue) divide() {
	q.class = make([]sync.Cond, len(coflow.Classes()))
	for i := range q.class {
		q.class[i].L = &q.Mutex
	}
}

// wakeAll tells the senders that the queue ends, or that the link is slow or no longer so.
// REQUIRES: the lock held.
func (q *sendQueue) wakeAll() {
	q.wake.Broadcast()
	q.others.Broadcast()
	for i := range q.class {
		q.class[i].Broadcast()
	}
}

// signal wakes a sender that may take the next message. Of classes that is one: those of
// other classes wait until nothing more urgent is queued.
// REQUIRES: the lock held, and the queue not empty.
func (q *sendQueue) signal() {
	if q.class == nil {
		q.wake.Signal()
		return
	}
	q.class[coflow.Class(q.first().key.Coflow)].Signal()
}

// put adds a message; it fails at once if the queue has ended.
func (q *sendQueue) put(m *Message) {
	q.Lock()
	defer q.Unlock()
	if q.state != open {
		q.leave(m, q.cause)
		return
	}
	q.heap.put(m, m.key.Coflow)
	q.count.Add(1)
	if !q.quiet {
		q.signal()
	}
}

// waiting reports whether any message has chunks to be taken.
func (q *sendQueue) waiting() bool { return q.count.Load() > 0 }

// empty reports whether no message has chunks to be taken, first is the next that has.
// REQUIRES: the lock held.
func (q *sendQueue) empty() bool { return q.heap.empty() }

func (q *sendQueue) first() *Message { return q.heap.first() }

// take cuts the next chunk, of at most max bytes.
// REQUIRES: the lock held, and the queue not empty.
func (q *sendQueue) take(max int) Chunk {
	m := q.first()
	n := min(int64(max), m.length-m.next)
	c := Chunk{m: m, offset: m.next, bytes: m.payload[m.next : m.next+n]}
	m.next += n
	m.inFlight++
	q.inFlight++
	if m.next == m.length {
		m.cut = true
		q.heap.take()
		q.count.Add(-1)
	}
	return c
}

// written says that a chunk has left, or failed to.
// REQUIRES: the lock held.
func (q *sendQueue) written(c *Chunk, err error) {
	m := c.m
	m.inFlight--
	q.inFlight--
	if q.state != open {
		q.wakeAll() // those that wait for the last to leave
	}
	if err != nil && m.failed == nil {
		m.failed = err
	}
	if m.cut && m.inFlight == 0 {
		q.leave(m, m.failed)
	}
}

// leave says that a message has left. Its owner may run code of users, which comes
// with Unlock.
// REQUIRES: the lock held.
func (q *sendQueue) leave(m *Message, err error) {
	if m.owner == nil {
		m.Left(err)
		return
	}
	m.failed = err
	q.gone = append(q.gone, m)
}

// Unlock unlocks the queue, and tells the owners of messages that have left.
func (q *sendQueue) Unlock() {
	gone := q.gone
	q.gone = nil
	q.Mutex.Unlock()
	for _, m := range gone {
		m.Left(m.failed)
	}
}

// end stops the queue: draining lets what is queued leave, broken does not. Those
// whose buffers are being written from end when that has stopped.
func (q *sendQueue) end(state ending, cause error) {
	q.Lock()
	defer q.Unlock()
	if state <= q.state {
		return
	}
	q.state, q.cause = state, cause
	q.wakeAll()
	if state != broken {
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

// Queue holds the messages to one peer, for transports outside this package: the most
// urgent first, cut into chunks, so that an urgent message overtakes a large one.
type Queue struct{ q *sendQueue }

// NewQueue is an empty queue.
func NewQueue(opt Options) *Queue { return &Queue{newSendQueue(opt.withDefaults().Order)} }

// Put adds a message. When the queue has ended the message fails at once.
func (q *Queue) Put(m *Message) { q.q.put(m) }

// Take cuts a chunk of at most max bytes off the most urgent message, if there is one.
func (q *Queue) Take(max int) (Chunk, bool) {
	q.q.Lock()
	defer q.q.Unlock()
	if q.q.empty() {
		return Chunk{}, false
	}
	return q.q.take(max), true
}

// Sent says that the bytes of a chunk were sent, and may change, or why they were not.
func (q *Queue) Sent(c Chunk, err error) {
	q.q.Lock()
	defer q.q.Unlock()
	q.q.written(&c, err)
}

// Close makes the queue take no more messages. Those in it can still be taken.
func (q *Queue) Close() { q.q.end(draining, ErrClosed) }

// Fail ends the queue and all messages in it.
func (q *Queue) Fail(cause error) { q.q.end(broken, cause) }

// Drained reports whether all messages were sent, or have failed.
func (q *Queue) Drained() bool {
	q.q.Lock()
	defer q.q.Unlock()
	return q.q.empty() && q.q.inFlight == 0
}
