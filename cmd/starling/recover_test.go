package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/internal/testseed"
)

// undisturbed is the result of a run on workers that nothing happens to.
func undisturbed(t *testing.T, dir string, args ...string) map[string]any {
	t.Helper()
	return result(t, works(t, dir, trainArgs(append(args, "--quiet", "--json", "-")...)...).stdout)
}

// faults are what may happen to a worker's process.
var faults = map[string]func(pid int) error{
	"killed":  func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) },
	"stopped": func(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) },
}

// A worker that is killed or stopped is named, started again, and the run goes on with
// the losses of an undisturbed one. It has no end of its own, so that none comes before
// the fault, however fast or busy the machine is.
func TestRecovery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fault, strategy, model, says string }{
		{"stopped", "pipegcn", "gcn --hidden 64 --heartbeat 3", "it sent nothing for 3s"},
		{"killed", "halo", "ressage+ --layers 28 --hidden 32 --heartbeat 60", "its process was killed (signal 9"},
		{"killed", "hopgnn", "sage --layers 2 --hidden 16 --mode mini --batch-size 64 --merge 1 --servers 3 --heartbeat 60",
			"its process was killed (signal 9"},
		{"killed", "bytegnn", "sage --layers 2 --hidden 16 --mode mini --batch-size 64 --servers 3 --heartbeat 60",
			"its process was killed (signal 9"},
	} {
		t.Run(c.fault+" "+c.strategy+" "+c.model, func(t *testing.T) {
			t.Parallel()
			dir := small(t)
			common := append(strings.Fields("--workers 3 --eval-every 0 --strategy "+c.strategy+" --model "+c.model),
				"--json", "r.json")
			s := start(t, dir, trainArgs(append(append(common, "--checkpoint-every", "5"), endless...)...)...)
			s.until(t, `^epoch `)
			pids := workersOf(t, dir)
			if len(pids) != 3 {
				t.Fatalf("workers %v", pids)
			}
			victim := pids[testseed.Rand(t).IntN(3)]
			if err := faults[c.fault](victim); err != nil {
				t.Fatal(err)
			}
			s.until(t, fmt.Sprintf(`^lost rank \d \(pid %d `, victim)) // and not one that only seemed lost
			s.until(t, `training goes on from epoch`)
			s.until(t, `^epoch `)
			if err := s.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			status := s.end()
			text := s.stdout.String() + s.stderr.String()
			if status != 130 || !strings.Contains(text, fmt.Sprintf("(pid %d ", victim)) ||
				!strings.Contains(text, c.says) {
				t.Fatalf("status %d, of pid %d: %s", status, victim, tail(text))
			}
			nothingLeft(t, dir)
			m := result(t, readFile(t, dir, "r.json"))
			list, _ := m["restarts"].([]any)
			if len(list) == 0 { // there are more where the machine is so slow that another seems lost
				t.Fatalf("restarts: %v", m["restarts"])
			}
			t.Logf("%s: recovered in %v s", c.fault, list[0].(map[string]any)["seconds"])

			works(t, dir, trainArgs(append(common, "--quiet", "--epochs", fmt.Sprint(m["epochs"]))...)...)
			got, want := losses(t, m), losses(t, result(t, readFile(t, dir, "r.json")))
			if len(got) != len(want) {
				t.Fatalf("losses of %d epochs, undisturbed %d", len(got), len(want))
			}
			for e := range want {
				if got[e] != want[e] {
					t.Fatalf("loss %v in epoch %d, undisturbed %v", got[e], e, want[e])
				}
			}
		})
	}
}

// tail is the end of a long text.
func tail(text string) string { return text[max(0, len(text)-3000):] }

// A worker that dies at the same place again and again ends the run, which says so.
func TestNoEndlessRestarts(t *testing.T) {
	t.Parallel()
	dir := small(t)
	s := start(t, dir, trainArgs(append(endless, "--workers", "2", "--checkpoint-every", "0")...)...)
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			if pids := workersOf(t, dir); len(pids) > 0 {
				syscall.Kill(pids[0], syscall.SIGKILL)
			}
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	if status := s.end(); status != 1 || !strings.Contains(s.stderr.String(), "there will be no other") {
		t.Errorf("status %d: %s", status, tail(s.stderr.String()))
	}
	nothingLeft(t, dir)
}

// Workers that show certificates of the same authority train as others do.
func TestWorkersOverTLS(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, "certs", "--hosts", "alpha")
	want := losses(t, undisturbed(t, dir, "--workers", "2"))
	got := losses(t, undisturbed(t, dir, "--workers", "2", "--transport", "tcp", "--tls", "certs/alpha"))
	for e := range want {
		if got[e] != want[e] {
			t.Fatalf("loss %v in epoch %d, without certificates %v", got[e], e, want[e])
		}
	}
	refuses(t, dir, []string{"--tls", "starling certs"}, trainArgs("--workers", "2", "--tls", "nowhere")...)
	refuses(t, dir, []string{"--hosts", "slashes"}, "certs", "--hosts", "a/b")
	refuses(t, dir, []string{"--days: found 99999999, want 1 to 3650"}, "certs", "--hosts", "beta", "--days",
		"99999999")
	if err := os.Remove(filepath.Join(dir, "certs/ca.pem")); err != nil {
		t.Fatal(err)
	}
	refuses(t, dir, []string{"certs/ca.pem", "put the file back"}, "certs", "--hosts", "beta")
}
