package multilevel

import (
	"math/bits"
	"slices"
	"testing"
	"unsafe"

	"starling/rng"
)

// Arrays of all sizes are taken, shrunk and given back in random order. Each is zero at first
// if it was to be, and keeps what was written to it: none overlaps another. In the end all
// free blocks have been joined again.
func TestBuddyArena(t *testing.T) {
	type array struct {
		bytes []byte
		mark  byte
	}
	for seed := range uint64(8) {
		r, step := rng.New(seed), uint64(0)
		draw := func(n int) int { step++; return r.IntN(step, n) }
		var a buddyArena
		var live []array
		kept := func(x array) bool { return !slices.ContainsFunc(x.bytes, func(b byte) bool { return b != x.mark }) }
		for range 3000 {
			switch draw(5) {
			case 0, 1:
				n := 1 + draw(1<<draw(19))
				clean := draw(3) > 0
				x := array{unsafe.Slice((*byte)(a.take(n, clean)), n), byte(1 + draw(255))}
				if clean && slices.ContainsFunc(x.bytes, func(b byte) bool { return b != 0 }) {
					t.Fatalf("seed %d: %d bytes are not all zero", seed, n)
				}
				for i := range x.bytes {
					x.bytes[i] = x.mark
				}
				live = append(live, x)
			case 2:
				if len(live) > 0 {
					x := &live[draw(len(live))]
					x.bytes = x.bytes[:draw(len(x.bytes))+1]
					a.shrink(unsafe.Pointer(&x.bytes[0]), len(x.bytes))
				}
			default:
				if len(live) > 0 {
					i := draw(len(live))
					if !kept(live[i]) {
						t.Fatalf("seed %d: an array was written to by another", seed)
					}
					if !a.give(unsafe.Pointer(&live[i].bytes[0])) {
						t.Fatalf("seed %d: the arena does not know its own", seed)
					}
					live = slices.Delete(live, i, i+1)
				}
			}
		}
		for _, x := range live {
			if !kept(x) {
				t.Fatalf("seed %d: an array was written to by another", seed)
			}
			a.give(unsafe.Pointer(&x.bytes[0]))
		}
		for i, c := range a.chunks {
			for at := 0; at < c.front; {
				m := bits.Len(uint(c.front^at)) - 1 // the largest block that can begin here
				if c.state[at>>unitBits] != uint8(m)|isFree {
					t.Fatalf("seed %d: chunk %d of %d is fragmented at %d of %d", seed, i, len(a.chunks), at, c.front)
				}
				at += 1 << m
			}
		}
		if foreign := make([]byte, 1); a.give(unsafe.Pointer(&foreign[0])) {
			t.Error("the arena took memory that is not its own")
		}
		a.free()
	}
}

// Freed blocks are reused: many arrays, few at a time, stay within one chunk.
func TestBuddyArenaReuses(t *testing.T) {
	var a buddyArena
	defer a.free()
	for i := range 10_000 {
		n := 1 + i*37%(arenaLimit-1)
		x, y := a.take(n, true), a.take(n/2+1, false)
		a.shrink(x, n/3)
		a.give(x)
		a.give(y)
	}
	if len(a.chunks) != 1 {
		t.Errorf("%d chunks", len(a.chunks))
	}
}
