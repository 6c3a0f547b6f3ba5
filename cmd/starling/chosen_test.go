package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChosenSettings: what strategies choose by measured rates becomes settings: --dry-run prints
// them, the result has them, and runs with them have the same weights and bytes.
func TestChosenSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"--workers 3 --strategy neutronstar", "--workers 4 --servers 2 --strategy granndis"} {
		t.Run(strings.Fields(c)[len(strings.Fields(c))-1], func(t *testing.T) {
			t.Parallel()
			dir := small(t)
			args := trainArgs(append(strings.Fields(c), "--quiet", "--json", "-", "--out", "out")...)
			weights := func(out output) (map[string]any, string) {
				b, err := os.ReadFile(filepath.Join(dir, "out", "model.safetensors"))
				if err != nil {
					t.Fatal(err)
				}
				os.RemoveAll(filepath.Join(dir, "out"))
				return result(t, out.stdout), string(b)
			}
			first, want := weights(works(t, dir, args...))
			chosen, _ := first["chosen"].(map[string]any)
			rates, _ := chosen["rates"].(string)
			budget, _ := chosen["memory_budget"].(string)
			if rates == "" || budget == "" {
				t.Fatalf("the result has no choice: %v", first["chosen"])
			}
			again, got := weights(works(t, dir, append(args, "--rates", rates, "--memory-budget", budget)...))
			if got != want || again["chosen"] != nil {
				t.Errorf("a run that is given what another measured has other weights, or chooses: %v", again["chosen"])
			}
			dry := works(t, dir, trainArgs(append(strings.Fields(c), "--dry-run")...)...).stdout
			if err := os.WriteFile(filepath.Join(dir, "dry.yaml"), []byte(dry), 0o644); err != nil {
				t.Fatal(err)
			}
			planned := []string{"train", "--config", "dry.yaml", "--quiet", "--json", "-", "--out", "out"}
			one, a := weights(works(t, dir, planned...))
			two, b := weights(works(t, dir, planned...))
			if a != b || one["chosen"] != nil || two["chosen"] != nil {
				t.Error("two runs with the settings of a dry run differ, or choose")
			}
		})
	}
	dir := small(t)
	refuses(t, dir, []string{"--rates", "row:S"}, trainArgs("--workers", "2", "--strategy", "neutronstar", "--rates",
		"fast")...)
	refuses(t, dir, []string{"--rates", "2 layers"}, trainArgs("--workers", "2", "--strategy", "neutronstar", "--rates",
		"row:1,edge:1,inside:1,between:1")...)
}
