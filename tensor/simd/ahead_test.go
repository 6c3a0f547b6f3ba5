package simd

import "testing"

// TestAskAhead walks as the assembly does (asm/lanes/across.go): before a piece of rows is read all its lines have been
// asked for, but for those of the first pages, and none twice.
func TestAskAhead(t *testing.T) {
	const base = 1 << 30
	for _, bytes := range []int{192, 1000, 3 << 10, 8 << 10, 10_000, askWindow, 3 * 2408, 32 * 1204, 2 * askWindow} {
		start := base
		if askWindow%bytes > 0 && bytes%askWindow > 0 {
			start += 520
		}
		at := start
		from, lead := askAhead(uintptr(at), bytes)
		asked := map[uintptr]bool{}
		first := from&^(askWindow-1) + askWindow // what lies before was partly for who read before
		for ; at < start+20*askWindow; at += bytes {
			for line := uintptr(at) &^ 63; line < uintptr(at+bytes); line += 64 {
				if line >= first && !asked[line] {
					t.Fatalf("pieces of %d: the line at %d of the piece at %d is not asked for", bytes, line-base, at-base)
				}
			}
			for end := acrossPages(uintptr(at + lead)); from < end; {
				for i := range uintptr(4) {
					if asked[from+i<<12] {
						t.Fatalf("pieces of %d: the line at %d is asked for twice", bytes, from+i<<12-base)
					}
					asked[from+i<<12] = true
				}
				if from += 64; from&4095 == 0 {
					from += 3 << 12
				}
			}
		}
	}
}
