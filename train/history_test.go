package train

import "testing"

// Workers of one process continue from one state, each with a history of its own.
func TestHistoriesApart(t *testing.T) {
	kept := History{Loss: make([]float64, 1, 8), Measured: make([]int, 1, 8)}
	a, b := kept.apart(), kept.apart()
	a.Loss, b.Loss = append(a.Loss, 1), append(b.Loss, 2)
	a.Measured, b.Measured = append(a.Measured, 1), append(b.Measured, 2)
	if a.Loss[1] != 1 || a.Measured[1] != 1 || len(kept.Loss) != 1 {
		t.Error(a, b)
	}
}
