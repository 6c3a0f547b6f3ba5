package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// losses returns the losses of a result.
func losses(t *testing.T, m map[string]any) (out []float64) {
	t.Helper()
	for _, x := range m["loss"].([]any) {
		out = append(out, x.(float64))
	}
	return out
}

func sameLosses(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d epochs, want %d", what, len(got), len(want))
	}
	for e := range want {
		if !(math.Abs(got[e]-want[e]) <= 1e-4*want[e]) {
			t.Fatalf("%s: loss %.9g in epoch %d, one worker has %.9g", what, got[e], e, want[e])
		}
	}
}

// workersOf are the pids of our worker processes that run in a folder, in the order of their start.
func workersOf(t *testing.T, dir string) (pids []int) {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("there is no /proc here to look for processes in")
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		in, err := os.Readlink(filepath.Join(filepath.Dir(f), "cwd"))
		if args := strings.Split(string(b), "\x00"); args[0] == binary && len(args) > 1 && args[1] == "worker" &&
			err == nil && strings.HasPrefix(in+"/", dir+"/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// nothingLeft fails if a worker or a temporary partition has outlived its run in a folder.
// Memory that workers share has no name, and goes with them.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	nothingLeftOf(t, dir, temporary(dir))
}

// nothingLeftOf is nothingLeft for runs with temporary files elsewhere.
func nothingLeftOf(t *testing.T, dir, tmp string) {
	t.Helper()
	for end := time.Now().Add(hang); ; time.Sleep(10 * time.Millisecond) {
		pids := workersOf(t, dir)
		if len(pids) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("workers %v are still there", pids)
			break
		}
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "starling-parts-*")); len(left) > 0 {
		t.Errorf("%v was left", left)
	}
}

// Every number of workers, as processes over each transport and as goroutines,
// follows the loss of one.
func TestWorkersEqualOne(t *testing.T) {
	t.Parallel()
	dir := small(t)
	model := []string{"--model", "sage", "--norm", "batch", "--json", "-"}
	want := losses(t, result(t, works(t, dir, trainArgs(append(model, "--quiet")...)...).stdout))
	works(t, dir, "partition", "graph", "--parts", "3", "--method", "fennel", "--out", "parts", "--quiet")
	for _, c := range []struct {
		workers float64
		dir     string
		args    string
	}{
		{1, "graph", "--workers 1 --strategy halo"},
		{2, "graph", "--workers 2"},
		{4, "graph", "--workers 4 --servers 2 --transport tcp --send-order fifo"},
		{2, "graph", "--workers 2 --transport shm --partitioner random"},
		{3, "graph", "--workers 3 --in-process --send-order fifo"},
		{2, "graph", "--parts 2 --partition hash --in-process"},
		{3, "parts", "--parts 3"},
		{3, "graph", "--partition parts --transport inprocess"},
	} {
		args := append(append([]string{"train", c.dir}, quick...), model...)
		o := works(t, dir, append(args, strings.Fields(c.args)...)...)
		m := result(t, o.stdout)
		sameLosses(t, c.dir+" "+c.args, losses(t, m), want)
		b := m["bytes"].(map[string]any)
		if m["workers"] != c.workers || m["strategy"] != "halo" || b["total"] != b["planned"] || c.workers > 1 &&
			!(b["total"].(float64) > 0) {
			t.Errorf("%s: %v workers, strategy %v, bytes %v", c.args, m["workers"], m["strategy"], b)
		}
		if c.workers > 1 && !strings.Contains(o.stderr, "gradient") {
			t.Errorf("%s: no table of traffic in %s", c.args, o.stderr)
		}
		if links := b["by_link"].(map[string]any); strings.Contains(c.args, "--servers") &&
			(links["between_servers"] == nil || links["same_host"] == nil) {
			t.Errorf("%s: links %v", c.args, links)
		}
	}
	refuses(t, dir, []string{"--parts", "workers"}, trainArgs("--parts", "2", "--workers", "3")...)
	refuses(t, dir, []string{"--workers", "3, the parts of parts"}, "train", "parts", "--parts", "2")
	nothingLeft(t, dir)
}

