package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestChoiceIsSaved: strategies that choose from measured rates have their choice in a checkpoint
// before the first epoch, and a run that continues from there is the same to the last bit. Others
// have no such checkpoint.
func TestChoiceIsSaved(t *testing.T) {
	dir := block(t, nil)
	for _, strategy := range []string{"neutronstar", "granndis", "neutronstar,int8", "halo"} {
		s := quick(dir)
		name, codec, _ := strings.Cut(strategy, ",")
		s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Output.Quiet, s.Strategy, s.Training.Epochs = 4, 2,
			true, true, name, 3
		s.Checkpoints.Dir, s.Checkpoints.Every, s.Checkpoints.Keep = filepath.Join(t.TempDir(), "checkpoints"), 0, 5
		if codec != "" {
			set(&s, "wire_dtype="+codec)
		}
		want := trained(t, s, nil)
		first := filepath.Join(s.Checkpoints.Dir, "epoch-000000")
		if _, err := os.Stat(first); (err == nil) != (name != "halo") {
			t.Errorf("%s: %v", strategy, err)
		}
		if name == "halo" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.Checkpoints.Dir, "epoch-000003")); err != nil {
			t.Fatal(err)
		}
		s.Checkpoints.Resume = true
		if got := trained(t, s, nil); !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: losses %v, want %v", strategy, got.Loss, want.Loss)
		}
	}
}
