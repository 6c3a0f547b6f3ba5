package dataset

import "math/bits"

// Tables of Huffman codes, as inflate looks them up. The lowest bits of the stream
// are the place in the first table. An entry there, from its lowest bit, is
//
//	8   how many bits are used by it
//	8   after how many of them its codes end
//	8   how many bits above the codes add to the number below
//	4   isTable and isMatch
//	4   how many bytes it stands for
//	16  literals, two or one
//	15  the number: of a short match, and in the table of distances, the distance
//	    back; of a long match, the length; of a table, where it starts
//	1   isSpecial
//
// Entries that are not special are all unpacked in the same way, without a branch,
// since that would be guessed wrong too often: eight bytes are copied, either from the
// distance or the literals. To be so, a match has at most eight bytes from a distance
// of at least eight, and its entry is that of both its codes. Longer ones are special, as
// are ends of blocks (neither isTable nor isMatch, but bits used), what is no code, and
// what uses more than plainBits.
const (
	codesAt    = 8
	extraAt    = 16
	isTable    = 1 << 24
	isMatch    = 1 << 25
	bytesAt    = 28
	literalsAt = 32
	numberAt   = 48
	isSpecial  = 1 << 63

	// Of 56 bits two entries leave enough to look up a third before the next bits are
	// there: waiting for them was a fifth of the time.
	plainBits = (56 - symbolBits) / 2

	// What a literal's eight bytes might be copied from is far from what was written
	// last: a processor waits when it is to load what it has not yet stored.
	unused = 1<<14 + 1<<11
)

// coded is an entry of the given number, to which extra bits above the codes add.
func coded(number, codes, extra uint) uint64 {
	return uint64(number)<<numberAt | uint64(extra<<extraAt|codes<<codesAt|(codes+extra))
}

// number of an entry, with the bits that add to it.
func number(e, bits uint64) int {
	return int(e>>numberAt&0x7fff + bits>>(e>>codesAt&63)&(1<<(e>>extraAt&63)-1))
}

// maxCode is the longest code in bits.
const maxCode = 15

// huffman is a canonical code.
type huffman struct {
	lengths []uint8     // of a symbol's code in bits; 0: it has none
	order   [288]uint16 // symbols by the length of their code
	codes   [288]uint16 // in this order: reversed, the first bit is the lowest
	all     int         // how many there are
}

// fixed sets the tables of blocks that bring none.
func (f *inflate) fixed() error {
	l := f.lengths[:]
	for i := range 288 {
		switch {
		case i < 144:
			l[i] = 8
		case i < 256:
			l[i] = 9
		case i < 280:
			l[i] = 7
		default:
			l[i] = 8
		}
	}
	for i := range 32 {
		l[288+i] = 5
	}
	return f.tables(288, 288+32)
}

// orderOfLengths is how the lengths of the code for lengths are sent.
var orderOfLengths = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block.
func (f *inflate) dynamic() error {
	x, err := f.take(14)
	if err != nil {
		return err
	}
	symbols, distances, few := int(x&31)+257, int(x>>5&31)+1, int(x>>10)+4
	if symbols > 286 || distances > 30 {
		return errDeflate
	}
	l := f.lengths[:19]
	clear(l)
	for _, at := range orderOfLengths[:few] {
		x, err := f.take(3)
		if err != nil {
			return err
		}
		l[at] = uint8(x)
	}
	const size = 7
	f.code.lengths = l
	if !f.code.table(f.symbols[:], size, func(symbol, code uint) uint64 { return coded(symbol, code, 0) }) {
		return errDeflate
	}
	all := f.lengths[:symbols+distances]
	for i := 0; i < len(all); {
		n, err := f.lengthRun(size, all, i)
		if err != nil {
			return err
		}
		i += n
	}
	return f.tables(symbols, len(all))
}

// lengthRun reads one length of a code, or one that is repeated, to all[at:].
func (f *inflate) lengthRun(size uint, all []uint8, at int) (n int, err error) {
	if f.count < 15 {
		if err := f.fill(); err != nil {
			return 0, err
		}
		f.refill()
	}
	e := f.symbols[f.bits&(1<<size-1)]
	if e&isSpecial != 0 {
		return 0, errDeflate
	}
	if _, err := f.take(uint(e & 63)); err != nil {
		return 0, err
	}
	symbol := number(e, 0)
	if symbol < 16 {
		all[at] = uint8(symbol)
		return 1, nil
	}
	extra, least := uint(2), 3
	var value uint8
	switch symbol {
	case 16:
		if at == 0 {
			return 0, errDeflate
		}
		value = all[at-1]
	case 17:
		extra = 3
	case 18:
		extra, least = 7, 11
	}
	x, err := f.take(extra)
	if err != nil {
		return 0, err
	}
	n = least + int(x)
	if at+n > len(all) {
		return 0, errDeflate
	}
	for i := range n {
		all[at+i] = value
	}
	return n, nil
}

