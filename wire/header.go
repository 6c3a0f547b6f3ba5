package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"starling/coflow"
	"starling/event"
	"starling/wire/calls"
)

const (
	HeaderSize = 64
	Version    = 2
	// ChunkSize is what a large message is cut into: small enough that an urgent
	// message waits less than a millisecond behind one on a gigabit link.
	ChunkSize = 64 << 10
	// MaxChunk is what it is cut into where links are so fast that this takes no longer.
	MaxChunk = 4 * ChunkSize
	// maxMessage bounds the length of a message.
	maxMessage = 1 << 36
	// MaxCause bounds the text of a failure, and of other frames that are not messages.
	MaxCause = 4 << 10
	// OfferSize is the length of an offer's chunk: an address.
	OfferSize = 8
)

// ErrFrame is the error of bytes that are not a valid frame.
var ErrFrame = errors.New("not a valid frame")

// FrameType is what a frame is.
type FrameType uint8

const (
	FrameMessage  FrameType = iota
	FrameGoodbye            // nothing follows: the peer closes in good order
	FrameFailure            // the run has failed: step is the rank that did, the chunk says why
	FrameAlive              // a sign of life, or an acknowledgement where there is nothing to send
	FrameTaken              // in shared memory only: the message of this number was read
	FrameRequest            // a call: step is its number
	FrameResponse           // the answer to the call of that number
	FrameRefusal            // instead of an answer: the chunk says why there is none
	FrameCancel             // the answer to the call of that number is not waited for any more
	FrameWant               // the chunk is the name of a service that is to be called
	FrameServed             // the answer: service is its number, the chunk its limits and name
	frameTypes
)

// frameOffered is added to the type where the chunk is an address instead of the bytes.
const frameOffered = 0x80

// HasBody reports whether frames of a type carry chunks of something large.
func (t FrameType) HasBody() bool {
	return t == FrameMessage || t == FrameRequest || t == FrameResponse
}

// Header is a frame's header, in memory.
type Header struct {
	Frame    FrameType
	Offered  bool // in shared memory only: the chunk is the address of the message
	Kind     Kind
	From, To int
	Key      Key
	Service  uint16 // of a request: which; of frameServed: its number
	Limit    uint32 // of a request: how long the response may be
	Number   uint32 // of the message, between these two ranks
	Length   int64  // of the message
	Offset   int64  // of the chunk in it
	Chunk    int    // bytes that follow
	Sum      uint32
}

// Put writes h to b, which has HeaderSize bytes.
func (h *Header) Put(b []byte) {
	_ = b[HeaderSize-1]
	le := binary.LittleEndian
	id := &h.Key.Coflow
	copy(b, "SWF")
	b[3] = Version
	b[4], b[5], b[6], b[7] = byte(h.Kind), byte(id.Type), flag(id.Backward), byte(h.Frame)|frameOffered*flag(h.Offered)
	le.PutUint16(b[8:], uint16(h.From))
	le.PutUint16(b[10:], uint16(h.To))
	le.PutUint32(b[12:], id.Epoch)
	le.PutUint32(b[16:], id.Batch)
	le.PutUint16(b[20:], uint16(id.Layer))
	le.PutUint16(b[22:], h.Service)
	le.PutUint32(b[24:], h.Key.Step)
	le.PutUint32(b[28:], h.Number)
	le.PutUint64(b[32:], uint64(h.Length))
	le.PutUint64(b[40:], uint64(h.Offset))
	le.PutUint32(b[48:], uint32(h.Chunk))
	le.PutUint32(b[52:], h.Sum)
	le.PutUint32(b[56:], h.Limit)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

// Parse reads a header and checks everything that can be checked before the chunk is read.
func (h *Header) Parse(b []byte) error {
	_ = b[HeaderSize-1]
	le := binary.LittleEndian
	switch {
	case string(b[:3]) != "SWF":
		return fmt.Errorf("%w: it starts with %q", ErrFrame, b[:3])
	case b[3] != Version:
		return fmt.Errorf("%w: version %d, this build speaks %d; run the same build on every host", ErrFrame, b[3],
			Version)
	case le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli):
		return fmt.Errorf("%w: the header's checksum is wrong", ErrFrame)
	}
	h.Kind, h.Frame, h.Offered = Kind(b[4]), FrameType(b[7]&^frameOffered), b[7]&frameOffered != 0
	h.Key.Coflow = coflow.ID{Type: coflow.Type(b[5]), Backward: b[6] != 0, Epoch: le.Uint32(b[12:]),
		Batch: le.Uint32(b[16:]), Layer: int16(le.Uint16(b[20:]))}
	h.From, h.To = int(le.Uint16(b[8:])), int(le.Uint16(b[10:]))
	h.Service, h.Key.Step, h.Number = le.Uint16(b[22:]), le.Uint32(b[24:]), le.Uint32(b[28:])
	h.Length, h.Offset = int64(le.Uint64(b[32:])), int64(le.Uint64(b[40:]))
	h.Chunk, h.Sum, h.Limit = int(le.Uint32(b[48:])), le.Uint32(b[52:]), le.Uint32(b[56:])
	switch {
	case h.Frame >= frameTypes:
		return fmt.Errorf("%w: of type %d", ErrFrame, b[7])
	case h.Kind >= kinds || b[5] > byte(coflow.Bulk) || b[6] > 1:
		return fmt.Errorf("%w: kind %d, type %d", ErrFrame, b[4], b[5])
	}
	return h.bounds()
}

// bounds checks the lengths in a header.
func (h *Header) bounds() error {
	n := int64(h.Chunk)
	switch {
	case h.Length < 0 || h.Length > maxMessage || h.Offset < 0 || h.Offset > h.Length || n > h.Length-h.Offset ||
		n > MaxChunk:
		return fmt.Errorf("%w: chunk of %d at %d of %s", ErrFrame, n, h.Offset, event.Tally(h.Length, "byte"))
	case n == 0 && h.Length > 0:
		return fmt.Errorf("%w: an empty chunk of %s", ErrFrame, event.Tally(h.Length, "byte"))
	case h.Offered && (!h.Frame.HasBody() || h.Chunk != OfferSize || h.Offset != 0):
		return fmt.Errorf("%w: an offer of %s at %d", ErrFrame, event.Tally(n, "byte"), h.Offset)
	case (h.Frame == FrameRequest || h.Frame == FrameResponse) && h.Length > calls.MaxBody:
		return fmt.Errorf("%w: a call with %s", ErrFrame, event.Tally(h.Length, "byte"))
	case !h.Frame.HasBody() && (h.Length != n || n > MaxCause):
		return fmt.Errorf("%w: of type %d with %s", ErrFrame, h.Frame, event.Tally(h.Length, "byte"))
	}
	return nil
}

// Belongs checks the sender and the receiver that a frame names.
func (h *Header) Belongs(from, to int) error {
	if h.From != from || h.To != to {
		return fmt.Errorf("%w: from rank %d to rank %d, on the connection of ranks %d and %d", ErrFrame, h.From, h.To,
			from, to)
	}
	return nil
}

// Check reports whether the chunk has the checksum in the header.
func (h *Header) Check(chunk []byte) error {
	if Checksum(chunk) != h.Sum {
		return fmt.Errorf("%w: the checksum of a %v chunk from rank %d is wrong: bytes were changed on the way",
			ErrFrame, h.Kind, h.From)
	}
	return nil
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
