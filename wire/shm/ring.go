package shm

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"starling/event"
	"starling/wire"
)

// ring is memory that two processes share: one writes records, the other reads
// them. Each of the two counts its bytes from the beginning of time; the counts
// modulo the size are places. Only the writer moves head, only the reader tail.
//
//	   0  magic "SWM" and version 2 | size of the data u32, a power of two
//	  64  head u64: bytes written
//	 128  tail u64: bytes read
//	 192  asleep u32: the reader wants to be notified when there is something to read
//	 256  starved u32: the writer wants to be notified when there is space
//	 320  withdrawn u32: what the writer has offered is no longer there
//	 384  writer CPU u32: the processor that the writer polls from, plus 1; 0: not known
//	4096  data: records, each a frame header and a chunk, padded to a multiple of 64 bytes
//
// What one process finds there is checked before it is believed, as from a socket.
type ring struct {
	mem                  []byte
	data                 []byte
	head, tail           *atomic.Uint64
	asleep, starved      *atomic.Uint32
	withdrawn, writerCPU *atomic.Uint32
	mine                 uint64 // head of the writer, tail of the reader: not taken from the other
	seen                 uint64 // the tail, when the writer last looked
}

const (
	ringHeader = 4096
	recordHead = wire.HeaderSize
	minRing    = 4 * recordHead
	maxRing    = 1 << 26
)

// newRing lays out a ring in memory that is all zero.
func newRing(mem []byte) *ring {
	copy(mem, "SWM")
	mem[3] = wire.Version
	binary.LittleEndian.PutUint32(mem[4:], uint32(len(mem)-ringHeader))
	return viewRing(mem)
}

// openRing checks memory that another process laid out.
func openRing(mem []byte) (*ring, error) {
	size := len(mem) - ringHeader
	if size < minRing || size > maxRing || size&(size-1) != 0 {
		return nil, fmt.Errorf("%w: shared memory of %s", wire.ErrFrame, event.Tally(len(mem), "byte"))
	}
	if string(mem[:3]) != "SWM" || mem[3] != wire.Version || binary.LittleEndian.Uint32(mem[4:]) != uint32(size) {
		return nil, fmt.Errorf("%w: shared memory starts with %q", wire.ErrFrame, mem[:8])
	}
	return viewRing(mem), nil
}

func viewRing(mem []byte) *ring {
	u64 := func(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&mem[at])) }
	u32 := func(at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&mem[at])) }
	return &ring{mem: mem, data: mem[ringHeader:], head: u64(64), tail: u64(128), asleep: u32(192), starved: u32(256),
		withdrawn: u32(320), writerCPU: u32(384)}
}

// space is the longest chunk that can be pushed now, or less than 0.
func (r *ring) space() int {
	r.seen = r.tail.Load()
	return r.knownSpace()
}

// knownSpace is the space there was when the writer last looked. There is at least as
// much now, and to look would take the line of memory that the reader is writing.
func (r *ring) knownSpace() int { return len(r.data) - int(r.mine-r.seen) - recordHead }

// push writes a record. There must be space.
func (r *ring) push(h *wire.Header, chunk []byte) {
	at := int(r.mine) & (len(r.data) - 1)
	h.Put(r.data[at:])
	at = (at + recordHead) & (len(r.data) - 1)
	n := copy(r.data[at:], chunk)
	copy(r.data, chunk[n:])
	r.mine += recordSize(len(chunk))
	r.head.Store(r.mine)
}

func recordSize(chunk int) uint64 { return recordHead + uint64(chunk+recordHead-1)&^(recordHead-1) }

// empty reports whether there is nothing to read.
func (r *ring) empty() bool { return r.head.Load() == r.mine }

// peek reads the header of the next record, if there is one.
func (r *ring) peek(h *wire.Header) (bool, error) {
	filled := r.head.Load() - r.mine
	if filled == 0 {
		return false, nil
	}
	if filled > uint64(len(r.data)) || filled < recordHead {
		return false, fmt.Errorf("%w: %s in shared memory of %d", wire.ErrFrame, event.Tally(filled, "byte"),
			len(r.data))
	}
	if err := h.Parse(r.data[int(r.mine)&(len(r.data)-1):]); err != nil {
		return false, err
	}
	if recordSize(h.Chunk) > filled {
		return false, fmt.Errorf("%w: a chunk of %s among %d", wire.ErrFrame, event.Tally(h.Chunk, "byte"), filled)
	}
	return true, nil
}

// chunk returns the n bytes of the next record's chunk, in two pieces.
func (r *ring) chunk(n int) (first, rest []byte) {
	at := (int(r.mine) + recordHead) & (len(r.data) - 1)
	first = r.data[at:min(at+n, len(r.data))]
	return first, r.data[:n-len(first)]
}

// pop frees the record of h.
func (r *ring) pop(h *wire.Header) {
	r.mine += recordSize(h.Chunk)
	r.tail.Store(r.mine)
}

// spacious reports, to the reader, whether to notify a starved writer: notifying it
// of every chunk would cost more than the chunk.
func (r *ring) spacious() bool { return 2*int(r.head.Load()-r.mine) <= len(r.data) }
