package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

type vec = reg.VecVirtual

// kernel is one function under construction for one instruction set. Most
// instructions have the same name on 256 and 512 bits; what differs (masks, tails,
// rounding) is here, so that kernels are written once.
type kernel struct {
	set
	lanes int // float32 lanes of a vector
	wide  int // vectors a long row's loop takes at once
	name  string
	args  reg.GPVirtual
	cols  reg.GPVirtual
	j     reg.GPVirtual // column
	left  reg.GPVirtual // rows from this one on
	room  Mem           // 16 bytes, where AVX2 puts the last few bfloat16
	mode  Mem           // how the caller had numbers rounded, if that changes (see flush)
	words []vec         // see widen
	upper reg.OpmaskVirtual
	tailK reg.OpmaskVirtual
	tailY vec // AVX2: all ones in lanes that exist
}

// set is an instruction set a kernel is written for.
type set struct {
	zmm    bool // 512 bits and masks
	rounds bool // is told whether the processor rounds to bfloat16 by itself
	suffix string
}

var (
	avx2   = set{suffix: "AVX2"}
	avx512 = set{zmm: true, suffix: "AVX512"}
	// avx512Rounds is for kernels that store rows.
	avx512Rounds = set{zmm: true, rounds: true, suffix: "AVX512"}
)

var (
	offset map[string]int
	labels int
	consts = map[uint32]Mem{}
)

// begin opens function name of the level, whose argument is a pointer to struct name.
func begin(s set, fn, name string) *kernel {
	k := &kernel{set: s, lanes: 8, wide: 2, name: name}
	if s.zmm {
		k.lanes, k.wide = 16, 4
	}
	signature := "func(a *byte)"
	if s.rounds {
		signature = "func(a *byte, native bool)"
	}
	TEXT(fn+s.suffix, 0, signature)
	k.args = GP64()
	Load(Param("a"), k.args)
	k.room = AllocLocal(16)
	k.j = GP64()
	return k
}

func (k *kernel) end() {
	if k.mode.Base != nil {
		LDMXCSR(k.mode)
	}
	if k.zmm {
		SFENCE() // for lines that went by non-temporal stores
	}
	frame.End()
}

// flush makes results below 1.2e-38 zero until the end if a block is bfloat16, whose rounding
// does so too: an instruction
// that makes such a number takes some hundred cycles. AVX-512 only.
func (k *kernel) flush(block string) {
	if !k.zmm {
		return
	}
	k.mode = AllocLocal(8)
	STMXCSR(k.mode)
	k.either(block, func() {}, func() {
		flushing, mode := k.mode.Offset(4), GP32()
		MOVL(k.mode, mode)
		ORL(U32(0x8000), mode)
		MOVL(mode, flushing)
		LDMXCSR(flushing)
	})
}

// field is a field of the argument struct.
func (k *kernel) field(path string) Mem {
	off, ok := offset[k.name+"."+path]
	if !ok {
		panic("no field " + k.name + "." + path)
	}
	return Mem{Base: k.args, Disp: off}
}

func (k *kernel) load(path string) reg.GPVirtual {
	r := GP64()
	MOVQ(k.field(path), r)
	return r
}

func label(what string) string {
	labels++
	return fmt.Sprintf("%s%d", what, labels)
}

// bits is a constant in memory; num the same of a number.
func bits(v uint32) Mem {
	if m, ok := consts[v]; ok {
		return m
	}
	m := ConstData(fmt.Sprintf("element%08x", v), U32(v))
	consts[v] = m
	return m
}

func num(x float64) Mem { return bits(math.Float32bits(float32(x))) }

func (k *kernel) reg() vec {
	if k.zmm {
		return ZMM()
	}
	return YMM()
}

func (k *kernel) regs(n int) []vec {
	v := make([]vec, n)
	for i := range v {
		v[i] = k.reg()
	}
	return v
}

// all is a vector of one number in memory in every lane.
func (k *kernel) all(m Mem) vec {
	v := k.reg()
	VBROADCASTSS(m, v)
	return v
}

// zero is loaded: the generator does not see that x^x depends on nothing, and would keep its register busy.
func (k *kernel) zero() vec { return k.all(bits(0)) }

func (k *kernel) zeros(n int) []vec {
	v := make([]vec, n)
	for i := range v {
		v[i] = k.zero()
	}
	return v
}

