package rows

import "sort"

// Pieces of files, in ascending order, that have some rows. Neighbours are read together with the gap between them
// where reading that costs less than another request.
const (
	pieceBytes = 256 << 10
	// gapBytes is what a disk reads in the time that a request takes by itself: about that of a solid-state disk of
	// 1 GB/s and 50,000 requests a second.
	gapBytes = 16 << 10
)

// piece is a part of a file with rows lo to hi-1, by number, among them all that are wanted of them.
type piece struct {
	file   int
	at     int64 // in the file, of its first byte
	bytes  int   // whole blocks
	need   int   // of these, as far as the last row
	lo, hi uint32
}

// layout is how rows are laid out in files.
type layout struct {
	width int
	files []opened
}

// fileOf is the file that has a row. Files are in the order of rows.
func (l *layout) fileOf(v uint32) int {
	return sort.Search(len(l.files)-1, func(k int) bool { return v < l.files[k+1].First })
}

// largest is the length of the longest piece.
func (l *layout) largest() int { return int(up(int64(max(pieceBytes, l.width)))) + 2*block }

// grower makes pieces of rows that are added in ascending order.
type grower struct {
	of   *layout
	list []piece
	each func(p piece) // where the list is not kept
	now  piece
	open bool
	end  int64 // of its last row
}

// add adds a row; one that was added last may be added again.
func (g *grower) add(v uint32) {
	file := 0
	if g.open {
		file = g.now.file
		if f := &g.of.files[file]; v >= f.First+uint32(f.Rows) {
			file = g.of.fileOf(v)
		}
	} else {
		file = g.of.fileOf(v)
	}
	f, width := &g.of.files[file], int64(g.of.width)
	first := f.Offset + int64(v-f.First)*width
	if g.open && (file != g.now.file || first-g.end > gapBytes || first+width-g.now.at > max(pieceBytes, width)) {
		g.finish()
	}
	if !g.open {
		g.now, g.open = piece{file: file, at: first / block * block, lo: v}, true
	}
	g.now.hi, g.end = v+1, first+width
}

// finish ends the piece at hand.
func (g *grower) finish() {
	if !g.open {
		return
	}
	g.open = false
	g.now.need = int(g.end - g.now.at)
	g.now.bytes = int(up(int64(g.now.need)))
	if g.each != nil {
		g.each(g.now)
		return
	}
	g.list = append(g.list, g.now)
}

// merged calls f for the rows of sorted lists in ascending order, each once.
func merged(lists [][]uint32, f func(v uint32)) {
	h := make(heads, 0, len(lists))
	for _, l := range lists {
		if len(l) > 0 {
			h = append(h, l)
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	last, some := uint32(0), false
	for len(h) > 0 {
		if v := h[0][0]; !some || v != last {
			f(v)
			last, some = v, true
		}
		if h[0] = h[0][1:]; len(h[0]) == 0 {
			h[0] = h[len(h)-1]
			h = h[:len(h)-1]
		}
		h.down(0)
	}
}

// heads is a heap of lists by their first entries.
type heads [][]uint32

func (h heads) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1][0] < h[c][0] {
			c++
		}
		if h[i][0] <= h[c][0] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// piecesOf are the pieces with the rows of sorted lists.
func (l *layout) piecesOf(lists [][]uint32) []piece {
	g := &grower{of: l}
	merged(lists, g.add)
	g.finish()
	return g.list
}

// costOf is about how many bytes a disk reads in the time that pieces take.
func costOf(list []piece) (n int64) {
	for i := range list {
		n += int64(list[i].bytes) + gapBytes
	}
	return n
}

// sweep reads pieces and calls each for them, in order, with their bytes from the first row that a piece begins in.
func (l *layout) sweep(e engine, buffers [][]byte, list []piece, stats *Stats,
	each func(p *piece, b []byte) error) error {
	requests := make([]request, len(buffers))
	started := 0
	start := func() error {
		p, r := &list[started], &requests[started%len(buffers)]
		*r = request{file: l.files[p.file].f, at: p.at, buf: buffers[started%len(buffers)][:p.bytes], need: p.need}
		started++
		stats.read(p.bytes)
		return e.start(r)
	}
	for i := range list {
		for started < len(list) && started < i+len(buffers) {
			if err := start(); err != nil {
				return err
			}
		}
		r := &requests[i%len(buffers)]
		if err := finish(e, r); err != nil {
			return err
		}
		if err := each(&list[i], r.buf); err != nil {
			return err
		}
	}
	return nil
}

// row is where a row is in a piece.
func (l *layout) row(p *piece, b []byte, v uint32) []byte {
	f := &l.files[p.file]
	from := int(f.Offset + int64(v-f.First)*int64(l.width) - p.at)
	return b[from : from+l.width]
}
