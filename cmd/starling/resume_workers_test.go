package main

import (
	"math"
	"strings"
	"testing"
)

// TestResumeOnMoreWorkers: what four workers have saved goes on with six, each of which has other vertices, with the
// losses of a run that four have finished. Learnt rows go to the workers of their vertices.
func TestResumeOnMoreWorkers(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"full": "--model sage",
		"mini": "--model sage --mode mini --batch-size 64 --fanout 5,5 --learn-embeddings 4",
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			train := func(more string) []any {
				words := "train graph --hidden 8 --quiet --json - " + args + " " + more
				return result(t, works(t, dir, strings.Fields(words)...).stdout)["loss"].([]any)
			}
			want := train("--epochs 4 --workers 4")
			train("--epochs 2 --workers 4 --checkpoint-dir saved")
			got := train("--epochs 4 --workers 6 --checkpoint-dir saved --resume")
			if len(got) != 4 || len(want) != 4 {
				t.Fatalf("losses %v, want %v", got, want)
			}
			for i := range want {
				if x, y := got[i].(float64), want[i].(float64); !(math.Abs(x-y) <= 1e-6*math.Abs(y)) {
					t.Errorf("epoch %d: loss %v, with four workers %v", i+1, x, y)
				}
			}
		})
	}
}
