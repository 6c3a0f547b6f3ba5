package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Rows of a list that are not side by side are read and written each at its own place, and not a byte more of them; where
// the block ends others are copied first. Where the group has fewer than sixteen its last row is computed again, to the
// same numbers.

// copyLast copies the group's rows of a block that ends with them, its last one for those there are not, and lets from
// and stride be those of the copies.
func (t *turned) copyLast(block string, from, stride reg.GPVirtual) {
	const apart = 4 * turnedMost
	to, i, last, ones := t.behind(roomLines+stageLines+t.more), GP64(), t.load("Rows"), GP64()
	DECQ(last)
	MOVQ(to, from)
	XORQ(i, i)
	t.sized(block, func(size int) {
		masks, again := make([]reg.OpmaskVirtual, (turnedMost*size+63)/64), label("copy")
		MOVQ(I32(-1), ones)
		BZHIQ(t.cols, ones, ones)
		for v := range masks {
			masks[v] = K()
			KMOVD(ones.As32(), masks[v])
			SHRQ(Imm(uint64(64/size)), ones)
		}
		Label(again)
		row := GP64()
		LEAQ(Mem{Base: t.at, Index: i, Scale: 1}, row)
		CMPQ(row, last)
		CMOVQGT(last, row)
		t.place(block, row)
		for v, m := range masks {
			x, here := t.reg(), Mem{Base: row, Disp: 64 * v}
			if size == 2 {
				VMOVDQU16_Z(here, m, x)
			} else {
				VMOVDQU32_Z(here, m, x)
			}
			VMOVDQU64(x, Mem{Base: to, Disp: 64 * v})
		}
		ADDQ(U32(apart), to)
		INCQ(i)
		CMPQ(i, Imm(16))
		JLT(LabelRef(again))
	})
	MOVQ(U32(apart), stride)
}

// copyLines is room for such copies.
const copyLines = 16 * 4 * turnedMost / 64

// readApart is the loop of read for such rows of a block that ends at end: what follows the last is not touched.
func (t *turned) readApart(block string, to, end reg.GPVirtual) {
	places, byte, column, left := t.places(block, 0), GP64(), t.from(to), t.rowBytes(block)
	XORQ(byte, byte)
	whole, last, exact := t.from(left), GP64(), label("exact")
	ADDQ(Imm(15), whole)
	ANDQ(I8(-16), whole)
	MOVQ(t.last, last)
	t.row(block, last)
	ADDQ(whole, last)
	CMPQ(last, end)
	JGT(LabelRef(exact))
	MOVQ(whole, left) // pieces may go on into other rows
	Label(exact)
	t.sized(block, func(size int) {
		again, short, done := label("piece"), label("short"), label("pieces")
		Label(again)
		CMPQ(left, Imm(16))
		JLT(LabelRef(short))
		t.storeColumns(size, t.readPieceAt(places, byte, nil), column)
		ADDQ(Imm(16), byte)
		SUBQ(Imm(16), left)
		JMP(LabelRef(again))
		Label(short)
		TESTQ(left, left)
		JZ(LabelRef(done))
		t.storeColumns(size, t.readPieceAt(places, byte, t.words(left)), column)
		Label(done)
	})
}

// readPieceAt is readPiece of rows at places; of the last piece only words.
func (t *turned) readPieceAt(places Mem, byte reg.GPVirtual, words reg.OpmaskVirtual) []vec {
	v := t.regs(4)
	for row := range 16 {
		p, x, quarter := GP64(), v[row%4], uint64(row/4)
		MOVQ(places.Offset(8*row), p)
		from := Mem{Base: p, Index: byte, Scale: 1}
		switch {
		case words != nil:
			if quarter == 0 {
				VBROADCASTSS(bits(0), x)
			}
			part := XMM()
			VMOVDQU16_Z(from, words, part)
			VINSERTF32X4(Imm(quarter), part, x, x)
		case quarter == 0:
			VBROADCASTF32X4(from, x)
		default:
			VINSERTF32X4(Imm(quarter), from, x, x)
		}
	}
	return v
}

// writeApart is the loop of write for such rows.
func (t *turned) writeApart(block string, size int, pieces func(column reg.GPVirtual) []vec) {
	places, byte, column, left, again := t.placesOf(t.target(block)), GP64(), t.from(t.room), t.rowBytes(block), label("piece")
	XORQ(byte, byte)
	Label(again)
	t.writePartAt(places, byte, t.turn(pieces(column)), t.words(left))
	ADDQ(Imm(16), byte)
	ADDQ(U32(64*16/size), column)
	SUBQ(Imm(16), left)
	JG(LabelRef(again))
}

