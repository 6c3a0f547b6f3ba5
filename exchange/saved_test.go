package exchange

import (
	"fmt"
	"testing"

	"starling/nn"
	"starling/tensor"
	"starling/train/traintest"
)

// TestRecallOnce: what was saved is of the first matrix of its name, and then forgotten.
func TestRecallOnce(t *testing.T) {
	dev := traintest.Ref()
	saved := func(name string) nn.Tensor {
		return nn.Tensor{Name: name, Shape: []int{2, 3}, Data: []float64{1, 2, 3, 4, 5, 6}}
	}
	w := &Worker{Dev: dev, Saved: &Saved{Tensors: []nn.Tensor{saved("a"), saved("b")}}}
	if w.Recall("b", dev.New(tensor.F64, 3, 2)) || w.Recall("b", dev.New(tensor.F64, 2, 3)) {
		t.Error("a matrix of another shape, or asked for once more, was recalled")
	}
	m := dev.New(tensor.F64, 2, 3)
	if !w.Recall("a", m) {
		t.Error("nothing was recalled")
	}
	if got := traintest.Numbers(dev, m); fmt.Sprint(got) != "[1 2 3 4 5 6]" || len(w.Saved.Tensors) != 0 {
		t.Errorf("%v, and %v is left", got, w.Saved.Tensors)
	}
}

// TestFiguresAreKept: a resumed run chooses from the figures it began with, not from those
// of another moment.
func TestFiguresAreKept(t *testing.T) {
	begun := &Worker{Saved: &Saved{}}
	want, err := begun.Figures("rates", 2, func() ([]float64, error) { return []float64{1, 2.5}, nil })
	if err != nil {
		t.Fatal(err)
	}
	again := &Worker{Saved: &Saved{Tensors: begun.Saved.Figures}}
	fresh := func() ([]float64, error) { return []float64{3}, nil }
	got, err := again.Figures("rates", 2, fresh)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || len(again.Saved.Figures) != 1 {
		t.Errorf("%v, %v, kept %v", got, err, again.Saved.Figures)
	}
	if got, _ := again.Figures("rates", 1, fresh); got[0] != 3 {
		t.Errorf("figures of another model: %v", got)
	}
}
