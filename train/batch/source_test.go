package batch

import (
	"testing"

	"starling/train"
)

// TestUnfilled: buffers that a run has and its dry run, of a few batches, does not are counted, and no more than there
// are batches.
func TestUnfilled(t *testing.T) {
	t.Parallel()
	dry := NewPrefetcher(2, 8, []Drawer{none{}, none{}}, nil, train.State{}, 2)
	defer dry.Stop()
	dry.Fill()
	for batches, want := range map[int]int{100: 11 - 4, 6: 2} {
		if got := dry.Unfilled(batches); got != want {
			t.Errorf("%d batches: %d buffers more than the dry run, want %d", batches, got, want)
		}
	}
	s := &Strategy{p: &Pipeline{all: 50}, steps: &Steps{Source: dry, held: 1000}}
	if got := s.Unfilled(); got != 7000 {
		t.Errorf("%d bytes, want 7 buffers of 1000", got)
	}
}

// none draws nothing.
type none struct{}

func (none) Draw(*Batch, int, int) error { return nil }
