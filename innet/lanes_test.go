package innet

import (
	"math"
	"slices"
	"testing"

	"starling/internal/testseed"
)

// TestAddLanes: instructions for units add as lane by lane does, whatever the length and wherever a lane overflows.
func TestAddLanes(t *testing.T) {
	if !canAddUnits {
		t.Skip("this processor has no instructions for units")
	}
	r := testseed.Rand(t)
	overflows := 0
	for range 2000 {
		n := r.IntN(9 * UnitLanes)
		a, b := make([]int32, n), make([]int32, n)
		for i := range a {
			a[i], b[i] = int32(r.Uint32())>>1, int32(r.Uint32())>>1
		}
		if n > 0 && r.IntN(2) == 0 {
			i := r.IntN(n)
			a[i], b[i] = math.MaxInt32-int32(r.IntN(3)), int32(r.IntN(5))
			if r.IntN(2) == 0 {
				a[i], b[i] = ^a[i], -b[i]
			}
		}
		want := slices.Clone(a)
		over := addEach(want, b)
		if over {
			overflows++
		}
		if got := addLanes(a, b); got != over || !slices.Equal(a, want) {
			t.Fatalf("%d lanes: overflow %v, want %v", n, got, over)
		}
	}
	if overflows == 0 || overflows == 2000 {
		t.Errorf("%d of 2000 overflowed", overflows)
	}
}

// BenchmarkScattered is rows of 512 bytes for 10 aggregators each, anywhere in 32 MiB of them.
func BenchmarkScattered(b *testing.B) {
	const slots, rows, units = 1 << 16, 4096, 4
	r := newRand(1)
	t := &Table{Job: 1, Units: units, Route: ports(2), Below: ports(2), Above: NoPort,
		Blocks: []TableBlock{{Ptr: []uint32{0}, Slots: make([]TableSlot, slots)}}}
	k := &t.Blocks[0]
	for i := range k.Slots {
		k.Slots[i].Need = 1 << 15
	}
	for range rows {
		k.Port = append(k.Port, 0)
		for range 10 {
			k.Into = append(k.Into, r.Uint32N(slots))
		}
		k.Ptr = append(k.Ptr, uint32(len(k.Into)))
	}
	s, body := NewSwitch(t), make([]int32, units*UnitLanes)
	for i := range b.N {
		s.Handle(0, &Packet{Header: Header{Source: uint32(i % rows), Round: uint32(1 + i/rows), Job: 1}, Body: body},
			func(int, *Packet) {})
	}
}
