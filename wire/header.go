package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"starling/coflow"
)

const (
	headerSize = 64
	linkSize   = 32
	// frameHead is what precedes a chunk on a socket.
	frameHead = headerSize + linkSize
	version   = 2
	// chunkSize is what a large message is cut into: small enough that an urgent
	// message waits less than a millisecond behind one on a gigabit link.
	chunkSize = 64 << 10
	// maxChunk is what it is cut into where links are so fast that this takes no longer.
	maxChunk = 4 * chunkSize
	// maxMessage bounds the length of a message, maxBody that of a request or response.
	maxMessage = 1 << 36
	maxBody    = 1 << 30
	// maxCause bounds the text of a failure, and of other frames that are no messages.
	maxCause = 4 << 10
)

// ErrFrame is the error of bytes that are not a valid frame.
var ErrFrame = errors.New("not a valid frame")

// frameType says what a frame is.
type frameType uint8

const (
	frameMessage  frameType = iota
	frameGoodbye            // nothing follows: the peer closes in good order
	frameFailure            // the run has failed: step is the rank that did, the chunk says why
	frameAlive              // a sign of life, or an acknowledgement where there is nothing to send
	frameTaken              // in shared memory only: the message of this number was read
	frameRequest            // a call: step is its number
	frameResponse           // the answer to the call of that number
	frameRefusal            // instead of an answer: the chunk says why there is none
	frameCancel             // the answer to the call of that number is not waited for any more
	frameWant               // the chunk is the name of a service that is to be called
	frameServed             // the answer: service is its number, the chunk its limits and name
	frameTypes
)

// frameOffered is added to the type where the chunk is an address instead of the bytes.
const frameOffered = 0x80

// hasBody says whether frames of a type carry chunks of something large.
func (t frameType) hasBody() bool {
	return t == frameMessage || t == frameRequest || t == frameResponse
}

// header is a frame's, in memory.
type header struct {
	frame    frameType
	offered  bool // in shared memory only: the chunk is the address of the message
	kind     Kind
	from, to int
	key      Key
	service  uint16 // of a request: which; of frameServed: its number
	limit    uint32 // of a request: how long the response may be
	number   uint32 // of the message, between these two ranks
	length   int64  // of the message
	offset   int64  // of the chunk in it
	chunk    int    // bytes that follow
	sum      uint32
}

// put writes h to b, which has headerSize bytes.
func (h *header) put(b []byte) {
	_ = b[headerSize-1]
	le := binary.LittleEndian
	id := &h.key.Coflow
	copy(b, "SWF")
	b[3] = version
	b[4], b[5], b[6], b[7] = byte(h.kind), byte(id.Type), flag(id.Backward), byte(h.frame)|frameOffered*flag(h.offered)
	le.PutUint16(b[8:], uint16(h.from))
	le.PutUint16(b[10:], uint16(h.to))
	le.PutUint32(b[12:], id.Epoch)
	le.PutUint32(b[16:], id.Batch)
	le.PutUint16(b[20:], uint16(id.Layer))
	le.PutUint16(b[22:], h.service)
	le.PutUint32(b[24:], h.key.Step)
	le.PutUint32(b[28:], h.number)
	le.PutUint64(b[32:], uint64(h.length))
	le.PutUint64(b[40:], uint64(h.offset))
	le.PutUint32(b[48:], uint32(h.chunk))
	le.PutUint32(b[52:], h.sum)
	le.PutUint32(b[56:], h.limit)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

// parse reads a header and checks everything that can be checked before the chunk is read.
func (h *header) parse(b []byte) error {
	_ = b[headerSize-1]
	le := binary.LittleEndian
	switch {
	case string(b[:3]) != "SWF":
		return fmt.Errorf("%w: it starts with %q", ErrFrame, b[:3])
	case b[3] != version:
		return fmt.Errorf("%w: version %d, this build speaks %d; run the same build on every host", ErrFrame, b[3],
			version)
	case le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli):
		return fmt.Errorf("%w: the header's checksum is wrong", ErrFrame)
	}
	h.kind, h.frame, h.offered = Kind(b[4]), frameType(b[7]&^frameOffered), b[7]&frameOffered != 0
	h.key.Coflow = coflow.ID{Type: coflow.Type(b[5]), Backward: b[6] != 0, Epoch: le.Uint32(b[12:]),
		Batch: le.Uint32(b[16:]), Layer: int16(le.Uint16(b[20:]))}
	h.from, h.to = int(le.Uint16(b[8:])), int(le.Uint16(b[10:]))
	h.service, h.key.Step, h.number = le.Uint16(b[22:]), le.Uint32(b[24:]), le.Uint32(b[28:])
	h.length, h.offset = int64(le.Uint64(b[32:])), int64(le.Uint64(b[40:]))
	h.chunk, h.sum, h.limit = int(le.Uint32(b[48:])), le.Uint32(b[52:]), le.Uint32(b[56:])
	switch {
	case h.frame >= frameTypes:
		return fmt.Errorf("%w: of type %d", ErrFrame, b[7])
	case h.kind >= kinds || b[5] > byte(coflow.Bulk) || b[6] > 1:
		return fmt.Errorf("%w: kind %d, type %d", ErrFrame, b[4], b[5])
	}
	return h.bounds()
}

