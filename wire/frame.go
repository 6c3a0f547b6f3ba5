package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"starling/coflow"
)

const (
	headerSize = 56
	version    = 1
	// chunkSize is what a large message is cut into: small enough that an urgent
	// message waits less than a millisecond behind one on a gigabit link.
	chunkSize = 64 << 10
	// maxChunk is what it is cut into where links are so fast that this takes no longer.
	maxChunk = 4 * chunkSize
	// maxMessage bounds what a message may say of its length.
	maxMessage = 1 << 36
	// maxCause bounds the words of a failure.
	maxCause = 4 << 10
)

// ErrFrame is the error of bytes that are not a frame of ours.
var ErrFrame = errors.New("not a valid frame")

// frameType says what a frame is.
type frameType uint8

const (
	frameMessage frameType = iota
	frameGoodbye           // nothing follows: the peer closes in good order
	frameFailure           // the run has failed: step is the rank that did, the chunk says why
	frameAlive             // a sign of life; readers of version 1 pass over it
	frameOffer             // in shared memory only: where a message lies
	frameTaken             // in shared memory only: the message of this number was read there
	frameTypes
)

// header is a frame's, in memory.
type header struct {
	frame    frameType
	kind     Kind
	from, to int
	key      Key
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
	b[4], b[5], b[6], b[7] = byte(h.kind), byte(id.Type), flag(id.Backward), byte(h.frame)
	le.PutUint16(b[8:], uint16(h.from))
	le.PutUint16(b[10:], uint16(h.to))
	le.PutUint32(b[12:], id.Epoch)
	le.PutUint16(b[16:], id.Batch)
	le.PutUint16(b[18:], uint16(id.Layer))
	le.PutUint32(b[20:], h.key.Step)
	le.PutUint64(b[24:], uint64(h.length))
	le.PutUint64(b[32:], uint64(h.offset))
	le.PutUint32(b[40:], uint32(h.chunk))
	le.PutUint32(b[44:], h.sum)
	le.PutUint32(b[48:], h.number)
	le.PutUint32(b[52:], crc32.Checksum(b[:52], castagnoli))
}

// parse reads a header and checks everything that can be checked before the chunk is read.
func (h *header) parse(b []byte) error {
	_ = b[headerSize-1]
	le := binary.LittleEndian
	switch {
	case string(b[:3]) != "SWF":
		return fmt.Errorf("%w: it starts with %q", ErrFrame, b[:3])
	case b[3] != version:
		return fmt.Errorf("%w: version %d, this build speaks %d; run the same build on every host", ErrFrame, b[3], version)
	case le.Uint32(b[52:]) != crc32.Checksum(b[:52], castagnoli):
		return fmt.Errorf("%w: the header's checksum is wrong", ErrFrame)
	}
	h.kind, h.frame = Kind(b[4]), frameType(b[7])
	h.key.Coflow = coflow.ID{Type: coflow.Type(b[5]), Backward: b[6] != 0, Epoch: le.Uint32(b[12:]),
		Batch: le.Uint16(b[16:]), Layer: int16(le.Uint16(b[18:]))}
	h.from, h.to = int(le.Uint16(b[8:])), int(le.Uint16(b[10:]))
	h.key.Step = le.Uint32(b[20:])
	length, offset, chunk := le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint32(b[40:])
	h.length, h.offset, h.chunk, h.sum = int64(length), int64(offset), int(chunk), le.Uint32(b[44:])
	h.number = le.Uint32(b[48:])
	switch {
	case h.frame >= frameTypes:
		return fmt.Errorf("%w: of type %d", ErrFrame, b[7])
	case h.kind >= kinds || b[5] > byte(coflow.Bulk) || b[6] > 1:
		return fmt.Errorf("%w: kind %d, type %d", ErrFrame, b[4], b[5])
	case length > maxMessage || offset > length || uint64(chunk) > length-offset || chunk > maxChunk:
		return fmt.Errorf("%w: chunk of %d at %d of %d bytes", ErrFrame, chunk, offset, length)
	case chunk == 0 && length > 0:
		return fmt.Errorf("%w: an empty chunk of %d bytes", ErrFrame, length)
	case h.frame == frameOffer && (chunk != offerSize || offset != 0):
		return fmt.Errorf("%w: an offer of %d bytes at %d", ErrFrame, chunk, offset)
	case h.frame != frameMessage && h.frame != frameOffer && (length != uint64(chunk) || length > maxCause):
		return fmt.Errorf("%w: of type %d with %d bytes", ErrFrame, b[7], length)
	}
	return nil
}

// belongs checks who a frame says it is from, and for whom.
func (h *header) belongs(from, to int) error {
	if h.from != from || h.to != to {
		return fmt.Errorf("%w: from rank %d to rank %d, on the connection of ranks %d and %d", ErrFrame, h.from, h.to, from, to)
	}
	return nil
}

// failure is what a frame of failure tells, among so many ranks.
func (h *header) failure(text []byte, size int) (*Failure, error) {
	if int64(h.key.Step) >= int64(size) {
		return nil, fmt.Errorf("%w: a failure of rank %d of %d", ErrFrame, h.key.Step, size)
	}
	return &Failure{Rank: int(h.key.Step), Cause: told(text)}, nil
}

// check reports whether the chunk is what the header says.
func (h *header) check(chunk []byte) error {
	if checksum(chunk) != h.sum {
		return fmt.Errorf("%w: the checksum of a %v chunk from rank %d is wrong: bytes were changed on the way", ErrFrame, h.kind, h.from)
	}
	return nil
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