// started is a command under way.
type started struct {
	*exec.Cmd
	out    *bufio.Reader
	unread io.Closer    // standard output's end, for who does not want to read on
	stdout bytes.Buffer // what has been read of it
	stderr bytes.Buffer
}

func start(t *testing.T, dir string, args ...string) *started {
	t.Helper()
	return startCommand(t, in(t, dir, exec.Command(binary, args...)))
}

// startCommand starts any command.
func startCommand(t *testing.T, c *exec.Cmd) *started {
	t.Helper()
	s := &started{Cmd: c}
	pipe, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.unread = pipe
	s.out = bufio.NewReader(io.TeeReader(pipe, &s.stdout))
	s.Stderr = &s.stderr
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Process.Kill() // if it still runs
		s.Wait()
	})
	return s
}

// until reads standard output to the line that matches.
func (s *started) until(t *testing.T, pattern string) []string {
	t.Helper()
	for {
		line, err := s.out.ReadString('\n')
		if m := regexp.MustCompile(pattern).FindStringSubmatch(line); m != nil {
			return m
		}
		if err != nil {
			t.Fatalf("no %s: %v\n%s%s", pattern, err, s.stdout.String(), s.stderr.String())
		}
	}
}

// end waits for the command, and is its status.
func (s *started) end() int {
	io.Copy(io.Discard, s.out)
	s.Wait()
	return s.ProcessState.ExitCode()
}

var endless = []string{"--epochs", "100000", "--eval-every", "0"}

// A worker that is killed stops all; the last line names it.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for _, transport := range []string{"tcp", "auto"} {
		s := start(t, dir, trainArgs(append(endless, "--workers", "3", "--on-failure", "stop", "--transport",
			transport)...)...)
		s.until(t, `^epoch `)
		pids := workersOf(t, dir)
		if len(pids) != 3 {
			t.Fatalf("workers %v", pids)
		}
		if err := syscall.Kill(pids[1], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		status := s.end()
		lines := strings.Split(strings.TrimSpace(s.stderr.String()), "\n")
		last := lines[len(lines)-1]
		if want := regexp.MustCompile(fmt.Sprintf(`^starling: rank \d \(pid %d .*\): .*killed \(signal 9`, pids[1])); status != 1 || !want.MatchString(last) {
			t.Errorf("%s: status %d, the last line is %q", transport, status, last)
		}
		nothingLeft(t, dir)
	}
}

// Workers end with their parent, however it ends.
func TestKilledCoordinator(t *testing.T) {
	t.Parallel()
	dir := small(t)
	s := start(t, dir, trainArgs(append(endless, "--workers", "3", "--on-failure", "stop")...)...)
	s.until(t, `^epoch `)
	if n := len(workersOf(t, dir)); n != 3 {
		t.Fatalf("%d workers", n)
	}
	s.Process.Kill()
	s.end()
	nothingLeft(t, dir)
}

// A worker that is lost while all are about to stop, or just before, does not make a
// failure of a Ctrl-C.
func TestInterruptWhileAWorkerIsLost(t *testing.T) {
	t.Parallel()
	dir := small(t)
	s := start(t, dir, trainArgs(append(endless, "--workers", "3", "--heartbeat",
		fmt.Sprint(hang.Seconds()))...)...)
	s.until(t, `^epoch `)
	pids := workersOf(t, dir)
	if len(pids) != 3 {
		t.Fatalf("workers %v", pids)
	}
	syscall.Kill(pids[1], syscall.SIGSTOP) // so that the epoch does not end
	s.Process.Signal(syscall.SIGINT)
	time.Sleep(100 * time.Millisecond) // either may be noticed first
	syscall.Kill(pids[1], syscall.SIGKILL)
	if status := s.end(); status != 130 {
		t.Errorf("status %d\n%s%s", status, s.stdout.String(), s.stderr.String())
	}
	nothingLeft(t, dir)
}

