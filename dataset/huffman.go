package dataset

import "math/bits"

// Tables of Huffman codes, as inflate looks them up. The lowest bits of the stream
// are the place in the first table; an entry there is
//
//	literal    isLiteral | byte<<16 | bits used
//	length     base<<16 | bits of the code<<8 | bits used, with those that add to base
//	distance   the same
//	table      isSpecial | isTable | where it starts<<16 | its size in bits<<8
//	end        isSpecial | isEnd | bits used
//	anything else that is special is no code
const (
	isLiteral = 1 << 31
	isSpecial = 1 << 15
	isTable   = 1 << 14
	isEnd     = 1 << 13
)

// maxCode is the longest code in bits.
const maxCode = 15

// huffman is the memory to make a table.
type huffman struct {
	lengths [288 + 32]uint8
	codes   [288]uint16 // reversed: the first bit is the lowest
}

// fixed sets the tables of blocks that bring none.
func (f *inflate) fixed() error {
	l := f.code.lengths[:]
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
	l := f.code.lengths[:19]
	clear(l)
	for _, at := range orderOfLengths[:few] {
		x, err := f.take(3)
		if err != nil {
			return err
		}
		l[at] = uint8(x)
	}
	const size = 7
	if !f.code.table(f.symbols[:], size, l, func(symbol int) uint32 { return uint32(symbol) << 16 }) {
		return errDeflate
	}
	all := f.code.lengths[:symbols+distances]
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
	symbol := e >> 16
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
	l := f.code.lengths[:all]
	if !f.code.table(f.symbols[:], symbolBits, l[:symbols], symbolEntry) ||
		!f.code.table(f.distances[:], distanceBits, l[symbols:], distanceEntry) {
		return errDeflate
	}
	return nil
}

// symbolEntry is what a symbol stands for.
func symbolEntry(s int) uint32 {
	switch {
	case s < 256:
		return isLiteral | uint32(s)<<16
	case s == 256:
		return isSpecial | isEnd
	case s < 265:
		return uint32(s-254) << 16
	case s < 285:
		extra := uint32(s-261) / 4
		return (3+(4+uint32(s-261)%4)<<extra)<<16 | extra
	case s == 285:
		return 258 << 16
	}
	return isSpecial
}

// distanceEntry is what a symbol for a distance stands for.
func distanceEntry(s int) uint32 {
	switch {
	case s < 4:
		return uint32(s+1) << 16
	case s < 30:
		extra := uint32(s-2) / 2
		return (1+(2+uint32(s)%2)<<extra)<<16 | extra
	}
	return isSpecial
}

// table fills to with the entries of a canonical code, of which lengths are given,
// the first 1<<size for what size bits decide. It tells whether that is a code:
// complete, or nothing, or a single one of one bit.
func (h *huffman) table(to []uint32, size uint, lengths []uint8, entry func(symbol int) uint32) bool {
	var count, code [maxCode + 2]int
	for _, l := range lengths {
		count[l]++
	}
	count[0] = 0
	longest := 0
	for l := 1; l <= maxCode; l++ {
		code[l+1] = (code[l] + count[l]) << 1
		if count[l] > 0 {
			longest = l
		}
	}
	for i := range 1 << size {
		to[i] = isSpecial
	}
	if longest == 0 {
		return true
	}
	if used := code[longest] + count[longest]; used != 1<<longest && !(used == 1 && longest == 1) {
		return false
	}
	for s, l := range lengths {
		if l > 0 {
			h.codes[s] = bits.Reverse16(uint16(code[l]) << (16 - l))
			code[l]++
		}
	}
	free := 1 << size
	deep := uint(max(longest-int(size), 0))
	for s, l := range lengths {
		if l == 0 {
			continue
		}
		e, place := entry(s), int(h.codes[s])
		if uint(l) <= size {
			put(to[:1<<size], place, uint(l), e)
			continue
		}
		first := &to[place&(1<<size-1)]
		if *first&isTable == 0 {
			*first = isSpecial | isTable | uint32(free)<<16 | uint32(deep)<<8
			free += 1 << deep
		}
		start := int(*first >> 16 & 0x3fff)
		put(to[start:start+1<<deep], place>>size, uint(l)-size, e)
	}
	return true
}

// put writes an entry wherever the lowest l bits of the place are those of a code.
// Bits that add to a base are counted in with those of the code.
func put(to []uint32, place int, l uint, e uint32) {
	e += uint32(l)
	if e&(isLiteral|isSpecial) == 0 {
		e |= uint32(l) << 8
	}
	for i := place; i < len(to); i += 1 << l {
		to[i] = e
	}
}
