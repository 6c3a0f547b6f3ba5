package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Rows of up to fewColumns that are side by side are turned four at a time: a vector has all of them, and a permutation
// takes each two columns to a lane of their own.
const fewColumns = 8

// fewWords are permutations for rows of 1, 2, ... columns; fewBack take columns back, row after row.
var fewWords, fewBack Mem

func makeFewTables() {
	table := func(name string, of func(cols, i int) int) Mem {
		m := GLOBL(name, 16|8)
		for cols := 1; cols <= fewColumns; cols++ {
			for i := 0; i < 32; i += 4 {
				four := U64(0)
				for k := range 4 {
					four |= U64(of(cols, i+k)&31) << (16 * k)
				}
				DATA((cols-1)*64+i*2, four)
			}
		}
		return m
	}
	fewWords = table("elementFew", func(cols, i int) int { return i%8/2*cols + i/8*2 + i%2 })
	fewBack = table("elementFewBack", func(cols, i int) int { return i%cols/2*8 + i/cols*2 + i%cols%2 })
}

// fewOf is one of such permutations.
func (w *words) fewOf(tables Mem) vec {
	p, at, v := GP64(), w.from(w.cols), w.reg()
	LEAQ(tables, p)
	SHLQ(Imm(6), at)
	VMOVDQU16(Mem{Base: p, Index: at, Scale: 1, Disp: -64}, v)
	return v
}

// ifFew jumps unless rows are few columns and so far apart.
func (w *words) ifFew(stride Mem, to string) {
	CMPQ(w.cols, Imm(fewColumns))
	JGT(LabelRef(to))
	CMPQ(w.rowBytes("X"), stride)
	JNE(LabelRef(to))
}

// fourApart is how far four rows are from the next ones: eight bytes a column.
func (w *words) fourApart() reg.GPVirtual {
	apart := w.from(w.cols)
	SHLQ(Imm(3), apart)
	return apart
}

// readFew turns the group's rows.
func (w *words) readFew(pad uint32) {
	index, none, from, four := w.fewOf(fewWords), w.all(bits(pad)), GP64(), w.fourApart()
	some := w.columnsOfFour()
	MOVQ(w.src, from)
	for half := range 2 {
		v := w.regs(4)
		for i, x := range v {
			VMOVAPS(none, x)
			VPERMW(Mem{Base: from}, index, some, x)
			if half == 0 || i < 3 {
				ADDQ(four, from)
			}
		}
		for i, x := range w.turnLanes(v) {
			VMOVUPS(x, Mem{Base: w.room, Disp: 128*i + 64*half})
		}
	}
}

// columnsOfFour are the words that are columns when four rows are turned.
func (w *words) columnsOfFour() reg.OpmaskVirtual {
	m, ones := K(), GP64()
	MOVQ(I32(-1), ones)
	// Two columns are eight words; one alone is every other word of eight.
	pairs, odd, rest := w.from(w.cols), GP64(), GP64()
	SHRQ(Imm(1), pairs)
	SHLQ(Imm(3), pairs)
	MOVQ(w.cols, odd)
	ANDQ(Imm(1), odd)
	IMUL3Q(Imm(0x55), odd, odd)
	SHLXQ(pairs, odd, rest)
	BZHIQ(pairs, ones, ones)
	ORQ(rest, ones)
	KMOVD(ones.As32(), m)
	return m
}

// turnLanes makes of four vectors with four lanes each a vector of their first lanes, of their second ones, ..., or the
// other way round.
func (w *words) turnLanes(v []vec) []vec {
	low, high, out := w.regs(2), w.regs(2), w.regs(4)
	for i := range 2 {
		VSHUFF32X4(U8(0x44), v[2*i+1], v[2*i], low[i])
		VSHUFF32X4(U8(0xee), v[2*i+1], v[2*i], high[i])
	}
	for i, h := range [][]vec{low, high} {
		VSHUFF32X4(U8(0x88), h[1], h[0], out[2*i])
		VSHUFF32X4(U8(0xdd), h[1], h[0], out[2*i+1])
	}
	return out
}

// writeFew writes sixteen rows of results side by side and jumps, if they are of few columns. What goes on behind four of
// them is overwritten by the next.
func (r *wordResults) writeFew(pairs []vec, to, stride Mem, done string) {
	more := label("more")
	r.ifFew(stride, more)
	index, four, p := r.fewOf(fewBack), r.fourApart(), GP64()
	MOVQ(r.half, p) // 64 bytes are sixteen rows of two
	SHRQ(Imm(1), p)
	IMULQ(r.cols, p)
	ADDQ(to, p)
	for i, x := range r.turnLanes(pairs) {
		VPERMW(x, index, x)
		VMOVDQU64(x, Mem{Base: p})
		if i < 3 {
			ADDQ(four, p)
		}
	}
	JMP(LabelRef(done))
	Label(more)
}
