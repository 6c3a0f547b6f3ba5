package run

import (
	"sync/atomic"
	"testing"

	"starling/event"
)

// TestStatesOfNoUse: workers give their state away where a checkpoint is asked for; without,
// those of one process have nobody to start again from it.
func TestStatesOfNoUse(t *testing.T) {
	s := quick(block(t, nil))
	s.Workers, s.InProcess, s.Epochs, s.CheckpointEvery, s.Strategy = 2, true, 4, 2, "pipegcn"
	for dir, want := range map[string]int64{"": 0, t.TempDir(): 4} {
		s.CheckpointDir = dir
		var saved atomic.Int64
		trained(t, s, event.Func(func(e event.Event) {
			if e, ok := e.(event.Span); ok && e.Kind == "step" && e.Name == "save" {
				saved.Add(1)
			}
		}))
		if saved.Load() != want {
			t.Errorf("checkpoints in %q: %d times a worker gave its state away, want %d", dir, saved.Load(), want)
		}
	}
}
