package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/cluster"
	"starling/event"
	"starling/nn"
	"starling/report"
	"starling/resume"
	"starling/spec"
	"starling/train"
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

// TestCachesWrittenByWorkers: a checkpoint has the files that workers wrote, the keeper has none of their bytes, and what
// is not used of them is removed.
func TestCachesWrittenByWorkers(t *testing.T) {
	s := spec.Default()
	s.Cluster.Workers, s.Checkpoints.Dir = 2, filepath.Join(t.TempDir(), "ck")
	if err := os.Mkdir(s.Checkpoints.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	k := &keeper{spec: &s, events: event.All(), incomplete: map[cluster.Position]*kept{}, write: make(chan *kept, 1),
		done: make(chan struct{})}
	if err := k.start(nil); err != nil {
		t.Fatal(err)
	}
	caches := func(rank, epoch int) []nn.Tensor {
		return []nn.Tensor{{Name: "rows", Shape: []int{2}, Data: []float64{float64(rank), float64(epoch)}}}
	}
	send := func(rank, epoch int) {
		st := &train.State{Epoch: epoch, Steps: epoch, Caches: caches(rank, epoch), History: train.History{
			Loss: make([]float64, epoch), BestEpoch: -1}}
		if err := resume.SendState(rank, k.folder(), k.keep(rank))(st); err != nil {
			t.Fatal(err)
		}
	}
	send(0, 1) // worker 1 is lost before it has written
	for rank := range 2 {
		send(rank, 2)
	}
	n, err := k.settled()
	if err != nil || n.from.Epoch != 2 {
		t.Fatal(n, err)
	}
	for rank, own := range n.own {
		list, err := nn.OpenSafetensors(own)
		if err != nil || !slices.Equal(list[0].Numbers(), caches(rank, 2)[0].Data) {
			t.Errorf("rank %d: %v, %v", rank, list, err)
		}
	}
	if left, _ := os.ReadDir(k.folder()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	k.take(0, []byte(`{"epoch":3,"only":true,"shard":{"path":"/etc/passwd"}}`), nil)
	if k.incomplete[cluster.Position{Epoch: 3}] != nil {
		t.Error("a worker named a file that is not its own")
	}
	if err := k.close(nil); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Latest(s.Checkpoints.Dir, nil, func(text string) { t.Error(text) })
	if err != nil || len(c.Files) != 2 || c.Epoch != 2 {
		t.Fatal(c, err)
	}
	if left, _ := os.ReadDir(s.Checkpoints.Dir); len(left) != 1 {
		t.Errorf("the folder has %v", left)
	}
}
