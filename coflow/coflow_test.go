package coflow

import (
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
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
		{Type: Bulk},
	}
	for i := range want {
		for j := range want {
			if got := Before(want[i], want[j]); got != (i < j) {
				t.Errorf("Before(%v; %v) = %v", want[i], want[j], got)
			}
		}
	}
	shuffled := []ID{want[5], want[9], want[0], want[3], want[8], want[1], want[7], want[2], want[6], want[4]}
	slices.SortFunc(shuffled, func(a, b ID) int {
		if Before(a, b) {
			return -1
		}
		return 1
	})
	if !slices.Equal(shuffled, want) {
		t.Errorf("sorted: %v", shuffled)
	}
}
