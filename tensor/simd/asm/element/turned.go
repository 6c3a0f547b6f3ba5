package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// turned is sixteen short rows on their side: a vector has one column of all sixteen, so that what is one number a row (a
// maximum, a sum, a label) is one vector, no lane is left empty by a row's end, and nothing is summed over lanes.
// Turned numbers lie in room, a vector a column. AVX-512 only.
//
// Rows are read and written in pieces of sixteen bytes: four of them are a vector, four such vectors are sixteen rows,
// and turning these is eight instructions for four columns of float32 or eight of bfloat16. A row's last piece may go on
// into the next rows, which must be there. Results are made on a stage, and leave as whole lines (turned_traffic.go). For
// rows that are not side by side see turned_apart.go.
type turned struct {
	*kernel
	size   int           // of a number, if blocks are of one type only
	pairs  bool          // bfloat16 stays as it is, in groups of 32 (words.go)
	listed bool          // rows are those of List
	more   int           // lines of room beyond those below
	at     reg.GPVirtual // the group's first row, or its place in the list
	n      Mem           // how many rows the group has
	last   Mem           // the number of its last row
	far    Mem           // how many rows ahead to ask for
	room   reg.GPVirtual // for turnedMost columns and a piece more, then stage
	upper  vec           // the upper half of each lane
	show   stage
}

// turnedMost is how many columns a row has at most that is turned.
const turnedMost = 48

// ifShort runs body and jumps if rows have at most so many columns, on AVX-512.
func (k *kernel) ifShort(most int, done string, body func()) {
	k.shorter(func() { CMPQ(k.cols, Imm(uint64(most))) }, done, body)
}

// ifShortBy is ifShort where it depends on the type of a block which rows are short.
func (k *kernel) ifShortBy(block string, single, half int, done string, body func()) {
	k.shorter(func() {
		k.either(block, func() { CMPQ(k.cols, Imm(uint64(single))) }, func() { CMPQ(k.cols, Imm(uint64(half))) })
	}, done, body)
}

func (k *kernel) shorter(compare func(), done string, body func()) {
	if !k.zmm {
		return
	}
	longer := label("longer")
	compare()
	JGT(LabelRef(longer))
	body()
	JMP(LabelRef(done))
	Label(longer)
}

// turnRows runs body on groups of sixteen rows, or 32 (see rows), the last of which may be fewer. What it writes goes to block dst, if there is
// one. prepare comes before, with room made.
func (t *turned) turnRows(dst string, prepare, body func()) {
	t.begin(dst)
	prepare()
	again, some, n := label("rows"), label("some"), GP64()
	Label(again)
	t.count()
	if t.listed {
		t.nearby()
		CMPQ(t.n, Imm(0))
		JNE(LabelRef(some))
		t.idle(dst)
		JMP(LabelRef(again))
		Label(some)
	}
	t.findLast()
	if dst != "" {
		t.reach()
	}
	body()
	if dst != "" {
		t.staged(dst)
	}
	MOVQ(t.n, n)
	ADDQ(n, t.at)
	CMPQ(t.at, t.field("Rows"))
	JLT(LabelRef(again))
	if dst != "" {
		t.leave(dst)
	}
}

// begin makes room, and a stage for block dst, if there is one.
func (t *turned) begin(dst string) {
	t.at, t.upper = GP64(), t.all(bits(0xffff0000))
	t.n, t.last, t.far = AllocLocal(8), AllocLocal(8), AllocLocal(8)
	XORQ(t.at, t.at)
	t.room = t.lines(roomLines + stageLines + t.more + copyLines)
	MOVQ(t.rowsAhead(), t.far)
	if dst != "" {
		t.setStage(dst)
	}
}

// rows are as many as are computed at once.
func (t *turned) rows() int {
	if t.pairs {
		return 32
	}
	return 16
}

// count finds out how many rows the group has.
func (t *turned) count() { MOVQ(t.left(t.at, t.rows()), t.n) }

