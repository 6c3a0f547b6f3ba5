package paths

import (
	"encoding/binary"
	"fmt"
)

// A connection of a path carries frames of this layout, little-endian, in both directions:
//
//	0   magic "SP" | version 3 | type u8
//	4   bytes that follow u32
//	8   offset in the stream u64: of the data; of the end, in a frame of type end
//	16  segments that have arrived on this connection u32
//	20  zero u32
//	24  limit u64: how much memory the segments of the stream may have taken, so far
//	32  data
const (
	frameSize    = 32
	frameVersion = 3 // 1 had segments of 64 KiB at most, 2 a limit in bytes of the stream
)

const (
	frameData  = iota
	frameAck   // nothing but the acknowledgement
	framePing  // asks for one
	frameEnd   // the stream ends at offset
	frameTypes // how many there are
)

// frameHead is a frame's.
type frameHead struct {
	kind          byte
	length, acked uint32
	offset, limit uint64
}

func (h *frameHead) put(b []byte) {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = 'S', 'P', frameVersion, h.kind
	le.PutUint32(b[4:], h.length)
	le.PutUint64(b[8:], h.offset)
	le.PutUint32(b[16:], h.acked)
	le.PutUint32(b[20:], 0)
	le.PutUint64(b[24:], h.limit)
}

// parse reads a head and bounds its length.
func (h *frameHead) parse(b []byte) error {
	le := binary.LittleEndian
	if b[0] != 'S' || b[1] != 'P' || b[2] != frameVersion || b[3] >= frameTypes {
		return fmt.Errorf("%w: it starts with %x", errStream, b[:4])
	}
	h.kind, h.length, h.offset = b[3], le.Uint32(b[4:]), le.Uint64(b[8:])
	h.acked, h.limit = le.Uint32(b[16:]), le.Uint64(b[24:])
	if h.length > segmentSize || h.kind != frameData && h.length > 0 || h.kind == frameData && h.length == 0 {
		return fmt.Errorf("%w: %d bytes in a frame of type %d", errStream, h.length, h.kind)
	}
	return nil
}
