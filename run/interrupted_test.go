package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/spec"
)

// TestInterruptedSaysHowToContinue: a run that was stopped names the command that goes on with it, or that nothing was
// saved.
func TestInterruptedSaysHowToContinue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ck")
	args := []string{"starling", "train", "my graph", "--checkpoint-dir", "ck"}
	check := func(c spec.Checkpoints, want string, args ...string) {
		t.Helper()
		s := spec.Default()
		s.Checkpoints = c
		if got := HowToContinue(&s, args); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(spec.Checkpoints{}, "no state was saved to go on from: with --checkpoint-dir DIR a run can be resumed", args...)
	check(spec.Checkpoints{Dir: dir}, "no checkpoint is in "+dir+": the run starts from the beginning", args...)
	if err := os.MkdirAll(filepath.Join(dir, "epoch-000012"), 0o755); err != nil {
		t.Fatal(err)
	}
	const command = "to go on: starling train 'my graph' --checkpoint-dir ck --resume"
	check(spec.Checkpoints{Dir: dir}, command, args...)
	check(spec.Checkpoints{Dir: dir, Resume: true}, command, append(args, "--resume")...)
	check(spec.Checkpoints{Dir: dir, ResumeIfAny: true}, command+"-if-any", append(args, "--resume-if-any")...)
}

// TestInterruptedSweepSaysHowToContinue: so does a sweep, whose runs that have not ended go on.
func TestInterruptedSweepSaysHowToContinue(t *testing.T) {
	args := []string{"starling", "train", "graph", "--seeds", "9"}
	var s spec.Sweep
	if got := HowToContinueSweep(&s, args); !strings.Contains(got, "with --checkpoint-dir DIR a sweep can be resumed") {
		t.Error(got)
	}
	s.Checkpoints.Dir = "ck"
	if got := HowToContinueSweep(&s, args); got != "to go on: starling train graph --seeds 9 --resume" {
		t.Error(got)
	}
}
