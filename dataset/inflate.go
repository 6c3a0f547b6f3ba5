package dataset

import (
	"encoding/binary"
	"errors"
	"io"
)

// inflate unpacks a deflate stream (RFC 1951). Large arrays are one such stream,
// which no second core can help with, so it is made for speed: the next 56 bits are
// always at hand, a table answers for 11 of them at once, and neither input nor
// output is checked for its end inside the loop that does nearly all of the work.
//
//	in    … used | next … end | zeroes     read from the source in large pieces
//	out   32 KiB of history | new bytes     slides when it is full
type inflate struct {
	source io.Reader
	in     []byte
	next   int // of in: the first byte not yet in bits
	end    int // of in: what the source gave
	eof    bool

	bits  uint64 // the lowest count are valid; those above agree with what is next
	count uint

	out     []byte
	filled  int // of out
	taken   int // of out: what Read has handed on
	pending int // bytes of a stored block still to be copied
	inBlock bool
	last    bool
	err     error

	symbols   [1<<symbolBits + 286/2*16]uint32 // a second table is of two codes at least
	distances [1<<distanceBits + 30/2*128]uint32
	code      huffman
}

const (
	history      = 32 << 10
	inflateIn    = 128 << 10
	inflateOut   = history + 256<<10
	inflateSlack = 300 // the longest match, and what its copy writes beyond
	inflatePad   = 64  // zeroes, more than a step takes

	symbolBits   = 11
	distanceBits = 8
)

var errDeflate = errors.New("damaged deflate data")

func newInflate(r io.Reader) io.ReadCloser {
	return &inflate{source: r, in: make([]byte, inflateIn+inflatePad), out: make([]byte, inflateOut)}
}

// Close ends the reader.
func (f *inflate) Close() error { return nil }

// Read implements io.Reader.
func (f *inflate) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for f.taken == f.filled {
		if f.err != nil {
			return 0, f.err
		}
		f.slide()
		f.err = f.more()
	}
	n := copy(p, f.out[f.taken:f.filled])
	f.taken += n
	return n, nil
}

// slide makes room, once everything was taken.
func (f *inflate) slide() {
	if f.filled > len(f.out)/2 {
		copy(f.out, f.out[f.filled-history:f.filled])
		f.filled, f.taken = history, history
	}
}