// left is how many rows there are from one of the list on, up to most; zero behind its end.
func (t *turned) left(from reg.GPVirtual, most int) reg.GPVirtual {
	left, limit := t.load("Rows"), GP64()
	SUBQ(from, left)
	MOVQ(U32(uint32(most)), limit)
	CMPQ(left, limit)
	CMOVQGT(limit, left)
	XORQ(limit, limit)
	CMPQ(left, limit)
	CMOVQLT(limit, left)
	return left
}

// findLast finds the group's last row.
func (t *turned) findLast() {
	last := GP64()
	MOVQ(t.n, last)
	LEAQ(Mem{Base: t.at, Index: last, Scale: 1, Disp: -1}, last)
	t.number(last)
	MOVQ(last, t.last)
}

// roomLines are all columns and a piece more, stageLines the rows of a group, those between them and a line more at
// either end.
const roomLines, stageLines = turnedMost + 8, stageRows*turnedMost*4/64 + 4

func (t *turned) behind(lines int) reg.GPVirtual {
	p := GP64()
	LEAQ(Mem{Base: t.room, Disp: 64 * lines}, p)
	return p
}

// lines is room for vectors that do not straddle lines.
func (k *kernel) lines(n int) reg.GPVirtual {
	p := GP64()
	LEAQ(AllocLocal(64*n+64), p)
	ADDQ(Imm(63), p)
	ANDQ(I8(-64), p)
	return p
}

// valid are the lanes of rows.
func (t *turned) valid() reg.OpmaskVirtual {
	count := GP64()
	MOVQ(t.n, count)
	return t.lanes(count)
}

// lanes are the first so many.
func (t *turned) lanes(count reg.GPVirtual) reg.OpmaskVirtual {
	ones, m := GP64(), K()
	MOVQ(U32(0xffff), ones)
	BZHIQ(count, ones, ones)
	KMOVW(ones.As32(), m)
	return m
}

// every is all lanes, for a gather to use up.
func (t *turned) every() reg.OpmaskVirtual {
	ones, m := GP32(), K()
	MOVL(U32(0xffff), ones)
	KMOVW(ones, m)
	return m
}

// number puts the number of the row at a place of the list into i.
func (t *turned) number(i reg.GPVirtual) {
	if t.listed {
		t.ifPointer("List", func(list reg.GPVirtual) { MOVL(Mem{Base: list, Index: i, Scale: 4}, i.As32()) })
	}
}

// place turns a place in the list into that of the row in a block.
func (t *turned) place(block string, i reg.GPVirtual) {
	t.number(i)
	t.row(block, i)
}

// row turns the number of a row into its place in a block.
func (t *turned) row(block string, i reg.GPVirtual) {
	IMULQ(t.field(block+".Stride"), i)
	ADDQ(t.field(block+".Data"), i)
}

// ifApart jumps unless the group has as many rows as it can, one after another.
func (t *turned) ifApart(to string) {
	if !t.listed {
		return
	}
	first, last := t.from(t.at), GP64()
	t.number(first)
	MOVQ(t.last, last)
	SUBQ(first, last)
	CMPQ(last, Imm(uint64(t.rows()-1)))
	JNE(LabelRef(to))
	CMPQ(t.n, Imm(uint64(t.rows())))
	JNE(LabelRef(to))
}

// rowBytes is how many bytes a row of a block has.
func (t *turned) rowBytes(block string) reg.GPVirtual {
	n := GP64()
	MOVQ(t.cols, n)
	ADDQ(n, n)
	switch t.size {
	case 4:
		ADDQ(n, n)
	case 0:
		t.either(block, func() { ADDQ(n, n) }, func() {})
	}
	return n
}

// sized is bySize, or for the only size there is.
func (t *turned) sized(block string, body func(size int)) {
	if t.size != 0 {
		body(t.size)
		return
	}
	t.bySize(block, body)
}

