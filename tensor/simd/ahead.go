package simd

// Kernels that read rows from the first to the last ask for them across pages: of each four pages line 0 of all, then line
// 1 of all, and so on, while the four pages before are read. In order, one page is looked up at a time, and what the
// processor asks for by itself starts anew with each.
const askWindow = 4 << 12

// acrossPages is the line of a first page that is asked for where in order it would be p.
func acrossPages(p uintptr) uintptr { return p&^(askWindow-1) + p%askWindow/4&^63 }

// askAhead is where asking begins for rows from p on that are read so many bytes at a time, in any order, and how far ahead
// of those being read it ends. Pieces that fill windows, and equal parts of one, never reach into the next.
func askAhead(p uintptr, bytes int) (from uintptr, lead int) {
	ahead := bytes + askWindow
	if askWindow%bytes == 0 || bytes%askWindow == 0 {
		ahead = max(bytes, askWindow)
	}
	return acrossPages(p + uintptr(ahead)), ahead + bytes
}
