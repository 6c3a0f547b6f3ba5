package supervise

import (
	"slices"
	"strings"
	"testing"

	"starling/cluster"
	"starling/event"
	"starling/report"
	"starling/resume"
	"starling/spec"
)

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
	blob, err := resume.PackTensors(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for epoch := 1; epoch <= 5; epoch++ { // the disk takes none of them meanwhile
		b, _ := blob.Bytes()
		k.enqueue(&kept{from: &resume.StateHeader{Position: cluster.Position{Epoch: epoch},
			History: resume.History{Loss: make([]report.Number, epoch)}}, blob: b})
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