// bounds checks the lengths that a header tells.
func (h *header) bounds() error {
	n := int64(h.chunk)
	switch {
	case h.length < 0 || h.length > maxMessage || h.offset < 0 || h.offset > h.length || n > h.length-h.offset ||
		n > maxChunk:
		return fmt.Errorf("%w: chunk of %d at %d of %d bytes", ErrFrame, n, h.offset, h.length)
	case n == 0 && h.length > 0:
		return fmt.Errorf("%w: an empty chunk of %d bytes", ErrFrame, h.length)
	case h.offered && (!h.frame.hasBody() || h.chunk != offerSize || h.offset != 0):
		return fmt.Errorf("%w: an offer of %d bytes at %d", ErrFrame, n, h.offset)
	case (h.frame == frameRequest || h.frame == frameResponse) && h.length > maxBody:
		return fmt.Errorf("%w: a call with %d bytes", ErrFrame, h.length)
	case !h.frame.hasBody() && (h.length != n || n > maxCause):
		return fmt.Errorf("%w: of type %d with %d bytes", ErrFrame, h.frame, h.length)
	}
	return nil
}

// belongs checks who a frame says it is from, and for whom.
func (h *header) belongs(from, to int) error {
	if h.from != from || h.to != to {
		return fmt.Errorf("%w: from rank %d to rank %d, on the connection of ranks %d and %d", ErrFrame, h.from, h.to,
			from, to)
	}
	return nil
}

// failure is what a frame of failure tells, among so many ranks.
func (h *header) failure(text []byte, size int) (*Failure, error) {
	if int64(h.key.Step) >= int64(size) {
		return nil, fmt.Errorf("%w: a failure of rank %d of %d", ErrFrame, h.key.Step, size)
	}
	return &Failure{Rank: int(h.key.Step), Cause: remoteCause(text)}, nil
}

// check reports whether the chunk is what the header says.
func (h *header) check(chunk []byte) error {
	if checksum(chunk) != h.sum {
		return fmt.Errorf("%w: the checksum of a %v chunk from rank %d is wrong: bytes were changed on the way",
			ErrFrame, h.kind, h.from)
	}
	return nil
}

// linkHeader follows the header on a socket. From it a sender sees how long frames take on
// this connection, and what has to be sent again on another when it fails.
type linkHeader struct {
	sequence uint32 // of this frame on this connection
	acked    uint32 // all frames of the other direction up to this one have arrived
	sent     uint64 // nanoseconds on the sender's clock
	echo     uint64 // sent of the last frame that has arrived
}

// put writes l to b, which has linkSize bytes.
func (l *linkHeader) put(b []byte) {
	_ = b[linkSize-1]
	le := binary.LittleEndian
	le.PutUint64(b, l.sent)
	le.PutUint64(b[8:], l.echo)
	le.PutUint32(b[16:], l.sequence)
	le.PutUint32(b[20:], l.acked)
	le.PutUint32(b[24:], 0)
	le.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli))
}

func (l *linkHeader) parse(b []byte) error {
	_ = b[linkSize-1]
	le := binary.LittleEndian
	if le.Uint32(b[28:]) != crc32.Checksum(b[:28], castagnoli) || le.Uint32(b[24:]) != 0 {
		return fmt.Errorf("%w: the checksum of the link's header is wrong", ErrFrame)
	}
	l.sent, l.echo, l.sequence, l.acked = le.Uint64(b), le.Uint64(b[8:]), le.Uint32(b[16:]), le.Uint32(b[20:])
	return nil
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
