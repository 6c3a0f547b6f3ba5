package wire

import (
	"cmp"

	"starling/coflow"
)

// Message is one on its way to a peer.
type Message struct {
	header
	payload []byte
	pending *Pending // ends when the message has left
	owner   owner    // is told so; nil: the pending is

	// Guarded by the lock of the queue it is in.
	queued   turn
	next     int64 // the first byte that is in no chunk yet
	inFlight int   // chunks that are being written
	cut      bool  // no more chunks will be taken
	failed   error // set while chunks are in flight: the last of them ends the wait
}

// From and To are the ranks that a message goes between.
func (m *Message) From() int { return m.from }

// To is the rank that the message is for.
func (m *Message) To() int { return m.to }

// Coflow is the group of transfers that the message belongs to.
func (m *Message) Coflow() coflow.ID { return m.key.Coflow }

// Len is how many bytes the message has.
func (m *Message) Len() int { return len(m.payload) }

// Compare orders messages that were sent at one time, for transports in virtual time: by
// ranks, then by what they are, so that it has no influence which goroutine ran first. Only
// those that are alike in everything are in the order of sending; with coflow.FIFO all are.
func (m *Message) Compare(o *Message, order coflow.Order) int {
	first := 0
	if order == coflow.FIFO {
		first = cmp.Compare(m.number, o.number)
	}
	a, b := &m.key.Coflow, &o.key.Coflow
	return cmp.Or(cmp.Compare(m.from, o.from), cmp.Compare(m.to, o.to), first, cmp.Compare(a.Type, b.Type),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Batch, b.Batch), cmp.Compare(flag(a.Backward), flag(b.Backward)),
		cmp.Compare(a.Layer, b.Layer), cmp.Compare(m.frame, o.frame), cmp.Compare(m.kind, o.kind),
		cmp.Compare(m.service, o.service), cmp.Compare(m.length, o.length), cmp.Compare(m.key.Step, o.key.Step),
		cmp.Compare(m.number, o.number))
}

// Left says that the message has left, so that its payload may change, or why it never will.
func (m *Message) Left(err error) {
	switch {
	case m.owner != nil:
		m.owner.left(err)
	case m.pending != nil:
		m.pending.finish(err)
	}
}

// owner is told when a message has left.
type owner interface{ left(err error) }

func (m *Message) turn() *turn { return &m.queued }

// Chunk is a part of a message.
type Chunk struct {
	m      *Message
	offset int64
	bytes  []byte
}

// Header says where the bytes belong; the receiver's Inbox takes both.
func (c *Chunk) Header() Header { return Header{c.header()} }

// Coflow is the group of the message.
func (c *Chunk) Coflow() coflow.ID { return c.m.key.Coflow }

// First reports whether the message begins with it.
func (c *Chunk) First() bool { return c.offset == 0 }

// Bytes are those of the message's payload.
func (c *Chunk) Bytes() []byte { return c.bytes }

// header is the chunk's, without its checksum.
func (c *Chunk) header() header {
	h := c.m.header
	h.offset, h.chunk = c.offset, len(c.bytes)
	return h
}

// Header is that of a chunk on its way.
type Header struct{ header }

// HeaderSize is how many bytes Put writes.
const HeaderSize = headerSize

// Put writes the header to b, in the layout of the package comment.
func (h *Header) Put(b []byte) { h.put(b) }

// Parse reads what Put has written. It checks every length against its bound.
func (h *Header) Parse(b []byte) error { return h.parse(b) }

// From is the rank that the chunk comes from.
func (h *Header) From() int { return h.from }
