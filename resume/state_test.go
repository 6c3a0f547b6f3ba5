package resume

import (
	"fmt"
	"math"
	"testing"

	"starling/nn"
	"starling/train"
)

// TestStatePacks: what a worker is sent to go on from is what was read.
func TestStatePacks(t *testing.T) {
	st := &train.State{Epoch: 3, Steps: 4, Model: []nn.Tensor{{Name: "a/b", Shape: []int{2}, Data: []float64{1, 2}}},
		Optim:   []nn.Tensor{{Name: "m", Shape: []int{1}, Data: []float64{3}}},
		History: train.History{Loss: []float64{1, 2, math.NaN()}, BestEpoch: -1}}
	c, packed, err := PackState(st)
	if err != nil {
		t.Fatal(err)
	}
	blob, err := packed.Bytes()
	if err != nil || int64(len(blob)) != packed.Size {
		t.Fatalf("%d bytes, said to be %d; %v", len(blob), packed.Size, err)
	}
	back, err := UnpackState(c, blob, nil)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(back.Model, back.Optim, back.Best, back.Epoch, back.Steps, back.History.Loss) != fmt.Sprint(st.Model,
		st.Optim, st.Best, st.Epoch, st.Steps, st.History.Loss) {
		t.Errorf("%+v, want %+v", back, st)
	}
}
