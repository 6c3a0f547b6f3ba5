package run

import (
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"starling/cluster"
	"starling/event"
	"starling/report"
	"starling/spec"
	"starling/train"
)

// TestStatesOfNoUse: workers give their state away where a checkpoint is asked for; without,
// those of one process have no worker that could be restarted from it.
func TestStatesOfNoUse(t *testing.T) {
	s := quick(block(t, nil))
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
		c := &clusterRun{spec: spec.Default()}
		c.spec.Cluster.Workers, c.spec.Training.Epochs, c.spec.Checkpoints.Every, c.spec.Checkpoints.Dir = 2, x.epochs,
			x.every, x.dir
		if x.change != nil {
			x.change(&c.spec)
		}
		if x.done > 0 {
			c.from = &start{State: &train.State{Epoch: x.done}}
		}
		if got := c.states(); got != x.want {
			t.Errorf("%+v: %d", x, got)
		}
	}
	s := quick(block(t, nil))
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
	before, within := percent(), 0
	trained(t, quick(block(t, nil)), after(1, func() { within = percent() }))
	if within != garbagePercent || percent() != before {
		t.Errorf("%d%% garbage in a run, want %d; %d after, %d before", within, garbagePercent, percent(), before)
	}
}

// TestSkippedCheckpoints: every checkpoint is either written or named as skipped.
func TestSkippedCheckpoints(t *testing.T) {
	var notes []string
	s := spec.Default()
	s.Checkpoints.Dir, s.Checkpoints.Keep = t.TempDir(), 10
	k := &keeper{spec: &s, events: event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			notes = append(notes, n.Text)
		}
	}), write: make(chan *kept, 1), done: make(chan struct{})}
	blob, err := packTensors(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for epoch := 1; epoch <= 5; epoch++ { // the disk takes none of them meanwhile
		b, _ := blob.Bytes()
		k.enqueue(&kept{from: &checkpoint{Position: cluster.Position{Epoch: epoch},
			History: history{Loss: make([]report.Number, epoch)}}, blob: b})
	}
	go k.save(nil)
	if err := k.close(nil); err != nil {
		t.Fatal(err)
	}
	list, err := cluster.Checkpoints(s.Checkpoints.Dir)
	if err != nil || !slices.Equal(list, []cluster.Position{{Epoch: 5}}) {
		t.Error(list, err)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "4 checkpoints, of epoch 1 to epoch 4, were skipped") {
		t.Errorf("%q", notes)
	}
}