// Ctrl-C makes all stop after the same epoch, with a checkpoint that any number of
// workers goes on from to the result of an undisturbed run.
func TestInterruptWorkers(t *testing.T) {
	t.Parallel()
	dir := small(t)
	common := []string{"--norm", "batch", "--checkpoint-dir", "ck", "--json", "r.json"}
	s := start(t, dir, trainArgs(append(endless, append(common, "--workers", "3")...)...)...)
	s.until(t, `^epoch `)
	if err := s.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	status := s.end()
	m := result(t, readFile(t, dir, "r.json"))
	if b := m["bytes"].(map[string]any); status != 130 || m["reason"] != "interrupted" || b["total"] != b["planned"] {
		t.Fatalf("status %d, reason %v, bytes %v, %s", status, m["reason"], b, s.stderr.String())
	}
	nothingLeft(t, dir)
	for i, go_ := range []string{"--workers 2", "--workers 4 --in-process", "--workers 1"} {
		epochs := fmt.Sprint(int(m["epochs"].(float64)) + 3*(i+1))
		more := []string{"--epochs", epochs, "--eval-every", "0", "--norm", "batch", "--json", "r.json", "--quiet"}
		works(t, dir, trainArgs(append(more, append(strings.Fields(go_), "--checkpoint-dir", "ck",
			"--resume")...)...)...)
		got := result(t, readFile(t, dir, "r.json"))
		works(t, dir, trainArgs(more...)...)
		sameLosses(t, "resumed on "+go_, losses(t, got), losses(t, result(t, readFile(t, dir, "r.json"))))
		if b := got["bytes"].(map[string]any); b["total"] != b["planned"] {
			t.Errorf("resumed on %s: bytes %v", go_, b)
		}
	}
}

// passHangUpsOn lets what is started hear of a terminal's end also where these tests do not, as under nohup: who
// ignores a signal starts processes that ignore it, who handles it does not.
func passHangUpsOn(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(heard) })
}

// TestTerminalCloses: that is a Ctrl-C, also where it is said twice.
func TestTerminalCloses(t *testing.T) {
	t.Parallel()
	passHangUpsOn(t)
	dir := small(t)
	s := start(t, dir, trainArgs(append(endless, "--workers", "2", "--checkpoint-dir", "ck", "--json", "r.json")...)...)
	s.until(t, `^epoch `)
	for range 2 {
		// it may be quick
		if err := s.Process.Signal(syscall.SIGHUP); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	status := s.end()
	if m := result(t, readFile(t, dir, "r.json")); status != 130 || m["reason"] != "interrupted" {
		t.Fatalf("status %d, reason %v, %s", status, m["reason"], s.stderr.String())
	}
	if saved, err := filepath.Glob(filepath.Join(dir, "ck", "epoch-*")); len(saved) == 0 {
		t.Error("nothing was saved: ", err)
	}
	nothingLeft(t, dir)
}

// TestOutputWithoutReader: a run whose output goes nowhere any more, as over a connection that
// was lost, is stopped and saved.
func TestOutputWithoutReader(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for _, workers := range []string{"1", "2"} {
		s := start(t, dir, trainArgs(append(endless, "--workers", workers, "--checkpoint-dir", "ck"+workers, "--out",
			"run"+workers)...)...)
		s.until(t, `^epoch `)
		s.unread.Close()
		if status := s.end(); status != 130 || !strings.Contains(s.stderr.String(), "no reader") {
			t.Fatalf("%s workers: status %d, %s", workers, status, s.stderr.String())
		}
		works(t, dir, "predict", "run"+workers, "graph", "--out", "labels"+workers+".npy")
		if saved, err := filepath.Glob(filepath.Join(dir, "ck"+workers, "epoch-*")); len(saved) == 0 {
			t.Error("nothing was saved: ", err)
		}
	}
	nothingLeft(t, dir)
}

// Workers started by hand: one of another job is refused, the others train, each
// with no more than a copy of its own part.
func TestWorkersByHand(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", "2", "--out", "parts", "--quiet")
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("correct horse battery staple"), 0o600); err != nil {
		t.Fatal(err)
	}
	works(t, dir, "train", "parts", "--dry-run")
	s := start(t, dir, "train", "parts", "--layers", "2", "--hidden", "16", "--epochs", "10", "--no-launch",
		"--token-file", "token", "--json", "r.json", "--out", "run", "--trace", "trace.json")
	addr := s.until(t, `--join (\S+)`)[1]
	join := []string{"worker", "--join", addr, "--timeout", "20"}
	refuses(t, dir, []string{"refused", "wrong token"}, join...)
	refuses(t, dir, []string{"refused", "job other"}, append(join, "--token-file", "token", "--job", "other")...)
	refuses(t, dir, []string{"refused", "rank 7"}, append(join, "--token-file", "token", "--rank", "7")...)
	one := start(t, dir, append(join, "--token-file", "token", "--rank", "1", "--part-dir", "parts/part1")...)
	any := start(t, dir, append(join, "--token-file", "token")...)
	if a, b, c := s.end(), one.end(), any.end(); a != 0 || b != 0 || c != 0 {
		t.Fatalf("status %d, workers %d and %d\n%s%s%s", a, b, c, s.stderr.String(), one.stderr.String(),
			any.stderr.String())
	}
	works(t, dir, trainArgs("--json", "one.json", "--quiet")...)
	sameLosses(t, "by hand", losses(t, result(t, readFile(t, dir, "r.json"))),
		losses(t, result(t, readFile(t, dir, "one.json"))))
	if len(readFile(t, dir, "run/model.safetensors")) < 1000 {
		t.Error("no weights")
	}
	var trace struct{ TraceEvents []struct{ PID int } }
	if err := json.Unmarshal([]byte(readFile(t, dir, "trace.json")), &trace); err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	for _, e := range trace.TraceEvents {
		seen[e.PID]++
	}
	if len(seen) != 2 || seen[1] < 10 {
		t.Errorf("spans of workers %v, want 0 and 1", seen)
	}
	nothingLeft(t, dir)
}

