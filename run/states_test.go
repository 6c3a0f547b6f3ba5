package run

import (
	"runtime/debug"
	"sync/atomic"
	"testing"

	"starling/event"
	"starling/setup"
	"starling/setup/setuptest"
)

// TestStatesOfNoUse: workers give their state away where a checkpoint is asked for; without,
// those of one process have no worker that could be restarted from it.
func TestStatesOfNoUse(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.InProcess, s.Training.Epochs, s.Checkpoints.Every, s.Strategy = 2, true, 4, 2,
		"pipegcn"
	for dir, want := range map[string]int64{"": 0, t.TempDir(): 4} {
		s.Checkpoints.Dir = dir
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

// TestStatesPlannedByEpochs: the plan of a run has the memory of its states.
func TestStatesPlannedByEpochs(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Strategy, s.Checkpoints.Every = 2, "pipegcn", 1
	states := func(epochs int) int64 {
		s.Training.Epochs = epochs
		_, p, err := DryRun(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p.States
	}
	if none, one, two, more := states(1), states(2), states(3), states(4); !(none < one && one < two && two == more) {
		t.Errorf("states take %d, %d, %d and %d bytes in runs of one to four epochs", none, one, two, more)
	}
}

// TestLittleGarbage: while a run trains, its heap is collected as its plan says, and then
// as before.
func TestLittleGarbage(t *testing.T) {
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	t.Setenv("GOGC", "")
	before, within, want := percent(), 0, int(setup.WithGarbage(100)-100)
	trained(t, setuptest.Quick(setuptest.Block(t, nil)), after(1, func() { within = percent() }))
	if within != want || percent() != before {
		t.Errorf("%d%% garbage in a run, want %d; %d after, %d before", within, want, percent(), before)
	}
}
