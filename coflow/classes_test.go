package coflow

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestClasses: every transfer has one, they are few, and a transfer of a more urgent class
// never is one that by its type should wait for the other: control and rows before
// gradients, gradients before inputs, and bulk after all.
func TestClasses(t *testing.T) {
	codes := Classes()
	if len(codes) != 10 || !slices.IsSortedFunc(codes, func(a, b uint8) int { return int(b) - int(a) }) {
		t.Fatalf("classes %v", codes)
	}
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() ID {
		return ID{Type: Type(r.IntN(int(types))), Layer: int16(r.IntN(9) - 1), Epoch: r.Uint32(), Batch: r.Uint32(),
			Backward: r.IntN(2) == 0}
	}
	urgency := []int{0, 0, 1, 2, 3} // of types; control and rows of the first layer share a class
	for range 10_000 {
		a, b := draw(), draw()
		if codes[Class(a)] != StepDSCP(a) {
			t.Fatalf("%v has class %d of %v and is marked %d", a, Class(a), codes, StepDSCP(a))
		}
		if urgency[a.Type] < urgency[b.Type] && Class(a) >= Class(b) {
			t.Fatalf("%v has class %d, %v class %d", a, Class(a), b, Class(b))
		}
	}
}
