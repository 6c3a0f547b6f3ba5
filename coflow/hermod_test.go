package coflow

import (
	"slices"
	"testing"
)

// The three cases of table 5.3, and inputs fetched ahead.
func TestHermod(t *testing.T) {
	want := []ID{
		{Type: Control, Epoch: 9, Batch: 9},
		{Type: Inputs, Epoch: 1, Batch: 1, Layer: 1}, // drawn from the last layer down
		{Type: Inputs, Epoch: 1, Batch: 1, Layer: 0},
		{Type: Inputs, Epoch: 1, Batch: 1, Layer: -1},
		{Type: Rows, Epoch: 1, Batch: 1, Layer: 0},
		{Type: Rows, Epoch: 1, Batch: 1, Layer: 1},
		{Type: Rows, Epoch: 1, Batch: 1, Layer: 1, Backward: true},
		{Type: Rows, Epoch: 1, Batch: 1, Layer: 0, Backward: true},
		{Type: Params, Epoch: 1, Batch: 1, Layer: 0, Backward: true}, // case II; and III with what follows
		{Type: Inputs, Epoch: 1, Batch: 2, Layer: 0},
		{Type: Rows, Epoch: 1, Batch: 2, Layer: 0},
		{Type: Params, Epoch: 1, Batch: 1, Layer: 1, Backward: true},
		{Type: Rows, Epoch: 1, Batch: 2, Layer: 1},
		{Type: Inputs, Epoch: 1, Batch: 3, Layer: 0},
		{Type: Rows, Epoch: 2, Layer: 0},
		{Type: Bulk},
	}
	for i := range want {
		for j := range want {
			if got := Hermod.Before(want[i], want[j]); got != (i < j) {
				t.Errorf("Before(%v; %v) = %v", want[i], want[j], got)
			}
		}
	}
}

func TestHermodDSCP(t *testing.T) {
	order := []uint8{
		HermodDSCP(0, true, 0), HermodDSCP(0, true, 1), HermodDSCP(0, false, 0), HermodDSCP(1, true, 3),
		HermodDSCP(6, true, 0), HermodDSCP(7, true, 3), HermodDSCP(7, false, 0), HermodDSCP(90, false, 90),
	}
	if !slices.IsSortedFunc(order, func(a, b uint8) int { return int(b) - int(a) }) {
		t.Errorf("code points %v are not in the order of urgency", order)
	}
	if order[0] != 63 || order[len(order)-1] != 0 {
		t.Errorf("code points %v, want 63 to 0", order)
	}
}