// Workers that never come are named, and those that came are told so and sent home.
func TestMissingWorker(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", "3", "--out", "parts", "--quiet")
	for within := 1; ; within *= 2 {
		s := start(t, dir, "train", "parts", "--no-launch", "--timeout", fmt.Sprint(within))
		addr := s.until(t, `--join (\S+)`)[1]
		w := start(t, dir, "worker", "--join", addr, "--rank", "1", "--timeout", "1")
		a, b := s.end(), w.end()
		if within < 60 && strings.Contains(s.stderr.String(), "missing rank 0, 1, 2") {
			continue // the machine was too slow for it to come in time
		}
		const want = "missing rank 0, 2"
		if a != 1 || b != 1 || !strings.Contains(s.stderr.String(), want) ||
			!strings.Contains(w.stderr.String(), want) {
			t.Errorf("status %d and %d: %s%s", a, b, s.stderr.String(), w.stderr.String())
		}
		break
	}
	nothingLeft(t, dir)
}

// A worker's own mistake is the last line, its own too, not what followed from it.
func TestWrongPart(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", "3", "--out", "parts", "--quiet")
	s := start(t, dir, "train", "parts", "--no-launch")
	addr := s.until(t, `--join (\S+)`)[1]
	var w *started
	for r, part := range []string{"part0", "part1", "part1"} {
		w = start(t, dir, "worker", "--join", addr, "--rank", fmt.Sprint(r), "--part-dir", filepath.Join("parts", part))
	}
	status, its := s.end(), w.end()
	if text := w.stderr.String(); its != 2 || !strings.Contains(text, "found part 1 of") {
		t.Errorf("the worker's status is %d, %s", its, text)
	}
	lines := strings.Split(strings.TrimSpace(s.stderr.String()), "\n")
	if last := lines[len(lines)-1]; status != 2 || !strings.HasPrefix(last, "starling: rank 2 ") ||
		!strings.Contains(last, "found part 1 of") {
		t.Errorf("status %d, %s", status, s.stderr.String())
	}
	nothingLeft(t, dir)
}

// A part that cannot be read is named with its rank before anything starts.
func TestDamagedPart(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", "3", "--out", "parts", "--quiet")
	if err := os.Truncate(filepath.Join(dir, "parts/part2/indices.npy"), 300); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"--transport=auto", "--in-process"} {
		o := starling(t, dir, "train", "parts", how)
		lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
		if last := lines[len(lines)-1]; o.status != 2 || !strings.Contains(last, "rank 2") ||
			!strings.Contains(last, "indices.npy") {
			t.Errorf("%s: status %d, %s", how, o.status, o.stderr)
		}
	}
	nothingLeft(t, dir)
}
