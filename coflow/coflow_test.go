package coflow

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestByType(t *testing.T) {
	want := []ID{
		{Type: Control, Epoch: 9},
		{Type: Rows, Epoch: 1, Layer: 0},
		{Type: Rows, Epoch: 1, Layer: 1},
		{Type: Rows, Epoch: 1, Layer: 1, Backward: true},
		{Type: Rows, Epoch: 1, Layer: 0, Backward: true},
		{Type: Rows, Epoch: 1, Batch: 1, Layer: 0},
		{Type: Rows, Epoch: 2, Layer: 0},
		{Type: Params, Epoch: 0, Layer: 2, Backward: true},
		{Type: Params, Epoch: 0, Layer: 1, Backward: true},
		{Type: Inputs, Epoch: 1, Batch: 3, Layer: 0}, // drawn before rows come, also those of older batches
		{Type: Inputs, Epoch: 1, Batch: 3, Layer: 1},
		{Type: Inputs, Epoch: 1, Batch: 4, Layer: 1},
		{Type: Inputs, Epoch: 1, Batch: 2, Layer: -1},
		{Type: Inputs, Epoch: 1, Batch: 3, Layer: -1},
		{Type: Bulk},
	}
	for i := range want {
		for j := range want {
			if got := ByType.Before(want[i], want[j]); got != (i < j) {
				t.Errorf("Before(%v; %v) = %v", want[i], want[j], got)
			}
		}
	}
	shuffled := slices.Clone(want)
	rand.New(rand.NewPCG(1, 3)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	slices.SortFunc(shuffled, func(a, b ID) int {
		if ByType.Before(a, b) {
			return -1
		}
		return 1
	})
	if !slices.Equal(shuffled, want) {
		t.Errorf("sorted: %v", shuffled)
	}
}

// Every order is a strict weak one: what it does not tell apart is equal to the same others.
func TestStrictWeakOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	id := func() ID {
		return ID{Type: Type(r.IntN(int(types))), Epoch: uint32(r.IntN(2)), Batch: uint32(r.IntN(2)) << 20,
			Layer:    int16(r.IntN(3)) - 1,
			Backward: r.IntN(2) == 0}
	}
	for _, o := range Orders() {
		if OrderNamed(o.String()) != o {
			t.Errorf("%v is not found by its name", o)
		}
		equal := func(a, b ID) bool { return !o.Before(a, b) && !o.Before(b, a) }
		for range 20000 {
			a, b, c := id(), id(), id()
			switch {
			case o.Before(a, b) && o.Before(b, a):
				t.Fatalf("%v: %v and %v before each other", o, a, b)
			case o.Before(a, b) && o.Before(b, c) && !o.Before(a, c), equal(a, b) && equal(b, c) && !equal(a, c):
				t.Fatalf("%v: not transitive: %v; %v; %v", o, a, b, c)
			}
		}
	}
	if OrderNamed("lifo") != nil {
		t.Error("there is an order lifo")
	}
}
