package dataset

import (
	"encoding/binary"
	"errors"
	"io"
	"unsafe"
)

// inflate unpacks a deflate stream (RFC 1951). Large arrays are one such stream,
// which no second core can help with, so it is made for speed: the next 56 bits are
// always at hand, a table answers for 10 of them at once, and neither input nor
// output is checked for its end inside the loop that does nearly all of the work.
//
//	in    … used | next … end | zeroes     read from the source in large pieces
//	out   32 KiB of history | new bytes     another one when it is full
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
	floor   int // of out: where history begins
	pending int // bytes of a stored block still to be copied
	inBlock bool
	last    bool

	symbols    [1<<symbolBits + 288/2*32]uint64 // a second table is of two codes at least
	distances  [1<<distanceBits + 32/2*128]uint64
	lengths    [288 + 32]uint8
	code, back huffman
}

const (
	history      = 32 << 10
	inflateIn    = 128 << 10
	inflateOut   = history + 256<<10
	inflateSlack = 300 // the longest match, and what its copy writes beyond
	inflatePad   = 64  // zeroes, more than a step takes

	symbolBits   = 10
	symbolMask   = 1<<symbolBits - 1
	distanceBits = 8
)

var errDeflate = errors.New("damaged deflate data")

// turn goes on in another buffer, once out is full.
func (f *inflate) turn(out []byte) {
	if f.out != nil {
		copy(out, f.out[f.filled-history:f.filled])
		f.floor = 0
	} else {
		f.floor = history
	}
	f.out, f.filled = out, history
}

// more unpacks until there is no room for more, or an end.
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
	kept := min(f.next, 8) // what is in bits: a stored block goes back to it
	f.end = copy(f.in, f.in[f.next-kept:max(f.next, f.end)])
	f.next = kept
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
		limit := f.end - inflatePad
		if canPlain && f.filled-f.floor >= history {
			unpackPlain(f, limit, len(f.out)-inflateSlack)
			limit = 0
		}
		if err := f.run(limit); err != nil {
			return err
		}
		if err := f.overrun(); err != nil {
			return err
		}
	}
	return nil
}

// run unpacks at least one step of the block, and on while next is below limit.
//
// It reads and writes without bounds checks, which are a third of its time otherwise.
// A step takes at most 16 bytes of in, behind which are inflatePad zeroes, and writes
// fewer than inflateSlack, of which there is room when it starts; a distance leads
// into the history at most.
func (f *inflate) run(limit int) error {
	in, out := unsafe.Pointer(unsafe.SliceData(f.in)), unsafe.Pointer(unsafe.SliceData(f.out))
	bits, count, next, at := f.bits, f.count, f.next, f.filled
	room := len(f.out) - inflateSlack
	for {
		bits |= load64(in, next) << (count & 63)
		next += int(63-count) >> 3
		count |= 56
		e := f.symbols[bits&symbolMask]
		if e&isSpecial == 0 {
			from := at - number(e, bits)
			if from < f.floor && e&isMatch != 0 {
				return errDeflate
			}
			x := load64(out, from)
			if e&isMatch == 0 {
				x = e >> literalsAt
			}
			store64(out, at, x)
			at += int(e >> bytesAt & 15)
			bits, count = bits>>(e&63), count-uint(e&63)
			goto stepped
		}
		if e&isTable != 0 {
			e = f.symbols[number(e, bits)]
			bits, count = bits>>symbolBits, count-symbolBits
			if e&isSpecial == 0 {
				store64(out, at, e>>literalsAt)
				at++
				bits, count = bits>>(e&63), count-uint(e&63)
				goto stepped
			}
		}
		if e&isMatch == 0 {
			f.bits, f.count, f.next, f.filled, f.inBlock = bits>>(e&63), count-uint(e&63), next, at, false
			if e&63 == 0 {
				return errDeflate
			}
			return nil
		}
		{
			end := at + number(e, bits)
			bits, count = bits>>(e&63), count-uint(e&63)
			d := f.distances[bits&(1<<distanceBits-1)]
			if d&isTable != 0 {
				d = f.distances[number(d, bits)]
				bits, count = bits>>distanceBits, count-distanceBits
			}
			if d&isSpecial != 0 {
				return errDeflate
			}
			from := at - number(d, bits)
			bits, count = bits>>(d&63), count-uint(d&63)
			if from < f.floor {
				return errDeflate
			}
			if at-from >= 8 {
				for ; at < end; at += 8 {
					store64(out, at, load64(out, from))
					from += 8
				}
			} else {
				repeat(f.out[from:end], at-from)
			}
			at = end
		}
	stepped:
		if next >= limit || at >= room {
			break
		}
	}
	f.bits, f.count, f.next, f.filled = bits, count, next, at
	return nil
}

// repeat fills b with its first bytes, over and over.
func repeat(b []byte, first int) {
	for i := first; i < len(b); i++ {
		b[i] = b[i-first]
	}
}

func load64(p unsafe.Pointer, at int) uint64 { return *(*uint64)(unsafe.Add(p, at)) }

func store64(p unsafe.Pointer, at int, x uint64) { *(*uint64)(unsafe.Add(p, at)) = x }
