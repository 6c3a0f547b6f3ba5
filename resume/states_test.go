package resume

import (
	"testing"

	"starling/spec"
	"starling/train"
)

// TestStatesPlanned: as many states are planned as there are at once.
func TestStatesPlanned(t *testing.T) {
	for _, x := range []struct {
		epochs, done int
		every        spec.Interval
		dir          string
		change       func(*spec.Spec)
		want         int64
	}{
		{epochs: 10, every: 10, want: 0},
		{epochs: 11, every: 10, want: 1},
		{epochs: 21, every: 10, want: 2},
		{epochs: 200, every: 10, want: 2},
		{epochs: 200, every: 0, want: 0},
		{epochs: 200, every: 10, want: 0, change: func(s *spec.Spec) { s.Cluster.OnFailure = "stop" }},
		{epochs: 200, every: 10, want: 0, change: func(s *spec.Spec) { s.Cluster.InProcess = true }},
		{epochs: 200, every: 10, dir: "ck", want: 3, change: func(s *spec.Spec) { s.Cluster.InProcess = true }},
		{epochs: 10, every: 10, dir: "ck", want: 1},
		{epochs: 11, every: 10, dir: "ck", want: 2},
		{epochs: 200, every: 0, dir: "ck", want: 1},
		{epochs: 20, every: 10, dir: "ck", done: 15, want: 2},
		{epochs: 20, every: 10, dir: "ck", done: 5, want: 3},
		{epochs: 1, every: -500, dir: "ck", want: 3, change: func(s *spec.Spec) { s.Mode = "mini" }},
	} {
		s, from := spec.Default(), (*Start)(nil)
		s.Cluster.Workers, s.Training.Epochs, s.Checkpoints.Every, s.Checkpoints.Dir = 2, x.epochs, x.every, x.dir
		if x.change != nil {
			x.change(&s)
		}
		if x.done > 0 {
			from = &Start{State: &train.State{Epoch: x.done}}
		}
		if got := StatesKept(&s, from); got != x.want {
			t.Errorf("%+v: %d", x, got)
		}
	}
}
