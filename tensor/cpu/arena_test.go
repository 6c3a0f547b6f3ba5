package cpu

import (
	"bytes"
	"testing"

	"starling/internal/testseed"
)

func take(t *testing.T, a *arena, n int, zero bool) []byte {
	t.Helper()
	b, err := a.take(n, zero)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBlocksServeAgain: memory that came back serves again, what is counted is what is in
// use, and zeroed memory is zero whatever it was before.
func TestBlocksServeAgain(t *testing.T) {
	for _, size := range []int{3000, 40_000, 5 << 20} {
		a := newArena()
		first := take(t, a, size, false)
		for i := range first {
			first[i] = 1
		}
		a.give(first)
		peak := a.peak.Load()
		asked := size - size/10
		again := take(t, a, asked, true)
		if &again[0] != &first[0] {
			t.Errorf("%d bytes were not given out again for %d", size, asked)
		}
		if i := bytes.IndexByte(again[:asked], 1); i >= 0 {
			t.Fatalf("byte %d of %d is not zero", i, asked)
		}
		if in := a.inUse.Load(); in != int64(len(again)) || in > peak || a.peak.Load() != peak {
			t.Errorf("%d in use, %d at most; %d were asked for after %d", in, a.peak.Load(), asked, peak)
		}
		a.give(again)
		large, small := a.Footprint()
		if in := a.inUse.Load(); in != 0 || large+small < peak || min(large, small) != 0 {
			t.Errorf("%d in use, %d and %d were; of %d", in, large, small, size)
		}
		a.close()
	}
}

// TestSmallBlocksKeepTheirSize: a small block does not go for half its size.
func TestSmallBlocksKeepTheirSize(t *testing.T) {
	a := newArena()
	defer a.close()
	large := take(t, a, 40_000, false)
	a.give(large)
	small := take(t, a, 20_000, false)
	if &small[0] == &large[0] {
		t.Error("a block of 40,000 bytes went for 20,000")
	}
	if whole := take(t, a, 40_000, false); &whole[0] != &large[0] || len(whole) < 40_000 {
		t.Errorf("a block of 40,000 bytes came back with %d", len(whole))
	}
}

// TestRegionTwin: blocks of random sizes never share a byte, lie where the first gap of a
// plain map of bytes is, and are one gap in the end. STARLING_SEED repeats what was drawn.
func TestRegionTwin(t *testing.T) {
	r := testseed.Rand(t)
	const size = 300
	g := &region{bytes: make([]byte, size), ready: size}
	var blocks [][]byte
	var taken [size]bool
	for step := range 20_000 {
		if k := len(blocks); k > 0 && r.IntN(2) == 0 {
			i := r.IntN(k)
			b := blocks[i]
			at := place(g, b)
			for j, x := range b {
				if x != byte(at) {
					t.Fatalf("step %d: another block wrote to byte %d of the one at %d", step, j, at)
				}
				taken[at+j] = false
			}
			g.give(b)
			blocks[i] = blocks[k-1]
			blocks = blocks[:k-1]
			continue
		}
		n := 1 + r.IntN(40)
		want := firstFit(taken[:], n)
		b, used, err := g.take(n)
		if err != nil || (b == nil) != (want < 0) {
			t.Fatalf("step %d: %d bytes: %v, %v; they fit at %d", step, n, b, err, want)
		}
		if b == nil {
			continue
		}
		at := place(g, b)
		if at != want || len(b) != n || cap(b) != n || bytes.IndexFunc(b[used:], func(c rune) bool { return c != 0 }) >= 0 {
			t.Fatalf("step %d: %d bytes, of which %d are used, are at %d and not at %d: %v", step, n, used, at, want, b)
		}
		for j := range b {
			b[j], taken[at+j] = byte(at), true
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		g.give(b)
	}
	if len(g.gaps) != 1 || g.gaps[0] != (span{0, g.top}) {
		t.Errorf("gaps %v of %d bytes after all came back", g.gaps, g.top)
	}
}

// place is where a block begins in its region.
func place(g *region, b []byte) int {
	for i := range g.bytes {
		if &g.bytes[i] == &b[0] {
			return i
		}
	}
	return -1
}

// firstFit is the first place of n bytes that are free; -1: there is none.
func firstFit(taken []bool, n int) int {
	run := 0
	for i, t := range taken {
		if run++; t {
			run = 0
		}
		if run == n {
			return i - n + 1
		}
	}
	return -1
}