// more unpacks until there is something to take and no room for more, or an end.
func (f *inflate) more() error {
	for f.filled < len(f.out)-inflateSlack {
		var err error
		switch {
		case f.pending > 0:
			err = f.copyStored()
		case f.inBlock:
			err = f.block()
		case f.last:
			return io.EOF
		default:
			err = f.header()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill reads on, so that either much input is there or all of it.
func (f *inflate) fill() error {
	if f.eof || f.end-f.next > inflateSlack {
		return nil
	}
	f.end = copy(f.in, f.in[f.next:max(f.next, f.end)])
	f.next = 0
	n, err := io.ReadFull(f.source, f.in[f.end:inflateIn])
	f.end += n
	switch err {
	case nil:
	case io.EOF, io.ErrUnexpectedEOF:
		f.eof = true
		clear(f.in[f.end:])
	default:
		return err
	}
	return nil
}

// refill makes at least 56 bits valid. REQUIRES: 8 bytes from next on, which the
// zeroes behind the end provide.
func (f *inflate) refill() {
	f.bits |= binary.LittleEndian.Uint64(f.in[f.next:]) << (f.count & 63)
	f.next += int(63-f.count) >> 3
	f.count |= 56
}

// take gives n bits, at most 16.
func (f *inflate) take(n uint) (uint32, error) {
	if f.count < n {
		if err := f.fill(); err != nil {
			return 0, err
		}
		f.refill()
	}
	x := uint32(f.bits) & (1<<n - 1)
	f.bits >>= n
	f.count -= n
	return x, f.overrun()
}

// overrun tells of input that ended too early: bits were used that are not there.
func (f *inflate) overrun() error {
	if f.eof && f.next-int(f.count>>3) > f.end {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// header starts the next block.
func (f *inflate) header() error {
	if err := f.fill(); err != nil {
		return err
	}
	x, err := f.take(3)
	if err != nil {
		return err
	}
	f.last = x&1 != 0
	switch x >> 1 {
	case 0:
		return f.stored()
	case 1:
		f.inBlock = true
		return f.fixed()
	case 2:
		f.inBlock = true
		return f.dynamic()
	}
	return errDeflate
}

// stored starts a block of bytes as they are.
func (f *inflate) stored() error {
	if _, err := f.take(f.count & 7); err != nil {
		return err
	}
	size, err := f.take(16)
	if err != nil {
		return err
	}
	not, err := f.take(16)
	if err != nil {
		return err
	}
	if not != ^size&0xffff {
		return errDeflate
	}
	f.pending = int(size)
	f.next -= int(f.count >> 3)
	f.bits, f.count = 0, 0
	return nil
}

func (f *inflate) copyStored() error {
	if err := f.fill(); err != nil {
		return err
	}
	n := min(f.pending, f.end-f.next, len(f.out)-f.filled)
	if n <= 0 {
		return io.ErrUnexpectedEOF
	}
	copy(f.out[f.filled:], f.in[f.next:f.next+n])
	f.filled, f.next, f.pending = f.filled+n, f.next+n, f.pending-n
	return nil
}

// block unpacks until the block ends, the output is full, or input is short.
func (f *inflate) block() error {
	for f.inBlock && f.filled < len(f.out)-inflateSlack {
		if err := f.fill(); err != nil {
			return err
		}
		// Below this every step finds its input; beyond it, at the end of all, it
		// is one step at a time.
		if err := f.run(f.end - inflatePad); err != nil {
			return err
		}
		if err := f.overrun(); err != nil {
			return err
		}
	}
	return nil
}

// run unpacks at least one step of the block, and on while next is below limit.
func (f *inflate) run(limit int) error {
	in, out := f.in, f.out
	bits, count, next, at := f.bits, f.count, f.next, f.filled
	room := len(out) - inflateSlack
	var err error
	for {
		bits |= binary.LittleEndian.Uint64(in[next:]) << (count & 63)
		next += int(63-count) >> 3
		count |= 56
		e := f.symbols[bits&(1<<symbolBits-1)]
		if e&isLiteral != 0 { // two more fit into the bits at hand
			bits, count = bits>>(e&63), count-uint(e&63)
			out[at] = byte(e >> 16)
			at++
			e = f.symbols[bits&(1<<symbolBits-1)]
			if e&isLiteral != 0 {
				bits, count = bits>>(e&63), count-uint(e&63)
				out[at] = byte(e >> 16)
				at++
				e = f.symbols[bits&(1<<symbolBits-1)]
				if e&isLiteral != 0 {
					bits, count = bits>>(e&63), count-uint(e&63)
					out[at] = byte(e >> 16)
					at++
					goto stepped
				}
			}
			bits |= binary.LittleEndian.Uint64(in[next:]) << (count & 63)
			next += int(63-count) >> 3
			count |= 56
		}
		if e&isSpecial != 0 {
			if e&isTable != 0 {
				bits, count = bits>>symbolBits, count-symbolBits
				e = f.symbols[int(e>>16&0x3fff)+int(bits&(1<<(e>>8&15)-1))]
				if e&isLiteral != 0 {
					bits, count = bits>>(e&63), count-uint(e&63)
					out[at] = byte(e >> 16)
					at++
					goto stepped
				}
			}
			if e&isSpecial != 0 {
				if e&isEnd == 0 {
					err = errDeflate
					break
				}
				bits, count = bits>>(e&63), count-uint(e&63)
				f.inBlock = false
				break
			}
		}
		{
			length := int(e>>16&0x1ff) + int(bits&(1<<(e&63)-1)>>(e>>8&15))
			bits, count = bits>>(e&63), count-uint(e&63)
			d := f.distances[bits&(1<<distanceBits-1)]
			if d&isTable != 0 {
				bits, count = bits>>distanceBits, count-distanceBits
				d = f.distances[int(d>>16&0x3fff)+int(bits&(1<<(d>>8&15)-1))]
			}
			if d&isSpecial != 0 {
				err = errDeflate
				break
			}
			back := int(d>>16) + int(bits&(1<<(d&63)-1)>>(d>>8&15))
			bits, count = bits>>(d&63), count-uint(d&63)
			if back > at {
				err = errDeflate
				break
			}
			again(out, at, back, length)
			at += length
		}
	stepped:
		if next >= limit || at >= room {
			break
		}
	}
	f.bits, f.count, f.next, f.filled = bits, count, next, at
	return err
}

// again repeats what was written back bytes ago; it may write up to seven bytes
// beyond the end.
func again(out []byte, at, back, length int) {
	if back >= 8 {
		to, from := out[at:at+length+8], out[at-back:]
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
		}
		return
	}
	for i := at; i < at+length; i++ {
		out[i] = out[i-back]
	}
}
