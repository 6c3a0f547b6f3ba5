package run

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/disk"
	"starling/spec"
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
			release, err := claimCheckpoints(&s)
			switch {
			case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("held for %v: %v", held, err)
			case err == nil:
				release()
			}
		})
	}
}