// read turns the group's rows of a block; where columns end there are some of nothing but pad.
func (t *turned) read(block string, to reg.GPVirtual, pad vec) {
	from, stride, have, apart, done := t.from(t.at), t.load(block+".Stride"), label("have"), label("apart"), label("read")
	t.place(block, from)
	last, need := t.load("Rows"), t.rowBytes(block)
	DECQ(last)
	t.place(block, last)
	ADDQ(need, last) // where the block ends
	t.ifApart(apart)
	ADDQ(Imm(15), need)
	ANDQ(I8(-16), need)
	ADDQ(from, need)
	for _, times := range []uint8{8, 4, 2, 1} {
		LEAQ(Mem{Base: need, Index: stride, Scale: times}, need)
	}
	CMPQ(need, last)
	JLE(LabelRef(have))
	Label(apart)
	if t.listed { // rows of more than a line are worth asking for one by one
		few := label("few")
		CMPQ(t.rowBytes(block), Imm(64))
		JLE(LabelRef(few))
		t.askListed()
		Label(few)
		t.readApart(block, to, last)
		JMP(LabelRef(done))
	} else {
		t.copyLast(block, from, stride)
	}
	Label(have)
	rows := t.rowsFrom(from, stride)
	column, left := t.from(to), t.rowBytes(block)
	t.sized(block, func(size int) {
		again := label("piece")
		Label(again)
		t.storeColumns(size, t.readPiece(rows), column)
		rows.move(16)
		SUBQ(Imm(16), left)
		JG(LabelRef(again))
	})
	Label(done)
	t.pad(to, pad)
}

// storeColumns turns a piece of each row and goes on to the next columns.
func (t *turned) storeColumns(size int, v []vec, column reg.GPVirtual) {
	x, apart := t.turn(v), 64
	switch {
	case t.pairs:
		apart = 128
	case size == 2:
		x = t.widenTurned(x)
	}
	for i := range x {
		VMOVUPS(x[i], Mem{Base: column, Disp: apart * i})
	}
	ADDQ(U32(apart*len(x)), column)
}

// pad fills the columns behind the last.
func (t *turned) pad(room reg.GPVirtual, pad vec) {
	end := GP64()
	MOVQ(t.cols, end)
	SHLQ(Imm(6), end)
	ADDQ(room, end)
	for i := range 7 {
		VMOVUPS(pad, Mem{Base: end, Disp: 64 * i})
	}
}

// widenTurned makes two columns of each vector of pairs.
func (t *turned) widenTurned(pairs []vec) (x []vec) {
	for _, pair := range pairs {
		even := t.reg()
		VPSLLD(Imm(16), pair, even)
		VPANDD(t.upper, pair, pair)
		x = append(x, even, pair)
	}
	return x
}

// sixteenRows are rows a stride apart, by every fourth of them.
type sixteenRows struct {
	fourth        []reg.GPVirtual
	stride, three reg.GPVirtual
}

func (t *turned) rowsFrom(first, stride reg.GPVirtual) *sixteenRows {
	r := &sixteenRows{fourth: []reg.GPVirtual{first}, stride: stride, three: GP64()}
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, r.three)
	for i := range 3 {
		p := GP64()
		LEAQ(Mem{Base: r.fourth[i], Index: stride, Scale: 4}, p)
		r.fourth = append(r.fourth, p)
	}
	return r
}

// row is where row i of the sixteen is read or written.
func (r *sixteenRows) row(i int) Mem {
	m := Mem{Base: r.fourth[i/4], Index: r.stride, Scale: uint8(i % 4)}
	switch i % 4 {
	case 0:
		m.Index, m.Scale = nil, 0
	case 3:
		m.Index, m.Scale = r.three, 1
	}
	return m
}

func (r *sixteenRows) move(bytes int) {
	for _, p := range r.fourth {
		ADDQ(I32(bytes), p)
	}
}

// readPiece loads a piece of each row: of rows r, 4+r, 8+r, 12+r into vector r.
func (t *turned) readPiece(rows *sixteenRows) []vec {
	v := t.regs(4)
	for i, x := range v {
		VBROADCASTF32X4(rows.row(i), x)
		for quarter := 1; quarter < 4; quarter++ {
			VINSERTF32X4(Imm(uint64(quarter)), rows.row(4*quarter+i), x, x)
		}
	}
	return v
}

// turn makes four columns of four quarters of rows, or the other way round.
func (t *turned) turn(v []vec) []vec {
	low, high, out := t.regs(2), t.regs(2), t.regs(4)
	for i := range 2 {
		VUNPCKLPS(v[2*i+1], v[2*i], low[i])
		VUNPCKHPS(v[2*i+1], v[2*i], high[i])
	}
	for i, h := range [][]vec{low, high} {
		VUNPCKLPD(h[1], h[0], out[2*i])
		VUNPCKHPD(h[1], h[0], out[2*i+1])
	}
	return out
}