// writeSpread is writeApart on stage, where between rows all is zero: pieces are stored whole, with zeros behind a row's
// end, and from the last to the first, so that what goes on into the next row is overwritten if that one is listed.
func (t *turned) writeSpread(block string, size int, pieces func(column reg.GPVirtual) []vec) {
	places, byte, column, again := t.placesOf(t.target(block)), t.rowBytes(block), GP64(), label("piece")
	bytes := t.from(byte)
	ADDQ(Imm(15), byte)
	ANDQ(I8(-16), byte)
	MOVQ(byte, column)
	SHLQ(Imm(map[int]uint64{4: 4, 2: 5}[size]), column)
	ADDQ(t.room, column)
	Label(again)
	SUBQ(U32(16/size*64), column)
	SUBQ(Imm(16), byte)
	v, real := t.turn(pieces(column)), t.wordsOfPiece(bytes, byte)
	for _, x := range v {
		VMOVDQU16_Z(x, real, x)
	}
	t.writePieceAt(places, byte, v)
	TESTQ(byte, byte)
	JNZ(LabelRef(again))
}

// writePartAt is writePieceAt of some words of each row only.
func (t *turned) writePartAt(places Mem, byte reg.GPVirtual, v []vec, words reg.OpmaskVirtual) {
	for row := range 16 {
		p, part := GP64(), XMM()
		MOVQ(places.Offset(8*row), p)
		VEXTRACTF32X4(Imm(uint64(row/4)), v[row%4], part)
		VMOVDQU16(part, words, Mem{Base: p, Index: byte, Scale: 1})
	}
}

// writePieceAt is writePiece of rows at places.
func (t *turned) writePieceAt(places Mem, byte reg.GPVirtual, v []vec) {
	for row := range 16 {
		p := GP64()
		MOVQ(places.Offset(8*row), p)
		to := Mem{Base: p, Index: byte, Scale: 1}
		if row < 4 {
			VMOVUPS(v[row].AsX(), to)
		} else {
			VEXTRACTF32X4(Imm(uint64(row/4)), v[row%4], to)
		}
	}
}

// wordsOfPiece are the words that rows of so many bytes have in the piece that begins at a byte, of four rows.
func (t *turned) wordsOfPiece(bytes, at reg.GPVirtual) reg.OpmaskVirtual {
	n, ones, m := t.from(bytes), GP64(), K()
	SUBQ(at, n)
	SHRQ(Imm(1), n)
	MOVQ(U32(0xff), ones)
	BZHIQ(n, ones, ones)
	IMUL3Q(U32(0x01010101), ones, ones)
	KMOVD(ones.As32(), m)
	return m
}

// rowNumbers are those of sixteen rows from so many behind the group's first on; where there are no more, that of the last
// one, or of the group's last.
func (t *turned) rowNumbers(behind int) vec {
	row, first, last := t.reg(), GP64(), GP64()
	LEAQ(Mem{Base: t.at, Disp: behind}, first)
	VPBROADCASTD(first.As32(), row)
	VPADDD(columnNumbers, row, row)
	if t.listed {
		t.ifPointer("List", func(list reg.GPVirtual) {
			VPBROADCASTD(bits(0xffffffff), row)
			VMOVDQU32(Mem{Base: list, Index: first, Scale: 4}, t.lanes(t.left(first, 16)), row)
		})
	}
	MOVQ(t.last, last)
	if behind > 0 {
		MOVQ(t.field("Rows"), last)
		DECQ(last)
		t.number(last)
	}
	end := t.reg()
	VPBROADCASTD(last.As32(), end)
	VPMINUD(end, row, row)
	return row
}

// askListed asks for rows of X that come later in the list, unless all are asked for, and for those of Dst that results go
// to unless these wait on stage.
func (t *turned) askListed() {
	asked, staged := label("asked"), label("staged")
	CMPQ(t.show.asked, Imm(0))
	JNE(LabelRef(asked))
	t.askApart("X", 32)
	Label(asked)
	CMPQ(t.show.on, Imm(0))
	JNE(LabelRef(staged))
	t.ifPointer("Dst.Data", func(reg.GPVirtual) { t.askApart("Dst", 0) })
	Label(staged)
}

// askApart asks for the lines of such rows of a block.
func (t *turned) askApart(block string, behind int) {
	places, i, again := t.places(block, behind), GP64(), label("ask")
	places.Index, places.Scale = i, 8
	XORQ(i, i)
	Label(again)
	row := GP64()
	MOVQ(places, row)
	for line := range 3 {
		PREFETCHT0(Mem{Base: row, Disp: 64 * line})
	}
	INCQ(i)
	CMPQ(i, Imm(16))
	JLT(LabelRef(again))
}

// places stores where sixteen rows of a block begin, from so many behind the group's first on.
func (t *turned) places(block string, behind int) Mem {
	return t.placesOf(t.load(block+".Data"), t.load(block+".Stride"), behind)
}

// placesOf is places of rows a stride apart, of which row 0 is at data.
func (t *turned) placesOf(data, stride reg.GPVirtual, behind int) Mem {
	to, number, bytes, first := AllocLocal(16*8), t.rowNumbers(behind), t.reg(), t.reg()
	VPBROADCASTQ(stride, bytes)
	VPBROADCASTQ(data, first)
	for half := range 2 {
		part, p := YMM(), t.reg()
		VEXTRACTI64X4(Imm(uint64(half)), number, part)
		VPMOVZXDQ(part, p)
		VPMULUDQ(bytes, p, p)
		VPADDQ(first, p, p)
		VMOVDQU64(p, to.Offset(64*half))
	}
	return to
}
