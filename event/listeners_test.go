package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// clock is time that passes a step at every look.
type clock struct {
	t    time.Time
	step time.Duration
}

func (c *clock) now() time.Time {
	c.t = c.t.Add(c.step)
	return c.t
}

// shortRun tells a listener a run of n epochs.
func shortRun(l Listener, n int) {
	l.On(Started{Dataset: "d", Model: "gcn", Strategy: "none", Workers: 1, Vertices: 1234567, Edges: 10,
		Parameters: 99, Epochs: n, Metric: "accuracy"})
	for i := range n {
		e := Epoch{Epoch: i, Loss: 1 / float64(i+1), Seconds: 0.1}
		if i%2 == 0 {
			e.Measured, e.Val, e.Train, e.Test = true, 0.5, math.NaN(), 0.5
		}
		l.On(Span{Name: "forward", Kind: "step", Start: time.Now(), Dur: time.Millisecond})
		l.On(e)
	}
	l.On(Saved{Path: "ck", Epoch: n, Bytes: 2048})
	l.On(Note{Text: "a note"})
	l.On(Done{Reason: "finished", Epochs: n, BestEpoch: 0, Val: 0.5, Test: math.NaN(), Seconds: 3})
}

func lines(t *testing.T, epochs int, step time.Duration) []string {
	t.Helper()
	var b bytes.Buffer
	l := NewLines(&b)
	l.pace.now = (&clock{step: step}).now
	shortRun(l, epochs)
	l.Close()
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

func TestLinesOfAQuickRun(t *testing.T) {
	if got := lines(t, 3, 250*time.Microsecond)[1]; !strings.Contains(got, "4,000 epochs/s") {
		t.Error(got)
	}
}

func TestLinesOfAShortRun(t *testing.T) {
	got := lines(t, 3, 100*time.Millisecond)
	want := []string{
		"gcn on d: 1,234,567 vertices, 10 edges, 99 parameters",
		"epoch 1/3  loss 1.0000  val 0.5000  10 epochs/s  left 200 ms",
		"epoch 2/3  loss 0.5000  val 0.5000  6.67 epochs/s  left 150 ms",
		"epoch 3/3  loss 0.3333  val 0.5000  6 epochs/s  left 0 ms",
		"checkpoint ck (2.0 KiB)",
		"a note",
		"finished after 3 epochs in 3.0 s; best epoch 1: validation accuracy 0.5000, test -",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLinesOfALongRun(t *testing.T) {
	got := lines(t, 1000, 10*time.Millisecond) // two looks an epoch: 20 s in all
	if len(got) < 18 || len(got) > 30 {
		t.Errorf("%d lines for 20 seconds", len(got))
	}
	if last := got[len(got)-3]; !strings.HasPrefix(last, "epoch 1000/1000") {
		t.Errorf("the last epoch is missing: %q", last)
	}
}

func TestLinesOfTasks(t *testing.T) {
	var b bytes.Buffer
	l := NewLines(&b)
	l.pace.now = (&clock{step: 300 * time.Millisecond}).now
	for part := range int64(3) { // two quick tasks that take turns
		l.On(Progress{Task: "halos", Done: part + 1, Total: 3})
		l.On(Progress{Task: "write", Done: part + 1, Total: 3})
	}
	for done := range int64(6) {
		l.On(Progress{Task: "refine", Done: done + 1, Total: 6})
	}
	l.On(Progress{Task: "refine", Done: 6, Total: 6})
	l.On(Progress{Task: "read", Done: 5})
	want := "halos: 100%\nwrite: 100%\nrefine: 67%\nrefine: 100%\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// A slow task is at most a line per percent.
func TestLinesOfASlowTask(t *testing.T) {
	var b bytes.Buffer
	l := NewLines(&b)
	l.pace.now = (&clock{step: 2 * time.Second}).now
	for done := range int64(1000) {
		l.On(Progress{Task: "draw edges", Done: done, Total: 1000})
	}
	if n := strings.Count(b.String(), "\n"); n < 90 || n > 101 {
		t.Errorf("%d lines for 100 percent", n)
	}
}

// screen is what a terminal of one column per rune shows after what was written to it.
func screen(written string) []string {
	lines, col := [][]rune{nil}, 0
	for text := []rune(written); len(text) > 0; text = text[1:] {
		last := len(lines) - 1
		switch {
		case text[0] == '\n':
			lines, col = append(lines, nil), 0
		case text[0] == '\r':
			col = 0
		case strings.HasPrefix(string(text), "\x1b[K"):
			lines[last], text = lines[last][:col], text[2:]
		default:
			lines[last] = append(lines[last][:col], text[0])
			col++
		}
	}
	var out []string
	for _, l := range lines {
		out = append(out, string(l))
	}
	return out
}

// TestBar: a bar that is over is full, or gone; lines stand above it, whole.
func TestBar(t *testing.T) {
	var b bytes.Buffer
	bar := NewBar(&b, func() int { return 80 })
	bar.pace.now = (&clock{step: 100 * time.Millisecond}).now
	bar.On(Progress{Task: "read", Done: 7000})
	bar.On(Progress{Task: "read", Done: 8000, Total: 8000})
	for range 2 { // a task that comes again leaves no second bar
		bar.On(Progress{Task: "draw", Done: 1, Total: 2})
		bar.On(Note{Text: "a note that is longer than the terminal is wide, so that it is broken between two words"})
		bar.On(Progress{Task: "draw", Done: 2, Total: 2})
		bar.On(Progress{Task: "draw", Done: 1, Total: 2}) // a goroutine that reports late
	}
	bar.On(Progress{Task: "write", Done: 0, Total: 0})
	bar.Close()
	bar.On(Progress{Task: "fail", Done: 1, Total: 2})
	shortRun(bar, 30)
	bar.Close()
	full := strings.Repeat("=", barWidth)
	note := []string{"a note that is longer than the terminal is wide, so that it is broken between", "  two words"}
	want := []string{"read  [" + full + "]", note[0], note[1], "draw  [" + full + "]", note[0], note[1],
		"gcn on d: 1,234,567 vertices, 10 edges, 99 parameters", "a note",
		"epoch 30/30  [" + strings.Repeat("=", 13) + "]  loss 0.0333  val 0.5000  6 epochs/s  left 0 ms",
		"finished after 30 epochs in 3.0 s; best epoch 1: validation accuracy 0.5000,", "  test -", ""}
	got := screen(b.String())
	for i := range got {
		got[i] = regexp.MustCompile(`\d+(\.\d+)? epochs/s`).ReplaceAllString(got[i], "6 epochs/s")
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBarInterrupted: the bar of training that was stopped says how far it came.
func TestBarInterrupted(t *testing.T) {
	var b bytes.Buffer
	bar := NewBar(&b, func() int { return 40 })
	bar.On(Started{Model: "gcn", Epochs: 10})
	bar.On(Epoch{Epoch: 3, Loss: 1})
	bar.On(Note{Text: "stopping"})
	bar.Close()
	got := screen(b.String())
	if len(got) < 3 || got[len(got)-3] != "stopping" || !strings.HasPrefix(got[len(got)-2], "epoch 4/10") {
		t.Errorf("%q", got)
	}
}

func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	shortRun(NewJSONLines(&b), 2)
	var kinds []string
	for line := range strings.Lines(b.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err, line)
		}
		kinds = append(kinds, m["event"].(string))
		if m["event"] == "epoch" && m["epoch"] == 0.0 && (m["train"] != nil || m["val"] != 0.5 || m["lr"] != 0.0) {
			t.Error(line)
		}
	}
	if got := strings.Join(kinds, " "); got != "started epoch epoch saved note done" {
		t.Error(got)
	}
}

func TestTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	tr, err := NewTrace(path)
	if err != nil {
		t.Fatal(err)
	}
	shortRun(tr, 5)
	tr.On(Span{Name: "x", Worker: 3, Lane: 1, Start: time.Now(), Dur: time.Second})
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range got.TraceEvents {
		count[e.Phase]++
		if e.Phase == "X" && e.Dur <= 0 {
			t.Error("a span without length:", e)
		}
	}
	if names := threads(got.TraceEvents); names != "compute transfers" {
		t.Error(names)
	}
	if count["X"] != 6 || count["M"] != 4 || count["C"] != 8 || count["i"] != 1 {
		t.Error(count)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// TestTraceThroughALink: a link, as a device, stays what it is.
func TestTraceThroughALink(t *testing.T) {
	dir := t.TempDir()
	path, real := filepath.Join(dir, "link"), filepath.Join(dir, "real.json")
	if err := os.WriteFile(real, []byte("longer than nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, path); err != nil {
		t.Skip("no links here: ", err)
	}
	tr, err := NewTrace(path)
	if err != nil {
		t.Fatal(err)
	}
	shortRun(tr, 5)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced: ", info.Mode(), err)
	}
	if b, err := os.ReadFile(real); err != nil || !json.Valid(b) {
		t.Errorf("%.80s, %v", b, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Error("left behind:", left)
	}
}

func TestWords(t *testing.T) {
	for want, got := range map[string]string{
		"-1,234": Count(-1234), "-123": Count(-123), "999": Count(999), "1,000": Count(1000), "0": Count(0),
		"5 ms": Duration(5 * time.Millisecond), "3 min 05 s": Duration(185 * time.Second),
		"2 h 01 min": Duration(121 * time.Minute),
		"1.5 KiB":    Bytes(1536), "12 B": Bytes(12), "3.0 GiB": Bytes(3 << 30),
		"first_epoch": snake("FirstEpoch"), "lr": snake("LR"), "best": snake("Best"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// threads are the names of lanes in the order of a trace.
func threads(events []traceEvent) string {
	var names []string
	for _, e := range events {
		if e.Name == "thread_name" {
			names = append(names, e.Args["name"].(string))
		}
	}
	return strings.Join(names, " ")
}