// write runs body for the columns of each piece and stores what it makes of them in the group's rows of a block. Pieces go
// from the last to the first, rows from the first to the last, so that what goes on into the next row is overwritten.
func (t *turned) write(block string, body func(column reg.GPVirtual, n int) []vec) {
	bytes, column, first, apart := t.rowBytes(block), GP64(), GP64(), label("apart")
	t.ifApart(apart)
	if t.listed {
		CMPQ(t.show.on, Imm(0))
		JEQ(LabelRef(apart))
	}
	LEAQ(Mem{Base: bytes, Disp: 15}, first)
	ANDQ(I8(-16), first)
	rows := t.rowsFrom(t.firstOnStage(bytes), bytes)
	for _, p := range rows.fourth {
		ADDQ(first, p)
	}
	words, done := t.reg(), label("written")
	VMOVDQU16(pairedWords, words)
	pieces := func(size int) func(column reg.GPVirtual) []vec {
		return func(column reg.GPVirtual) []vec { return t.piece(size, column, words, body) }
	}
	t.sized(block, func(size int) {
		again := label("piece")
		MOVQ(first, column)
		SHLQ(Imm(map[int]uint64{4: 4, 2: 5}[size]), column)
		ADDQ(t.room, column)
		Label(again)
		SUBQ(U32(16/size*64), column)
		rows.move(-16)
		t.writePiece(rows, t.turn(pieces(size)(column)))
		CMPQ(column, t.room)
		JNE(LabelRef(again))
	})
	if !t.listed {
		return
	}
	off := label("off")
	JMP(LabelRef(done))
	Label(apart)
	VMOVDQU16(pairedWords, words)
	CMPQ(t.show.on, Imm(0))
	JEQ(LabelRef(off))
	CMPQ(t.rowBytes(block), Imm(64)) // shorter ones take as long this way, or longer
	JLE(LabelRef(off))
	t.sized(block, func(size int) { t.writeSpread(block, size, pieces(size)) })
	JMP(LabelRef(done))
	Label(off)
	t.sized(block, func(size int) { t.writeApart(block, size, pieces(size)) })
	Label(done)
}

// piece is what body makes of the columns of a piece, two in a vector if these are rounded.
func (t *turned) piece(size int, column reg.GPVirtual, words vec, body func(column reg.GPVirtual, n int) []vec) []vec {
	if size == 4 {
		return body(column, 4)
	}
	pairs := t.roundPairs(body(column, 8))
	for _, p := range pairs {
		VPERMW(p, words, p)
	}
	return pairs
}

// from is a copy of a pointer.
func (t *turned) from(p reg.GPVirtual) reg.GPVirtual {
	c := GP64()
	MOVQ(p, c)
	return c
}

func (t *turned) writePiece(rows *sixteenRows, v []vec) {
	for i := range 16 {
		if i < 4 {
			VMOVUPS(v[i].AsX(), rows.row(i))
		} else {
			VEXTRACTF32X4(Imm(uint64(i/4)), v[i%4], rows.row(i))
		}
	}
}

// each runs body on four columns at a time: how far they are in room.
func (t *turned) each(body func(at reg.GPVirtual)) {
	at, end, again := GP64(), t.from(t.cols), label("four")
	XORQ(at, at)
	SHLQ(Imm(6), end)
	Label(again)
	body(at)
	ADDQ(U32(4*64), at)
	CMPQ(at, end)
	JLT(LabelRef(again))
}

// columnNumbers counts; pairedWords takes the words of two rounded columns to the halves of their rows' lanes.
var columnNumbers, pairedWords Mem

func makeTurnedTables() {
	columnNumbers = GLOBL("elementNumbers", 16|8)
	for i := range turnedMost + 16 {
		DATA(i*4, U32(i))
	}
	pairedWords = GLOBL("elementPaired", 16|8)
	for i := range 32 {
		DATA(i*2, U16(i/2+i%2*16))
	}
}
