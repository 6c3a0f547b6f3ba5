package resume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/disk"
	"starling/spec"
	"starling/train"
)

// TestClaimCheckpoints: a run that was just killed may take a moment to end; one that goes on
// keeps its folder.
func TestClaimCheckpoints(t *testing.T) {
	for held, want := range map[time.Duration]string{time.Second: "",
		time.Hour: "where another run keeps its checkpoints"} {
		synctest.Test(t, func(t *testing.T) {
			s := spec.Spec{Checkpoints: spec.Checkpoints{Dir: t.TempDir()}}
			end, free, err := disk.Claim(s.Checkpoints.Dir)
			if err != nil || !free {
				t.Fatal(free, err)
			}
			defer time.AfterFunc(held, end).Stop()
			release, err := Claim(&s, nil)
			switch {
			case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("held for %v: %v", held, err)
			case err == nil:
				release()
			}
		})
	}
}

// A run that waited for its folder finds what the run before it has left there.
func TestClaimFindsCheckpointsOfAnotherRun(t *testing.T) {
	s := spec.Spec{Checkpoints: spec.Checkpoints{Dir: t.TempDir()}}
	if err := os.Mkdir(filepath.Join(s.Checkpoints.Dir, "epoch-000003"), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, refused := range map[*train.State]bool{nil: true, {}: true, {Epoch: 3}: false} {
		release, err := Claim(&s, from)
		if refused != (err != nil && strings.Contains(err.Error(), "--resume")) {
			t.Errorf("from %v: %v", from, err)
		}
		if err == nil {
			release()
		}
	}
}
