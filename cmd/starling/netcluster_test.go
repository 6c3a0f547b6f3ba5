package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// netcluster runs the script on a cluster of this test.
func netcluster(action string, args ...string) *exec.Cmd {
	script, _ := filepath.Abs("../../scripts/netcluster")
	c := exec.Command(script, append([]string{action, "--name", fmt.Sprintf("stt%d", os.Getpid())}, args...)...)
	c.Env = append(os.Environ(), "STARLING="+binary)
	return c
}

// lacking is how the tools say that this kernel, or this container, does not do such things.
var lacking = regexp.MustCompile(`(?i)not permitted|permission denied|not supported|unknown (device type|qdisc)|qdisc kind is unknown`)

// needNamespaces skips where no host of a cluster could be made, and says why: a
// namespace with a shaped link. What goes wrong beyond that is a failure.
func needNamespaces(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root; run the tests as root to train across a shaped network")
	}
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: no network namespaces can be made (Debian's package is iproute2)", tool)
		}
	}
	name := fmt.Sprintf("stp%d", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil && lacking.Match(out) {
		t.Skipf("no network namespaces can be made here: %s", out)
	}
	defer exec.Command("ip", "netns", "delete", name).Run()
	for _, step := range []string{"ip link add near type veth peer name far", "ip link add middle type bridge",
		"tc qdisc replace dev near root tbf rate 1gbit burst 256kb latency 50ms"} {
		if out, err := exec.Command("ip", append([]string{"netns", "exec", name},
			strings.Fields(step)...)...).CombinedOutput(); err != nil && lacking.Match(out) {
			t.Skipf("no shaped links can be made here: %s: %s", step, out)
		}
	}
}

// newCluster builds hosts, or skips where that is not possible, and takes them down
// in the end.
func newCluster(t *testing.T, args ...string) {
	t.Helper()
	needNamespaces(t)
	if out, err := netcluster("up", args...).CombinedOutput(); err != nil {
		t.Fatalf("netcluster up %s: %v: %s", strings.Join(args, " "), err, out)
	}
	t.Cleanup(func() {
		for range 2 { // the second finds nothing to do
			if out, err := netcluster("down").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
		if out, _ := exec.Command("ip", "netns", "list").Output(); strings.Contains(string(out),
			fmt.Sprintf("stt%d-", os.Getpid())) {
			t.Errorf("namespaces were left behind:\n%s", out)
		}
	})
}

// Two hosts with a gigabit between them follow the loss of one worker.
func TestTwoHosts(t *testing.T) {
	newCluster(t, "--hosts", "2", "--slow", "1gbit")
	dir := small(t)
	want := losses(t, result(t, works(t, dir, trainArgs("--json", "-", "--quiet")...).stdout))
	run := in(t, dir, netcluster("run", append([]string{"--workers", "4", "graph", "--json", "r.json", "--html",
		"r.html"}, quick...)...))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m := result(t, readFile(t, dir, "r.json"))
	sameLosses(t, "two hosts", losses(t, m), want)
	b := m["bytes"].(map[string]any)
	if links := b["by_link"].(map[string]any); b["total"] != b["planned"] || links["between_servers"] == nil ||
		links["same_host"] == nil {
		t.Errorf("bytes %v", b)
	}
	page := readFile(t, dir, "r.html")
	for want, times := range map[string]int{`<svg class="strip"`: 4, "between servers": -1, "same host": -1} {
		if n := strings.Count(page, want); n != times && (times >= 0 || n == 0) {
			t.Errorf("the page of two hosts has %d of %s", n, want)
		}
	}
	nothingLeft(t, dir)
}

// A host that is cut off ends the run with a word about who waited for whom; after
// it is back the next run works.
func TestCutOff(t *testing.T) {
	newCluster(t, "--hosts", "2")
	dir := small(t)
	for within := 2; ; within *= 2 {
		status, says := cutOff(t, dir, within)
		nothingLeft(t, dir)
		if status == 1 && strings.Contains(says, "rank 0 waited") && strings.Contains(says, "rank 1 (10.77.0.2") {
			break
		}
		if within > 60 { // else a worker may have waited so long on a slow machine
			t.Fatalf("status %d: %s", status, says)
		}
	}
	again := in(t, dir, netcluster("run", append([]string{"graph"}, quick...)...))
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("after the link is back: %v: %s", err, out)
	}
}

// cutOff trains with workers that wait for each other for at most within seconds, and cuts a host
// off until the run has ended.
func cutOff(t *testing.T, dir string, within int) (status int, says string) {
	t.Helper()
	os.Remove(filepath.Join(dir, "events"))
	run := netcluster("run", append([]string{"graph", "--timeout", fmt.Sprint(within), "--heartbeat", "300",
		"--on-failure", "stop", "--events", "events"}, append(quick, endless...)...)...)
	var stderr strings.Builder
	in(t, dir, run).Stderr = &stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		run.Wait()
		close(ended)
	}()
	if trains(filepath.Join(dir, "events"), ended) {
		if out, err := netcluster("cut", "1").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	<-ended
	if out, err := netcluster("restore", "1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return run.ProcessState.ExitCode(), stderr.String()
}

// trains waits for the first epoch among the events of a run. It is false when the run
// ends before.
func trains(events string, ended <-chan struct{}) bool {
	for !strings.Contains(fileOrNone(events), `"event":"epoch"`) {
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}

// fileOrNone is a file's text so far.
func fileOrNone(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
