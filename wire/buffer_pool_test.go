package wire

import (
	"math/rand/v2"
	"testing"
)

// No two have the same buffer, and little is kept.
func TestBufferPool(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var l bufferPool
	type loan struct {
		b    []byte
		mark byte
	}
	var out []loan
	for i := range 3000 {
		if rnd.IntN(2) == 0 || len(out) == 0 {
			size := rnd.IntN(1 << rnd.IntN(22))
			b := l.take(size)
			if b == nil || len(b) != size || cap(b) > max(2*size, 8) {
				t.Fatalf("memory of %d bytes and %d more for %d", len(b), cap(b)-len(b), size)
			}
			mark := byte(i)
			for j := range b {
				b[j] = mark
			}
			out = append(out, loan{b, mark})
			continue
		}
		k := rnd.IntN(len(out))
		for j, x := range out[k].b {
			if x != out[k].mark {
				t.Fatalf("byte %d of %d was written by another goroutine", j, len(out[k].b))
			}
		}
		l.give(out[k].b)
		out[k] = out[len(out)-1]
		out = out[:len(out)-1]
		kept := 0
		for _, b := range l.mu.free {
			kept += cap(b)
		}
		if kept != l.mu.kept || kept > poolBytes {
			t.Fatalf("%d bytes are kept, counted as %d, expected at most %d", kept, l.mu.kept, poolBytes)
		}
	}
	l.give(make([]byte, poolBytes+1))
	if l.mu.kept > poolBytes {
		t.Errorf("%d bytes are kept", l.mu.kept)
	}
}

// What was used last is used first, while it is in the cache.
func TestBufferPoolLastFirst(t *testing.T) {
	var l bufferPool
	a, b := make([]byte, 100), make([]byte, 100)
	l.give(a)
	l.give(b)
	if got := l.take(90); &got[0] != &b[0] || len(got) != 90 {
		t.Error("the memory used last was not used first")
	}
	if got := l.take(40); &got[0] == &a[0] {
		t.Error("more than twice as much as was asked for")
	}
	if got := l.take(0); got == nil {
		t.Error("no memory, expected some of no bytes")
	}
}