func (k *kernel) xor(a, b, dst vec) {
	if k.zmm {
		VPXORD(a, b, dst)
	} else {
		VPXOR(a, b, dst)
	}
}

// xor3: dst ^= a ^ b.
func (k *kernel) xor3(a, b, dst vec) {
	if k.zmm {
		VPTERNLOGD(U8(0x96), a, b, dst)
		return
	}
	VPXOR(a, dst, dst)
	VPXOR(b, dst, dst)
}

func (k *kernel) and(a, b, dst vec) {
	if k.zmm {
		VPANDD(a, b, dst)
	} else {
		VPAND(a, b, dst)
	}
}

// mask is the outcome of a comparison, lane by lane.
type mask struct {
	k reg.OpmaskVirtual
	v vec
}

// Predicates of VCMPPS.
const (
	equal      = 0
	unordered  = 3
	less       = 1
	notLess    = 5 // or NaN
	greater    = 30
	notGreater = 10 // or NaN
)

// compare: lanes where a (predicate) b.
func (k *kernel) compare(predicate int, a, b vec) mask {
	if k.zmm {
		m := mask{k: K()}
		VCMPPS(U8(predicate), b, a, m.k)
		return m
	}
	m := mask{v: k.reg()}
	VCMPPS(U8(predicate), b, a, m.v)
	return m
}

// choose: dst = yes where m, else no.
func (k *kernel) choose(m mask, yes, no, dst vec) {
	if k.zmm {
		VBLENDMPS(yes, no, m.k, dst)
	} else {
		VBLENDVPS(m.v, yes, no, dst)
	}
}

// keep zeroes the lanes of x outside m.
func (k *kernel) keep(m mask, x vec) {
	if k.zmm {
		VMOVAPS_Z(x, m.k, x)
	} else {
		VPAND(m.v, x, x)
	}
}

// prepareTail makes the masks for the last cols%lanes columns.
func (k *kernel) prepareTail() {
	k.prepareWiden()
	k.cols = k.load("Cols")
	if k.zmm {
		n, one := GP64(), GP64()
		MOVQ(k.cols, n)
		ANDQ(Imm(15), n)
		MOVQ(U32(0xffff), one)
		BZHIQ(n, one, one)
		k.tailK = K()
		KMOVW(one.As32(), k.tailK)
		return
	}
	n := GP64()
	MOVQ(k.cols, n)
	ANDQ(Imm(7), n)
	NEGQ(n)
	table := GP64()
	LEAQ(tailTable, table)
	k.tailY = YMM()
	VMOVDQU(Mem{Base: table, Index: n, Scale: 4, Disp: 32}, k.tailY)
}

// tailTable is eight words of ones and eight of zeros.
var tailTable Mem

func makeTables() {
	tailTable = GLOBL("elementTail", 16|8) // RODATA|NOPTR
	for i := range 16 {
		v := U32(0)
		if i < 8 {
			v = 0xffffffff
		}
		DATA(i*4, v)
	}
	makeParabolas()
	upperHalves = GLOBL("elementUpper", 16|8)
	for i := range 32 {
		DATA(i*2, U16(2*i+1))
	}
	toUpper = GLOBL("elementToUpper", 16|8)
	for i := range 64 {
		DATA(i*2, U16(i/2))
	}
	makeDropTables()
	makeKeptTables()
	oneDouble = ConstData("elementOne", U64(math.Float64bits(1)))
}

func (k *kernel) tail() mask { return mask{k: k.tailK, v: k.tailY} }

// columns runs body over the columns of a row: many vectors at once, then fewer, then
// the masked rest. body gets the number of vectors and whether it is the rest.
func (k *kernel) columns(body func(n int, rest bool)) {
	k.columnsBy(k.wide, body)
}

func (k *kernel) columnsBy(wide int, body func(n int, rest bool)) {
	t := GP64()
	XORQ(k.j, k.j)
	for ; wide > 1; wide /= 2 {
		k.loop(t, wide, body)
	}
	k.loop(t, 1, body)
	done := label("row")
	frame.Compare(k.j, k.cols, JGE, done)
	body(1, true)
	Label(done)
}

func (k *kernel) loop(t reg.GPVirtual, n int, body func(n int, rest bool)) {
	start, end := label("cols"), label("cols")
	step := n * k.lanes
	LEAQ(Mem{Base: k.j, Disp: step}, t)
	frame.Compare(t, k.cols, JGT, end)
	Label(start)
	body(n, false)
	ADDQ(Imm(uint64(step)), k.j)
	LEAQ(Mem{Base: k.j, Disp: step}, t)
	frame.Compare(t, k.cols, JLE, start)
	Label(end)
}

