// Sparse writes the loops of sparse times dense:
//
//	go run ./sparse -out ../sparse_amd64.s -stubs ../sparse_stubs_amd64.go -pkg simd
//
// Float32 rows are in f32.go, bfloat16 ones in bf16.go.
//
// A destination row is summed in up to sixteen vectors, one body of code for each
// number of vectors, so that the loop over entries has no inner loop. Of wider rows
// the caller does as many columns at a time.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

func main() {
	ConstraintExpr("amd64")
	aggregate("aggregate512", 16, narrow, floatRows)
	aggregate("aggregate512b16", 8, narrow16, halfRows)
	aggregate256("aggregate256", false)
	aggregate256("aggregate256b16", true)
	Generate()
}

// Offsets of the fields of simd.sumArgs.
const (
	fieldDst = 8 * iota
	fieldSrc
	fieldPtr
	fieldIndex
	fieldValue
	fieldValueStep
	fieldColScale
	fieldColMask
	fieldRowScale
	fieldRowStep
	fieldDstStride
	fieldSrcStride
	fieldRows
	fieldVectors
	fieldMask
	fieldSelf
	fieldFirst
	fieldMode
	fieldAcc
	fieldPrefetch
	fieldLast
	fieldSelfScale
	fieldSelfMask
)

// What mode says about dst.
const (
	modeAdd    = 1
	modeBF16   = 2
	modeStream = 4  // rows are whole lines, which go by non-temporal stores
	modeNative = 8  // the processor rounds to bfloat16 by itself
	modeDirect = 16 // rows are finished in registers
)

// Registers that keep their meaning through a function.
var (
	args      = RDI
	src       = RSI
	index     = R8 // of the next entry
	end       = R10
	value     = R11
	valueStep = R12 // 4, or 0 where all values are one
	colScale  = R13
	colMask   = R15 // all ones, or 0 where there are no scales
	stride    = RBX // of src
	dst       = RCX
	row       = RDX
	ahead     = R14 // bytes of index to look ahead, 0: no prefetch
	last      = RBP // the last entry that may be looked at
	at, tmp   = RAX, R9

	weight   = Z16
	x, y     = Z17, Z18
	bit0     = Z19 // what rounding to bfloat16 needs
	half     = Z20
	quiet    = Z21
	rowScale = Z22
	upper    = Z23 // the upper half of each lane
)

func field(f int) Mem { return Mem{Base: args, Disp: f} }

// sums are the vectors that hold a row.
var sums = []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15}

func acc(v int) VecPhysical { return sums[v] }

func beginPointers() {
	Load(Param("a"), args)
	MOVQ(field(fieldSrc), src)
	MOVQ(field(fieldValue), value)
	MOVQ(field(fieldValueStep), valueStep)
	MOVQ(field(fieldColScale), colScale)
	MOVQ(field(fieldColMask), colMask)
	MOVQ(field(fieldSrcStride), stride)
	MOVQ(field(fieldDst), dst)
	MOVQ(field(fieldPrefetch), ahead)
	MOVQ(field(fieldLast), last)
	MOVQ(field(fieldPtr), tmp)
	MOVQ(Mem{Base: tmp}, tmp)
	MOVQ(field(fieldIndex), index)
	LEAQ(Mem{Base: index, Index: tmp, Scale: 4}, index)
	XORQ(row, row)
}

func begin() {
	beginPointers()
	MOVQ(field(fieldMask), tmp)
	KMOVD(tmp.As32(), K1)
	for _, c := range []struct {
		v    VecPhysical
		bits uint32
	}{{bit0, 1}, {half, 0x7fff}, {quiet, 0x40}, {upper, 0xffff0000}} {
		MOVL(U32(c.bits), tmp.As32())
		VPBROADCASTD(tmp.As32(), c.v)
	}
}

// rowKind is what rows of float32 and of bfloat16 do not share.
type rowKind struct {
	sums   int         // vectors of the sum for each vector (or block) of a source row
	scale  func(v int) // finishes vector (or block) v of a row, in acc(sums·v)
	store  func(v VecPhysical, to Mem, tail bool)
	finish func(name string)
}

// aggregate is a function that sums rows of up to most vectors or, for bfloat16, blocks.
func aggregate(name string, most int, narrow func(n int), kind rowKind) {
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " sums the rows of a sumArgs.")
	begin()
	Label("rows")
	MOVQ(field(fieldVectors), tmp)
	choose(1, most)
	for n := 1; n <= most; n++ {
		narrow(n)
	}
	kind.leaveRows(most)
	kind.finish("finish")
	Label("next")
	nextRow("rows")
	Label("end")
	SFENCE() // for rows that went by non-temporal stores
	frame.End()
}

// choose jumps to the loop of rows of tmp vectors, which are from lo to hi.
func choose(lo, hi int) {
	if lo < hi {
		middle := (lo + hi + 1) / 2
		upper := fmt.Sprintf("from%d", middle)
		frame.Compare(tmp, U8(middle), JAE, upper)
		choose(lo, middle-1)
		Label(upper)
		choose(middle, hi)
		return
	}
	JMP(LabelRef(fmt.Sprintf("row%d", lo)))
}

// startRow sets end to the end of the row's entries.
func startRow() {
	MOVQ(field(fieldPtr), tmp)
	MOVQ(Mem{Base: tmp, Index: row, Scale: 8, Disp: 8}, end)
	MOVQ(field(fieldIndex), tmp)
	LEAQ(Mem{Base: tmp, Index: end, Scale: 4}, end)
}

