package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"starling/internal/testseed"
)

// stage is a time in a run with --strategy auto+try: the lines of its output that lead there.
type stage struct {
	name  string
	lines []string
	// saved: a checkpoint is there too; writing: and the next is under way.
	saved, writing bool
}

// chosen is the line of the choice, with the flags that tell a run to take it.
const chosen = `^--strategy auto: .*; to run it again: (--strategy .*)`

const tries = `^--strategy auto tries `

// stages are all of them, in their order.
var stages = []stage{
	{name: "measuring", lines: []string{`^measuring the rates`}},
	{name: "planning", lines: []string{`^planning \d+ choices`}},
	{name: "the first try", lines: []string{tries}},
	{name: "the second try", lines: []string{tries, tries}},
	{name: "the third try", lines: []string{tries, tries, tries}},
	{name: "the choice", lines: []string{chosen}},
	{name: "training", lines: []string{chosen, `^epoch `}, saved: true},
	{name: "writing a checkpoint", lines: []string{chosen, `^epoch `}, saved: true, writing: true},
}

// TestAutoKilled: a run with --strategy auto+try that is killed at any stage, and started again by the same command, ends
// with the weights and losses of a run that was told its choice, to the bit. If it had a checkpoint it keeps the choice,
// and the caches have no file that is not whole. Workers are goroutines, and the seed draws one of the stages before
// training and one of those after; STARLING_RUNS=all is all of them, and on processes too.
func TestAutoKilled(t *testing.T) {
	t.Parallel()
	a := autoKilled{dir: small(t)}
	works(t, a.dir, "partition", "graph", "--parts", "2", "--servers", "2", "--out", "parts", "--quiet")
	if os.Getenv("STARLING_RUNS") != "all" {
		r, before := testseed.Rand(t), len(stages)-2
		for _, i := range []int{0, 1 + r.IntN(before-1), before + r.IntN(2)} {
			a.kill(t, stages[i], "--in-process")
		}
		return
	}
	for _, how := range []string{"--in-process", "--heartbeat=60"} {
		if err := os.RemoveAll(filepath.Join(a.dir, "caches")); err != nil {
			t.Fatal(err)
		}
		for _, s := range stages {
			a.kill(t, s, how)
		}
	}
	nothingLeft(t, a.dir)
}

// autoKilled is the folder of all runs: their graph, their checkpoints and the caches, which the first fills.
type autoKilled struct{ dir string }

// command is a run of workers that are how says.
func (a *autoKilled) command(t *testing.T, how string, more ...string) *exec.Cmd {
	args := append([]string{"train", "parts", "--layers", "2", "--hidden", "8",
		"--eval-every", "0", "--seed", "7", how}, more...)
	return withEnv(in(t, a.dir, exec.Command(binary, args...)), "XDG_CACHE_HOME="+filepath.Join(a.dir, "caches"))
}

// kill kills a run at a stage, starts it again, and compares.
func (a *autoKilled) kill(t *testing.T, at stage, how string) {
	t.Helper()
	name := strings.ReplaceAll(at.name, " ", "-") + how
	auto := []string{"--strategy", "auto:1gbit+try", "--resume-if-any", "--checkpoint-dir", name, "--checkpoint-every", "1"}
	s := startCommand(t, a.command(t, how, append(auto, "--epochs", "100000")...))
	first := ""
	for _, line := range at.lines {
		if m := s.until(t, line); len(m) > 1 {
			first = m[1]
		}
	}
	if at.saved {
		a.wait(t, name, "epoch-00*[1-9]*")
	}
	if at.writing {
		a.wait(t, name, ".*.tmp-*")
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatalf("%s: %v", at.name, err)
	}
	s.end()
	saved := a.epochs(t, name)
	epochs := fmt.Sprint(saved + 2)
	o := finish(t, a.command(t, how, append(auto, "--epochs", epochs, "--json", name+".json", "--out", name+".model")...))
	if o.status != 0 {
		t.Fatalf("%s, started again: status %d\n%s%s", name, o.status, o.stdout, o.stderr)
	}
	choice := first
	if !strings.Contains(o.stdout, "as the run that is continued") {
		if saved > 0 {
			t.Errorf("%s: chosen anew after a checkpoint:\n%s", name, o.stdout)
		}
		choice = regexp.MustCompile(`(?m)` + chosen).FindStringSubmatch(o.stdout)[1]
	}
	o = finish(t, a.command(t, how, append(strings.Fields(choice), "--epochs", epochs, "--json", "told.json", "--out",
		name+".told", "--quiet")...))
	if o.status != 0 {
		t.Fatalf("%s, told %s: status %d\n%s%s", name, choice, o.status, o.stdout, o.stderr)
	}
	if got, want := readFile(t, a.dir, name+".model/model.safetensors"),
		readFile(t, a.dir, name+".told/model.safetensors"); got != want {
		t.Errorf("%s: other weights than of a run that was told %s", name, choice)
	}
	got, want := losses(t, result(t, readFile(t, a.dir, name+".json"))), losses(t, result(t, readFile(t, a.dir, "told.json")))
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != saved+2 {
		t.Errorf("%s: losses %v, of a run that was told %s %v", name, got, choice, want)
	}
	a.wholeCaches(t, name)
}

// wait waits for a file or folder among the checkpoints. The run has no end of its own, so it comes.
func (a *autoKilled) wait(t *testing.T, name, pattern string) {
	t.Helper()
	for end := time.Now().Add(hang); time.Now().Before(end); {
		if list, _ := filepath.Glob(filepath.Join(a.dir, name, pattern)); len(list) > 0 {
			return
		}
	}
	t.Fatalf("%s: no %s in time", name, pattern)
}

// epochs is how many the newest checkpoint has trained.
func (a *autoKilled) epochs(t *testing.T, name string) (most int) {
	t.Helper()
	list, _ := filepath.Glob(filepath.Join(a.dir, name, "epoch-*"))
	for _, dir := range list {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(dir), "epoch-%d", &n); err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	return most
}

// wholeCaches fails unless the file of rates is one.
func (a *autoKilled) wholeCaches(t *testing.T, name string) {
	t.Helper()
	if text := readFile(t, a.dir, "caches/starling/rates.json"); !json.Valid([]byte(text)) {
		t.Errorf("%s: rates %q", name, text)
	}
}
