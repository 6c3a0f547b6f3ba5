package mini

import (
	"testing"

	"starling/train"
)

// TestUnfilled: buffers that a run has and its dry run, of a few batches, does not are counted, and no more than there
// are batches.
func TestUnfilled(t *testing.T) {
	t.Parallel()
	dry := newPrefetcher(2, 8, []drawer{none{}, none{}}, nil, train.State{}, 2)
	defer dry.stop()
	dry.fill()
	tasks := &dags{most: 33, free: make(chan *dag, 4)}
	for _, c := range []struct {
		of      source
		batches int
		want    int
	}{{dry, 100, 11 - 4}, {dry, 6, 2}, {tasks, 100, 29}, {tasks, 5, 1}} {
		if got := c.of.unfilled(c.batches); got != c.want {
			t.Errorf("%T of %d batches: %d buffers more than its dry run, want %d", c.of, c.batches, got, c.want)
		}
	}
	d := &distributed{all: 50, prefetch: dry, batches: &batches{held: 1000}}
	if got := d.Unfilled(); got != 7000 {
		t.Errorf("%d bytes, want 7 buffers of 1000", got)
	}
}

// none draws nothing.
type none struct{}

func (none) draw(*batch, int, int) error { return nil }