// selfEntry makes the row's own vertex an entry of weight self, if there is a self.
func selfEntry(skip string, add func()) {
	MOVL(field(fieldSelf), tmp.As32())
	TESTL(tmp.As32(), tmp.As32())
	JZ(LabelRef(skip))
	selfScaleAt()
	VBROADCASTSS(Mem{Base: tmp}, weight)
	VMULPS_BCST(field(fieldSelf), weight, weight)
	IMULQ(stride, at)
	ADDQ(src, at)
	add()
	Label(skip)
}

// leave writes the n vectors (or blocks) of a row, by non-temporal stores or not, or leaves them to finish.
func (p rowKind) leave(n int) {
	MOVQ(field(fieldAcc), at)
	frame.Test(U32(modeDirect), field(fieldMode), JZ, fmt.Sprintf("keep%d", n))
	loadRowScale(rowScale)
	frame.Test(U32(modeStream), field(fieldMode), JNZ, fmt.Sprintf("stream%d", n))
	for v := range n {
		p.scale(v)
		p.store(acc(p.sums*v), Mem{Base: dst, Disp: 64 * v}, v == n-1)
	}
	nextRow(fmt.Sprintf("row%d", n))
}

// leaveRows is where rows of up to most vectors go on whose way is the same for all, from each
// vector down to the first.
// Finding back to the loop takes up to 0.04 of the time of rows in cache, so others do not come here.
func (p rowKind) leaveRows(most int) {
	down := func(name string, each func(v int)) {
		for v := most - 1; v >= 0; v-- {
			Label(fmt.Sprintf("%s%d", name, v+1))
			each(v)
		}
	}
	down("stream", func(v int) {
		p.scale(v)
		VMOVNTPS(acc(p.sums*v), Mem{Base: dst, Disp: 64 * v})
	})
	JMP(LabelRef("next"))
	down("keep", func(v int) {
		for part := range p.sums {
			VMOVUPS(acc(p.sums*v+part), Mem{Base: at, Disp: 64 * (p.sums*v + part)})
		}
	})
	loadRowScale(rowScale)
	JMP(LabelRef("finish"))
}

// selfScaleAt sets at to the row's own vertex and tmp to the address of its scale.
func selfScaleAt() {
	MOVQ(field(fieldFirst), at)
	ADDQ(row, at)
	MOVQ(field(fieldSelfMask), tmp)
	ANDQ(at, tmp)
	SHLQ(U8(2), tmp)
	ADDQ(field(fieldSelfScale), tmp)
}

// entry reads the next entry: at is its source row, weight its weight.
func entry() {
	MOVL(Mem{Base: index}, at.As32())
	ADDQ(U8(4), index)
	MOVQ(at, tmp)
	ANDQ(colMask, tmp)
	VBROADCASTSS(Mem{Base: colScale, Index: tmp, Scale: 4}, weight)
	VMULPS_BCST(Mem{Base: value}, weight, weight)
	ADDQ(valueStep, value)
	IMULQ(stride, at)
	ADDQ(src, at)
}

// unscaledEntry is entry where there are no scales of columns: fewer instructions between
// two rows are worth a twentieth of the time in bfloat16.
func unscaledEntry() {
	MOVL(Mem{Base: index}, at.As32())
	ADDQ(U8(4), index)
	VBROADCASTSS(Mem{Base: value}, weight)
	ADDQ(valueStep, value)
	IMULQ(stride, at)
	ADDQ(src, at)
}

// prefetch asks for the first lines of the source row some entries ahead. For
// float32 one line does no worse than all: the processor itself goes on from there.
// (Runs on a busy machine gave 0.90-1.06 of a plain gather's speed at width 256
// with one line, 0.90-0.93 with all: the order is likely, its size is not known.)
func prefetch(lines int, skip string) {
	frame.Test(ahead, ahead, JZ, skip)
	askRow(Mem{Base: index, Index: ahead, Scale: 1}, last, lines)
	Label(skip)
}

// askRow asks for the first lines of an entry's source row, and leaves tmp there.
func askRow(entry Mem, last Op, lines int) {
	LEAQ(entry, tmp)
	CMPQ(tmp, last)
	CMOVQHI(last, tmp)
	MOVL(Mem{Base: tmp}, tmp.As32())
	IMULQ(stride, tmp)
	ADDQ(src, tmp)
	for line := range lines {
		PREFETCHT0(Mem{Base: tmp, Disp: 64 * line})
	}
}

// loadRowScale spreads the row's scale. Pointers in the arguments are never stepped: the collector must not see one
// past its array.
func loadRowScale(to VecPhysical) {
	MOVQ(field(fieldRowStep), tmp)
	IMULQ(row, tmp)
	ADDQ(field(fieldRowScale), tmp)
	VBROADCASTSS(Mem{Base: tmp}, to)
}

func nextRow(again string) {
	ADDQ(field(fieldDstStride), dst)
	INCQ(row)
	frame.Compare(row, field(fieldRows), JB, again)
	JMP(LabelRef("end"))
}

// toBF16 rounds v to bfloat16 in the lower half of each lane of to, ties to even;
// NaN stays NaN.
func toBF16(v, to VecPhysical) {
	VPSRLD(U8(16), v, to)
	VPANDD(bit0, to, to)
	VPADDD(half, to, to)
	VPADDD(v, to, to)
	VPSRLD(U8(16), to, to)
	VCMPPS(U8(3), v, v, K3)
	VPSRLD(U8(16), v, K3, to)
	VPORD(quiet, to, K3, to)
}
