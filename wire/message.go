package wire

import (
	"cmp"

	"starling/coflow"
)

// Message is one on its way to a peer.
type Message struct {
	head    Header
	payload []byte
	pending *Pending // ends when the message has left
	owner   owner    // is notified; nil: the pending is

	// Guarded by the lock of the queue it is in.
	queued   turn
	next     int64 // the first byte that is in no chunk yet
	inFlight int   // chunks that are being written
	cut      bool  // no more chunks will be taken
	failed   error // set while chunks are in flight: the last of them ends the wait
}

// From and To are the ranks that a message goes between.
func (m *Message) From() int { return m.head.From }

// To is the rank that the message is for.
func (m *Message) To() int { return m.head.To }

// Coflow is the group of transfers that the message belongs to.
func (m *Message) Coflow() coflow.ID { return m.head.Key.Coflow }

// Len is how many bytes the message has.
func (m *Message) Len() int { return len(m.payload) }

// Number tells apart messages between the same two ranks.
func (m *Message) Number() uint32 { return m.head.Number }

// Rest is how many bytes of the message are in no chunk yet.
func (m *Message) Rest() int64 { return m.head.Length - m.next }

// Compare orders messages that were sent at one time, for transports in virtual time: by
// ranks, then by what they are, so that it has no influence which goroutine ran first. Only
// those that are alike in everything are in the order of sending; with coflow.FIFO all are.
func (m *Message) Compare(o *Message, order coflow.Order) int {
	h, x, first := &m.head, &o.head, 0
	if order == coflow.FIFO {
		first = cmp.Compare(h.Number, x.Number)
	}
	a, b := &h.Key.Coflow, &x.Key.Coflow
	return cmp.Or(cmp.Compare(h.From, x.From), cmp.Compare(h.To, x.To), first, cmp.Compare(a.Type, b.Type),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Batch, b.Batch), cmp.Compare(flag(a.Backward), flag(b.Backward)),
		cmp.Compare(a.Layer, b.Layer), cmp.Compare(h.Frame, x.Frame), cmp.Compare(h.Kind, x.Kind),
		cmp.Compare(h.Service, x.Service), cmp.Compare(h.Length, x.Length), cmp.Compare(h.Key.Step, x.Key.Step),
		cmp.Compare(h.Number, x.Number))
}

// Left records that the message has left, so that its payload may change, or why it never will.
func (m *Message) Left(err error) {
	switch {
	case m.owner != nil:
		m.owner.left(err)
	case m.pending != nil:
		m.pending.finish(err)
	}
}

// owner is notified when a message has left.
type owner interface{ left(err error) }

func (m *Message) turn() *turn { return &m.queued }

// Chunk is a part of a message.
type Chunk struct {
	m      *Message
	offset int64
	bytes  []byte
}

// Header says where the bytes belong; the receiver's Inbox takes both.
func (c *Chunk) Header() Header {
	h := c.m.head
	h.Offset, h.Chunk = c.offset, len(c.bytes)
	return h
}

// Message is the one that the chunk is of.
func (c *Chunk) Message() *Message { return c.m }

// Coflow is the group of the message.
func (c *Chunk) Coflow() coflow.ID { return c.m.head.Key.Coflow }

// First reports whether the message begins with it.
func (c *Chunk) First() bool { return c.offset == 0 }

// Bytes is a part of the message's payload.
func (c *Chunk) Bytes() []byte { return c.bytes }