// tables makes both tables from all lengths, those of distances after symbols others.
func (f *inflate) tables(symbols, all int) error {
	f.code.lengths, f.back.lengths = f.lengths[:symbols], f.lengths[symbols:all]
	if !f.code.table(f.symbols[:], symbolBits, symbolEntry) || !f.back.table(f.distances[:], distanceBits, distanceEntry) {
		return errDeflate
	}
	f.pairs()
	return nil
}

// symbolEntry is what a symbol stands for whose code has so many bits.
func symbolEntry(s, code uint) uint64 {
	switch {
	case s < 256:
		return coded(unused, code, 0) | 1<<bytesAt | uint64(s)<<literalsAt
	case s == 256:
		return isSpecial | uint64(code)
	case s < 265:
		return isSpecial | isMatch | coded(s-254, code, 0)
	case s < 285:
		extra := (s - 261) / 4
		return isSpecial | isMatch | coded(3+(4+(s-261)%4)<<extra, code, extra)
	case s == 285:
		return isSpecial | isMatch | coded(258, code, 0)
	}
	return isSpecial
}

// distanceEntry is what a symbol for a distance stands for.
func distanceEntry(s, code uint) uint64 {
	switch {
	case s < 4:
		return coded(s+1, code, 0)
	case s < 30:
		extra := (s - 2) / 2
		return coded(1+(2+s%2)<<extra, code, extra)
	}
	return isSpecial
}

// table fills to with the entries of a code, the first 1<<size for what size bits
// decide. It tells whether that is a code: complete, or nothing, or a single one of one
// bit.
func (h *huffman) table(to []uint64, size uint, entry func(symbol, code uint) uint64) bool {
	longest, complete := h.sort()
	if !complete {
		for i := range 1 << size {
			to[i] = isSpecial
		}
		if h.all > 1 || longest > 1 {
			return false
		}
	}
	free, deep := 1<<size, max(longest, size)-size
	prefix := -1
	for i, s := range h.order[:h.all] {
		l, place := uint(h.lengths[s]), int(h.codes[i])
		if l <= size {
			put(to[:1<<size], place, l, entry(uint(s), l))
			continue
		}
		if p := place & (1<<size - 1); p != prefix { // in this order equal ones are neighbours
			prefix = p
			to[p] = isSpecial | isTable | coded(uint(free), size, deep)
			free += 1 << deep
		}
		put(to[free-1<<deep:free], place>>size, l-size, entry(uint(s), l-size))
	}
	return true
}

// sort lists the symbols that have a code, by its length, and the codes. It tells
// whether every sequence of bits is a code.
func (h *huffman) sort() (longest uint, complete bool) {
	var count, at [maxCode + 1]int
	for _, l := range h.lengths {
		count[l]++
	}
	h.all = 0
	used := 0
	for l := 1; l <= maxCode; l++ {
		at[l] = h.all
		h.all += count[l]
		used += count[l] << (maxCode - l)
		if count[l] > 0 {
			longest = uint(l)
		}
	}
	for s, l := range h.lengths {
		if l > 0 {
			h.order[at[l]] = uint16(s)
			at[l]++
		}
	}
	code, before := 0, uint8(0)
	for i, s := range h.order[:h.all] {
		l := h.lengths[s]
		code <<= l - before
		before = l
		h.codes[i] = bits.Reverse16(uint16(code) << (16 - l))
		code++
	}
	return longest, used == 1<<maxCode
}

// pairs gives one entry to two literals, and to a short length and its distance, where
// both codes are short enough.
func (f *inflate) pairs() {
	to, h := f.symbols[:1<<symbolBits], &f.code
	for i, a := range h.order[:h.all] {
		l, place := uint(h.lengths[a]), int(h.codes[i])
		if a < 256 {
			for j, b := range h.order[:h.all] {
				both := l + uint(h.lengths[b])
				if both > symbolBits {
					break
				}
				if b < 256 {
					put(to, place|int(h.codes[j])<<l, both, coded(unused, both, 0)|2<<bytesAt|uint64(a)<<literalsAt|uint64(b)<<(literalsAt+8))
				}
			}
		} else if a > 256 && a-254 <= 8 {
			f.withDistance(uint64(a-254), place, l)
		}
	}
}

// withDistance joins the code of a length, of l bits, with those of distances.
func (f *inflate) withDistance(length uint64, place int, l uint) {
	to, h := f.symbols[:1<<symbolBits], &f.back
	for j, b := range h.order[:h.all] {
		both := l + uint(h.lengths[b])
		if both > symbolBits {
			break
		}
		at := place | int(h.codes[j])<<l
		switch e := distanceEntry(uint(b), both); {
		case b > 5 && b < 30 && e&63 <= plainBits:
			put(to, at, both, isMatch|length<<bytesAt|e)
		case b == 5 && both < symbolBits: // 7 or 8: the bit that tells is taken for one of the code
			put(to, at|1<<both, both+1, isMatch|length<<bytesAt|coded(8, both+1, 0))
		}
	}
}

// put writes an entry wherever the lowest l bits of the place are those of a code.
func put(to []uint64, place int, l uint, e uint64) {
	for i := place; i < len(to); i += 1 << l {
		to[i] = e
	}
}
