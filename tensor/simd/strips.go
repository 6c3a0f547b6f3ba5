package simd

import "unsafe"

// Strips16 is a product of bfloat16 rows on the matrix unit, C = A·B rounded to bfloat16, in units of StripsRows
// rows: all steps, from padding a row to storing lines of the result, go on at once. B is packed as for Tiles16, of
// Padded numbers a row. C is without gaps where it has up to StripsWide columns, else they are a multiple of 32.
type Strips16 struct {
	A, B, C, room unsafe.Pointer
	unit, next    int // bytes of a unit of A, and of what is made of C in a step
	Units         int
	panels        int     // of columns
	blocks, last  int     // of depth; bytes that the last block is nearer than 64 to the one before
	row, sumRow   int     // bytes from one row to the next, of A as tiles read it, and of sums
	lines, jump   int     // of C that a step has; of more columns, bytes from the end of a row to the next
	Past          int     // whether lines, which are WholeLines, go past the caches
	from          uintptr // where asking for rows begins, across pages
	lead, ask     int     // how far ahead of a unit they are asked for, and how many fours of lines in a step
	// Rows of an odd number are padded: so many steps a unit, each of so many bytes read and written; words that are read
	// and those that are written are masks, and which goes where.
	steps, take, put int
	taken, kept      uint64
	order            [32]uint16
	config           tileConfig

	ARow, CRow  int // bytes from one row to the next
	Cols, Depth int
	Room        []float32 // StripsRoom numbers
}

// StripsRows is how many rows a unit has, StripsWide how many columns may be without being whole panels, and StripsRoom how
// many numbers the room takes.
const (
	StripsRows = 32
	StripsWide = 48
	StripsRoom = (2*2<<10 + 2*17<<10) / 4
)

// Padded is how many numbers a row has that the unit multiplies.
func (t *Strips16) Padded() int {
	if t.Depth < 32 {
		return t.Depth + t.Depth&1
	}
	return t.Depth
}

// WholeLines reports whether lines of C are lines of memory if it begins with one.
func (t *Strips16) WholeLines() bool { return t.Cols <= StripsWide || t.CRow%64 == 0 }

// Run computes the product.
func (t *Strips16) Run(level Level) {
	if t.Units == 0 {
		return
	}
	if level >= AMX {
		t.run()
		return
	}
	depth := t.Padded()
	for i := range t.Units * StripsRows {
		a := unsafe.Slice((*uint16)(unsafe.Add(t.A, i*t.ARow)), t.Depth)
		c := unsafe.Slice((*uint16)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			panel := unsafe.Slice((*uint16)(unsafe.Add(t.B, j/32*PanelSize(depth)*2)), PanelSize(depth))
			var sum float32
			for k, x := range a {
				sum += FromBF16(x) * FromBF16(panel[pairPlace(k, j&31, depth)])
			}
			c[j] = ToBF16(sum)
		}
	}
}

// stripsMost is how many columns are made at a time: sums of sixteen rows of them, twice, stay in the nearest cache.
const stripsMost = 256

func (t *Strips16) run() {
	t.room = unsafe.Pointer(&t.Room[:StripsRoom][0])
	t.unit, t.row = StripsRows*t.ARow, t.ARow
	depth := t.Padded()
	t.steps = 0
	if depth != t.Depth {
		t.pad(depth)
	}
	t.blocks, t.last = (depth+31)/32, 0
	if depth > 32 {
		t.last = 2*depth - 64*t.blocks
	}
	t.from, t.lead = askAhead(uintptr(t.A), t.unit)
	if t.Cols > StripsWide {
		t.runWide(depth)
		return
	}
	tiles := (t.Cols + 15) / 16
	t.next, t.sumRow, t.lines = StripsRows*t.CRow, 4*t.Cols, t.Cols
	t.ask = 1 + t.unit/256/(2*t.blocks)
	t.configure(tiles, t.Cols-16*tiles+16, min(32, depth))
	runStrips16(t, tiles)
}

// runWide makes whole panels of 32 columns, some at a time.
func (t *Strips16) runWide(depth int) {
	t.configure(2, 16, min(32, depth))
	t.next = 16 * t.CRow
	b, c := t.B, t.C
	for lo := 0; lo < t.Cols; lo += stripsMost {
		t.panels = min(stripsMost, t.Cols-lo) / 32
		// Rows of sums have an odd number of lines: else those of a tile would share a few cache sets.
		t.sumRow, t.lines, t.jump = 128*t.panels+64, 16*t.panels, t.CRow-64*t.panels
		t.ask = 1 + t.unit/256/(2*t.blocks*t.panels)
		t.B, t.C = unsafe.Add(b, 2*PanelSize(depth)*(lo/32)), unsafe.Add(c, 2*lo)
		runStripsWide(t)
	}
	t.B, t.C = b, c
}

// pad has as many rows padded in a step as fit a vector; those with gaps between them one by one.
func (t *Strips16) pad(depth int) {
	rows := 1
	for t.ARow == 2*t.Depth && 2*rows*depth <= 32 {
		rows *= 2
	}
	t.row, t.steps, t.take, t.put = 2*depth, StripsRows/rows, rows*t.ARow, 2*rows*depth
	t.taken, t.kept = 1<<(rows*t.Depth)-1, 0
	for i := range rows {
		t.kept |= (1<<t.Depth - 1) << (i * depth)
		for k := range t.Depth {
			t.order[i*depth+k] = uint16(i*t.Depth + k)
		}
	}
}

// configure sets sizes of tiles: sums, two of A, and of B the last ones. The last of sums and of B have so many columns.
func (t *Strips16) configure(tiles, last, depth int) {
	t.config.palette = 1
	left := 4
	if tiles == 3 {
		left = 3
	}
	for i := range 8 {
		t.config.rows[i], t.config.bytes[i] = 16, 64
		switch {
		case i == left || i == left+1:
			t.config.bytes[i] = uint16(2 * depth)
		case i == 7 || i < left && i%tiles == tiles-1:
			t.config.bytes[i] = uint16(4 * last)
		}
		if i >= 8-tiles {
			t.config.rows[i] = byte(depth / 2)
		}
	}
}
