package innet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// Sizes of packets and of what they carry.
const (
	HeaderBytes = 40
	UnitBytes   = 128 // an aggregator of the paper
	UnitLanes   = UnitBytes / 4
	MaxUnits    = 11 // what an Ethernet frame of 1,500 bytes carries beside all headers
	MaxBytes    = HeaderBytes + MaxUnits*UnitBytes
)

// Flags of a packet.
const (
	ACK      uint8 = 1 << iota // the body is a bitmap of slots whose sums have arrived
	Fetch                      // the body lists (row, slot): send these rows, marked Resend
	ECN                        // a queue on the way was long
	Resend                     // a row that bypasses aggregators
	Sum                        // a finished or partial sum
	Done                       // to a switch: this host has all sums; from it: all have
	Overflow                   // a sum that does not fit its lanes; the body is empty
	flags
)

// Header is what all packets begin with: see the package comment.
type Header struct {
	Source, Destination uint32
	Block, Count        uint16
	Flags, Units        uint8
	From, To            uint16
	Value, Last         uint16
	Round, Sequence     uint32
	Job                 uint64
}

// Packet is one packet. A function that receives one may use Body until it returns.
type Packet struct {
	Header
	Body []int32
}

// Has reports whether a flag is set.
func (h *Header) Has(flag uint8) bool { return h.Flags&flag != 0 }

// Bytes is the size of the packet.
func (p *Packet) Bytes() int { return HeaderBytes + 4*len(p.Body) }

// Append writes a packet.
func (p *Packet) Append(b []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, HeaderBytes)...)
	h, le := b[at:], binary.LittleEndian
	le.PutUint32(h[0:], p.Source)
	le.PutUint32(h[4:], p.Destination)
	le.PutUint16(h[8:], p.Block)
	le.PutUint16(h[10:], p.Count)
	h[12], h[13] = p.Flags, p.Units
	le.PutUint16(h[14:], p.From)
	le.PutUint16(h[16:], p.To)
	le.PutUint16(h[18:], p.Value)
	le.PutUint16(h[20:], p.Last)
	le.PutUint32(h[24:], p.Round)
	le.PutUint32(h[28:], p.Sequence)
	le.PutUint64(h[32:], p.Job)
	if littleEndian {
		return append(b, bytesOf(p.Body)...)
	}
	for _, x := range p.Body {
		b = le.AppendUint32(b, uint32(x))
	}
	return b
}

// errPacket: what arrived is no packet.
var errPacket = errors.New("not a packet")

// Parse reads a packet. Its body may be a part of b, which begins at a multiple of 4 bytes.
func (p *Packet) Parse(b []byte) error {
	if len(b) < HeaderBytes || len(b) > MaxBytes || len(b)%4 != 0 {
		return fmt.Errorf("%w: %d bytes", errPacket, len(b))
	}
	le := binary.LittleEndian
	p.Header = Header{Source: le.Uint32(b), Destination: le.Uint32(b[4:]), Block: le.Uint16(b[8:]),
		Count: le.Uint16(b[10:]), Flags: b[12], Units: b[13], From: le.Uint16(b[14:]), To: le.Uint16(b[16:]), Value: le.Uint16(b[18:]),
		Last: le.Uint16(b[20:]), Round: le.Uint32(b[24:]), Sequence: le.Uint32(b[28:]), Job: le.Uint64(b[32:])}
	if p.Flags >= flags || b[22] != 0 || b[23] != 0 {
		return fmt.Errorf("%w: flags %#x", errPacket, p.Flags)
	}
	p.Body = wordsOf(b[HeaderBytes:])
	return nil
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf are the bytes of words in memory.
func bytesOf(words []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}

// wordsOf are the words of a body: b itself where that is aligned and of this byte order.
func wordsOf(b []byte) []int32 {
	if len(b) == 0 {
		return nil
	}
	at := unsafe.Pointer(unsafe.SliceData(b))
	if littleEndian && uintptr(at)%4 == 0 {
		return unsafe.Slice((*int32)(at), len(b)/4)
	}
	words := make([]int32, len(b)/4)
	for i := range words {
		words[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return words
}
