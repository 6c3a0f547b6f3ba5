package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "starling/train/traintest/toy"
)

// toyVar has the test binary be starling: with the strategy toy, which the import above
// registers, and which no other file of the program knows.
const toyVar = "STARLING_TEST_TOY"

// withToy runs starling with the strategy toy.
func withToy(t *testing.T, dir string, args ...string) output {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, args...)
	c.Dir, c.Env = dir, append(os.Environ(), toyVar+"=1")
	return finish(t, c)
}

// toyWorks fails unless the command succeeds.
func toyWorks(t *testing.T, dir string, args ...string) output {
	t.Helper()
	o := withToy(t, dir, args...)
	if o.status != 0 {
		t.Fatalf("starling %s: status %d\n%s%s", strings.Join(args, " "), o.status, o.stdout, o.stderr)
	}
	return o
}

// TestToyStrategy: a strategy that one file adds is known wherever users see strategies.
func TestToyStrategy(t *testing.T) {
	t.Parallel()
	dir := small(t)
	t.Run("help", func(t *testing.T) {
		for command, flag := range map[string]string{"train": "--help-all", "compare": "--help"} {
			help := toyWorks(t, dir, command, flag).stdout
			_, settings, ok := strings.Cut(help, "\nOptions of strategies:\n")
			settings, _, _ = strings.Cut(settings, "\n\n")
			if !ok || !strings.Contains(settings, "--toy-laps int") ||
				!strings.Contains(settings, "laps that a toy goes per epoch, 1 to 9 (toy)") {
				t.Errorf("%s %s has no --toy-laps under Options of strategies:\n%s", command, flag, settings)
			}
		}
		if help := toyWorks(t, dir, "compare", "--help").stdout; !strings.Contains(help, ", toy\n") {
			t.Errorf("compare --help does not list toy:\n%s", help)
		}
	})
	t.Run("dry run", func(t *testing.T) {
		settings, sent := dryRunOf(toyWorks(t, dir, trainArgs("--workers", "2", "--strategy", "toy:3",
			"--dry-run")...).stdout)
		_, halo := dryRunOf(toyWorks(t, dir, trainArgs("--workers", "2", "--strategy", "halo", "--dry-run")...).stdout)
		if !strings.Contains(settings, "\nstrategy: toy:3\n") || !strings.Contains(settings, "\ntoy_laps: 1\n") ||
			sent != halo || sent == "" {
			t.Errorf("toy:\n%s%s\nhalo:\n%s", settings, sent, halo)
		}
	})
	t.Run("YAML", func(t *testing.T) {
		writeFile(t, dir, "toy.yaml", "strategy: toy\nworkers: 2\ntoy_laps: 4\n")
		printed, _ := dryRunOf(toyWorks(t, dir, "train", "graph", "--config", "toy.yaml", "--dry-run").stdout)
		if !strings.Contains(printed, "\nstrategy: toy\n") || !strings.Contains(printed, "\ntoy_laps: 4\n") {
			t.Errorf("--config and --dry-run print:\n%s", printed)
		}
		writeFile(t, dir, "printed.yaml", printed)
		if again, _ := dryRunOf(toyWorks(t, dir, "train", "--config", "printed.yaml",
			"--dry-run").stdout); again != printed {
			t.Errorf("what was printed, read again:\n%s", again)
		}
		toyRefuses(t, dir, []string{"toy_lap", "did you mean toy_laps?"}, "toy_lap: 4\n")
		toyRefuses(t, dir, []string{"1 to 9 laps, not 12"}, "strategy: toy\nworkers: 2\ntoy_laps: 12\n")
	})
	t.Run("compare", func(t *testing.T) {
		o := toyWorks(t, dir, append([]string{"compare", "graph", "--workers", "2", "--in-process", "--strategies",
			"halo,toy:3", "--json", "-"}, quick...)...)
		var c struct {
			Rows []struct {
				Strategy, Plan string
				Settings       map[string]any
				Paper          struct{ Title string }
				Loss           []float64
			}
		}
		if err := json.Unmarshal([]byte(o.stdout), &c); err != nil || len(c.Rows) != 2 {
			t.Fatalf("%v\n%s", err, o.stdout)
		}
		halo, toy := c.Rows[0], c.Rows[1]
		if toy.Strategy != "toy:3" || toy.Plan != "equal" || toy.Settings["toy_laps"] != 3.0 ||
			!strings.HasPrefix(toy.Paper.Title, "A Toy") {
			t.Errorf("%+v", toy)
		}
		if len(toy.Loss) == 0 || len(toy.Loss) != len(halo.Loss) ||
			toy.Loss[len(toy.Loss)-1] != halo.Loss[len(halo.Loss)-1] {
			t.Errorf("losses %v, halo's %v", toy.Loss, halo.Loss)
		}
		if !strings.Contains(o.stderr, "toy:3") || !strings.Contains(o.stderr, "goes round and round") {
			t.Errorf("the table has no toy:3 with its paper:\n%s", o.stderr)
		}
	})
	t.Run("train", func(t *testing.T) {
		o := toyWorks(t, dir, trainArgs("--workers", "2", "--strategy", "toy", "--toy-laps", "5", "--json", "-")...)
		var r struct {
			Strategy string
			Settings map[string]any `json:"strategy_settings"`
		}
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || r.Strategy != "toy" ||
			r.Settings["toy_laps"] != 5.0 {
			t.Errorf("%v %+v", err, r)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		for _, c := range []struct {
			words string // separated by |
			args  []string
		}{
			{`--strategy|"tyo"|did you mean toy?`, []string{"--strategy", "tyo"}},
			{`"toy:fast"|a whole number`, []string{"--strategy", "toy:fast"}},
			{`"toy:12"|1 to 9 laps, not 12`, []string{"--strategy", "toy:12"}},
			{`--toy-laps|"fast"|a whole number`, []string{"--strategy", "toy", "--toy-laps", "fast"}},
			{"--toy-laps|4 beside --strategy toy:3", []string{"--strategy", "toy:3", "--toy-laps", "4"}},
			{"--toy-laps|only for --strategy toy", []string{"--strategy", "halo", "--toy-laps", "4"}},
			{"--toy-lap|did you mean --toy-laps?", []string{"--strategy", "toy", "--toy-lap", "4"}},
		} {
			toyMistake(t, dir, strings.Split(c.words, "|"), append([]string{"train", "graph", "--workers", "2"},
				c.args...)...)
		}
		toyMistake(t, dir, []string{"--strategies", "did you mean toy?"}, "compare", "graph", "--workers", "2",
			"--strategies", "halo,tyo")
	})
}

// dryRunOf is what --dry-run prints: the settings, and of the plan what will be sent.
func dryRunOf(out string) (settings, sent string) {
	settings, plan, _ := strings.Cut(out, "# plan:")
	if i := strings.Index(plan, "bytes sent"); i >= 0 {
		sent, _, _ = strings.Cut(plan[i:], " (") // the settings it is for
	}
	return settings, sent
}

// toyRefuses: a spec is a mistake with these words.
func toyRefuses(t *testing.T, dir string, words []string, yaml string) {
	t.Helper()
	writeFile(t, dir, "wrong.yaml", yaml)
	toyMistake(t, dir, words, "train", "graph", "--config", "wrong.yaml", "--dry-run")
}

// toyMistake: a command is a mistake with these words, in one line.
func toyMistake(t *testing.T, dir string, words []string, args ...string) {
	t.Helper()
	o := withToy(t, dir, args...)
	if o.status != 2 || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("starling %s: status %d, want 2 and one line:\n%s", strings.Join(args, " "), o.status, o.stderr)
	}
	for _, w := range words {
		if !strings.Contains(o.stderr, w) {
			t.Errorf("starling %s: %q is not in %q", strings.Join(args, " "), w, o.stderr)
		}
	}
}

// writeFile makes a file in a folder.
func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
