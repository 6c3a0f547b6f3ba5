package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// spacePaths are two paths inside a network namespace.
var spacePaths = strings.NewReplacer("127.0.0.2/32", "10.9.1.1/32").Replace(loopbackPaths)

// TestLostLink: a run whose workers have two paths loses one and gets it back. Training goes on with the same losses,
// and the run's events say both.
func TestLostLink(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	space := fmt.Sprintf("stl%d", os.Getpid())
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	ip("netns", "add", space)
	t.Cleanup(func() { ip("netns", "delete", space) })
	link := func(what string) { ip("-n", space, "address", what, "10.9.1.1/32", "dev", "lo") }
	ip("-n", space, "link", "set", "lo", "up")
	link("add")
	dir := small(t)
	writeFile(t, dir, "paths.yaml", spacePaths)
	want := losses(t, result(t, works(t, dir, trainArgs("--epochs", "20", "--json", "-", "--quiet")...).stdout))
	train := trainArgs("--workers", "2", "--transport", "tcp", "--paths", "paths.yaml", "--epochs", "100000",
		"--heartbeat", "60", "--events", "e.jsonl")
	s := startCommand(t, in(t, dir, exec.Command("ip", append([]string{"netns", "exec", space, binary}, train...)...)))
	s.until(t, `^epoch `)
	link("delete")
	s.until(t, `^path two between rank \d and rank \d was lost: `)
	link("add")
	s.until(t, `^path two between rank \d and rank \d is back`)
	s.until(t, `^epoch `)
	go s.out.WriteTo(&s.stdout)
	if err := s.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	s.Wait()
	var got []float64
	marks := map[string]int{}
	for line := range strings.Lines(readFile(t, dir, "e.jsonl")) {
		var e struct {
			Event, Mark string
			Epoch       int
			Loss        float64
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		marks[e.Mark]++
		if e.Event == "epoch" && e.Epoch < len(want) {
			got = append(got, e.Loss)
		}
	}
	if len(got) == 0 {
		t.Fatal("no epoch")
	}
	sameLosses(t, "with a link that was lost", got, want[:len(got)]) // a slow machine may not come to all
	if marks["link"] < 2 || marks["lost"] > 0 {
		t.Errorf("marks: %v", marks)
	}
}
