package tensor

import "testing"

// TestBlocksServeAgain: blocks that came back serve requests of about their size, what is
// counted is what was asked for, and zeroed memory is zero whatever it was before.
func TestBlocksServeAgain(t *testing.T) {
	for _, size := range []int{3000, 40_000, 5 << 20} {
		a := newArena()
		large := a.take(size, false)
		for i := range large {
			large[i] = 1
		}
		a.give(large)
		peak := a.peak.Load()
		asked := size - size/10
		again := a.take(asked, true)
		if &again[0] != &large[0] {
			t.Errorf("%d bytes were not given out again for %d", size, asked)
		}
		for i, x := range again[:asked] {
			if x != 0 {
				t.Fatalf("byte %d of %d is %d", i, asked, x)
			}
		}
		if in := a.inUse.Load(); in != int64(sizeClass(asked)) || a.peak.Load() != peak {
			t.Errorf("%d in use, %d at most; %d were asked for after %d", in, a.peak.Load(), asked, peak)
		}
		a.give(again)
		small := a.take(size/2, false)
		if &small[0] == &large[0] {
			t.Errorf("a block of %d bytes went for %d", size, size/2)
		}
		if whole := a.take(size, false); &whole[0] != &large[0] || len(whole) < size {
			t.Errorf("a block of %d bytes came back with %d", size, len(whole))
		}
		a.give(small)
		if in := a.inUse.Load(); in != int64(sizeClass(size)) {
			t.Errorf("%d in use, %d were asked for", in, size)
		}
		a.close()
	}
}