// rows runs body once a row; then advances the row pointers of the named blocks.
func (k *kernel) rows(blocks map[string]reg.GPVirtual, body func()) {
	k.left = k.load("Rows")
	k.rowsLeft(blocks, body)
}

// rowsLeft is rows for so many as are left.
func (k *kernel) rowsLeft(blocks map[string]reg.GPVirtual, body func()) {
	start := label("rows")
	Label(start)
	body()
	for _, name := range sortedKeys(blocks) {
		ADDQ(k.field(name+".Stride"), blocks[name])
	}
	frame.Next(k.left, start)
}

// ifMore runs body when at least n rows follow this one.
func (k *kernel) ifMore(n int, body func()) {
	last := label("last")
	frame.Compare(k.left, Imm(uint64(n)), JLE, last)
	body()
	Label(last)
}

// ifField runs body when a byte field is set; ifPointer when a pointer is, with it.
func (k *kernel) ifField(path string, body func()) {
	skip := label("skip")
	CMPB(k.field(path), Imm(0))
	JEQ(LabelRef(skip))
	body()
	Label(skip)
}

func (k *kernel) ifPointer(path string, body func(p reg.GPVirtual)) {
	skip := label("skip")
	p := k.load(path)
	frame.Test(p, p, JZ, skip)
	body(p)
	Label(skip)
}

// either runs half when the block is bfloat16, else full.
func (k *kernel) either(block string, full, half func()) {
	other, done := label("half"), label("both")
	CMPB(k.field(block+".BF16"), Imm(0))
	JNE(LabelRef(other))
	full()
	JMP(LabelRef(done))
	Label(other)
	half()
	Label(done)
}

// bySize is either, with the size of a number.
func (k *kernel) bySize(block string, body func(size int)) {
	k.either(block, func() { body(4) }, func() { body(2) })
}

// byRounding runs own where the processor rounds to bfloat16 by itself, else ours.
func (k *kernel) byRounding(own, ours func()) {
	other, done := label("ours"), label("both")
	native, err := Param("native").Resolve()
	if err != nil {
		panic(err)
	}
	CMPB(native.Addr, Imm(0))
	JEQ(LabelRef(other))
	own()
	JMP(LabelRef(done))
	Label(other)
	ours()
	Label(done)
}

func (k *kernel) cell(p reg.Register, size, n int) Mem {
	return Mem{Base: p, Index: k.j, Scale: uint8(size), Disp: n * k.lanes * size}
}

// param loads n vectors of a parameter, float32, at column j.
func (k *kernel) param(p reg.GPVirtual, i int, rest bool) vec {
	v := k.reg()
	k.readFloats(k.cell(p, 4, i), v, rest)
	return v
}

// sum is the sum of all lanes, in lane 0; most is the largest lane, in all lanes of an X register.
func (k *kernel) sum(v vec) vec  { return k.fold(v, func(a, b, dst Op) { VADDPS(a, b, dst) }) }
func (k *kernel) most(v vec) vec { return k.fold(v, func(a, b, dst Op) { VMAXPS(a, b, dst) }) }

func (k *kernel) fold(v vec, op func(a, b, dst Op)) vec {
	if k.zmm {
		high := YMM()
		VEXTRACTF64X4(Imm(1), v, high)
		op(high, v.AsY(), high)
		v = high
	}
	x, t := XMM(), XMM()
	k.upperHalf(v, x)
	op(x, v.AsX(), x)
	VPERMILPS(Imm(0x4e), x, t)
	op(x, t, x)
	VPERMILPS(Imm(0xb1), x, t)
	op(x, t, x)
	return x
}

// upperHalf takes the upper half of a Y register. On AVX-512 it may be one of the upper
// sixteen, which the older instruction cannot name.
func (k *kernel) upperHalf(v, x vec) {
	if k.zmm {
		VEXTRACTF32X4(Imm(1), v.AsY(), x)
	} else {
		VEXTRACTF128(Imm(1), v.AsY(), x)
	}
}

// spread puts lane 0 of an X register into all lanes.
func (k *kernel) spread(x vec) vec {
	v := k.reg()
	VBROADCASTSS(x, v)
	return v
}
