package watch

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"starling/cluster"
	"starling/event"
)

// watching is a watcher with a clock of its own, and what it said.
type watching struct {
	*Watcher
	at   time.Time
	said []string
}

func newWatching(workers int) *watching {
	w := &watching{at: time.Unix(1e9, 0)}
	w.Watcher = New(workers, event.Func(func(e event.Event) { w.said = append(w.said, e.(event.Note).Text) }),
		func() time.Time { return w.at })
	return w
}

func (w *watching) pass(d time.Duration) { w.at = w.at.Add(d) }

// report has all ranks wait for the last one, which computes, since some seconds.
func (w *watching) report(since float64) {
	last := len(w.mu.ranks) - 1
	for r := range last {
		w.Take(cluster.Status{Rank: r, Waits: []cluster.Waiting{{Rank: last, For: "activation rows, layer 1",
			Seconds: since}}})
	}
	w.Take(cluster.Status{Rank: last, Host: "h", PID: 9, After: "forward convs.0", Busy: since})
}

func TestStallIsToldOnce(t *testing.T) {
	w := newWatching(3)
	w.On(event.Started{Epochs: 50})
	for e := range 10 {
		w.pass(100 * time.Millisecond)
		w.On(event.Epoch{Epoch: e, Seconds: 0.1, Loss: 1})
	}
	for s := 1.0; s <= 9; s++ {
		w.pass(time.Second)
		w.report(s)
		if told := len(w.said) > 0; told != (s >= 5) {
			t.Fatalf("after %v s: %v", s, w.said)
		}
	}
	w.On(event.Epoch{Epoch: 10, Seconds: 9})
	if len(w.said) != 2 || !strings.HasPrefix(w.said[0], "epoch 11 stalls: rank 0 has waited 5.0 s for rank 2 "+
		"(activation rows, layer 1); rank 1 ") ||
		!strings.HasSuffix(w.said[0], "rank 2 computes since 5.0 s, after forward convs.0; all wait for rank 2 (pid "+
			"9 on h)") ||
		w.said[1] != "epoch 11 is done after 9.0 s; those before took about 100 ms" {
		t.Errorf("%q", w.said)
	}
	w.pass(6 * time.Second)
	w.report(6)
	if len(w.said) != 3 {
		t.Errorf("the next stall: %q", w.said)
	}
}

// TestNoStall: where epochs always take long, or no worker waits for long, no stall is told.
func TestNoStall(t *testing.T) {
	w := newWatching(2)
	w.report(30) // before the start
	w.On(event.Started{Epochs: 50})
	w.pass(15 * time.Second)
	w.report(14) // the first epoch does more
	w.On(event.Epoch{Epoch: 0, Seconds: 15})
	for e := 1; e < 4; e++ {
		w.pass(20 * time.Second)
		w.report(18)
		w.On(event.Epoch{Epoch: e, Seconds: 20})
	}
	w.pass(80 * time.Second)
	w.Take(cluster.Status{Rank: 0, After: "x"})
	w.Take(cluster.Status{Rank: 1, After: "x"})
	w.report(2)
	if len(w.said) > 0 {
		t.Errorf("%q", w.said)
	}
}

func TestSnapshot(t *testing.T) {
	w := newWatching(3)
	if got := w.Snapshot().String(); !strings.HasPrefix(got, "3 workers join since 0 ms\n") ||
		strings.Count(got, "has reported nothing yet") != 3 {
		t.Error(got)
	}
	w.On(event.Started{Dataset: "g", Model: "sage", Strategy: "halo", Epochs: 50})
	w.pass(time.Second)
	w.On(event.Epoch{Epoch: 0, Seconds: 1, Loss: 0.5, Measured: true, Val: 0.25})
	w.On(event.Saved{Epoch: 1})
	sent := func(n int64) []cluster.Moved {
		return []cluster.Moved{{Kind: "feature", Link: "same_host", Bytes: n},
			{Kind: "control", Link: "between_servers", Bytes: n / 4}}
	}
	w.Take(cluster.Status{Rank: 0, Host: "alpha", PID: 11, Epoch: 1, RSS: 3 << 20, Sent: sent(1 << 20), SavedAgo: 1})
	w.pass(2 * time.Second)
	w.Take(cluster.Status{Rank: 0, Host: "alpha", PID: 11, Epoch: 1, RSS: 3 << 20, Sent: sent(5 << 20), SavedAgo: 1,
		Waits: []cluster.Waiting{{Rank: 1, For: "control", Seconds: 0.5}}})
	w.Take(cluster.Status{Rank: 1, Host: "beta-long", PID: 12, Epoch: 1, After: "the update", Busy: 0.2, SavedAgo: -1})
	w.Forget()
	w.On(event.Started{Dataset: "g", Model: "sage", Strategy: "halo", FirstEpoch: 1, Epochs: 50})
	if got := w.Snapshot(); got.Starts != 2 || got.Ranks[0].Age != -1 || got.Epoch != 1 {
		t.Errorf("%+v", got)
	}
	w.mu.starts = 1
	w.Take(cluster.Status{Rank: 0, Host: "alpha", PID: 11, Epoch: 1, RSS: 3 << 20, Sent: sent(1 << 20), SavedAgo: 1})
	w.pass(2 * time.Second)
	w.Take(cluster.Status{Rank: 0, Host: "alpha", PID: 11, Epoch: 1, RSS: 3 << 20, Sent: sent(5 << 20), SavedAgo: 1,
		Waits: []cluster.Waiting{{Rank: 1, For: "control", Seconds: 0.5}}})
	w.Take(cluster.Status{Rank: 1, Host: "beta-long", PID: 12, Epoch: 1, After: "the update", Busy: 0.2, SavedAgo: -1})
	want := `sage on g, strategy halo, 3 workers: epoch 1/50, loss 0.5000, val 0.2500, 1.0 s per epoch
5.0 s since the start, checkpoint of epoch 1 written 4.0 s ago

rank  host       pid  epoch   memory  same host  between servers  state kept  now
   0  alpha       11      1  3.0 MiB  2.0 MiB/s      512.0 KiB/s   1.0 s ago  waits for rank 1 (control)
   1  beta-long   12      1      0 B      0 B/s            0 B/s           -  computes since 0.2 s, after the update
   2  -            -      -        -          -                -           -  has reported nothing yet
`
	if got := w.Snapshot().String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSnapshotWithoutValidation: a run without a validation split has snapshots too.
func TestSnapshotWithoutValidation(t *testing.T) {
	w := newWatching(1)
	w.On(event.Started{Epochs: 5})
	w.On(event.Epoch{Seconds: 1, Loss: 0.5, Measured: true, Train: 1, Val: math.NaN(), Test: math.Inf(-1)})
	s := w.Snapshot()
	if _, err := json.Marshal(s); err != nil || strings.Contains(s.String(), "val") {
		t.Errorf("%v\n%s", err, s)
	}
}

func TestJoined(t *testing.T) {
	split := func(s string) (args [][]byte) {
		for a := range strings.FieldsSeq(s) {
			args = append(args, []byte(a))
		}
		return args
	}
	for line, want := range map[string]string{"": "", "starling": "",
		"starling worker --join 1.2.3.4:5 --rank 0": "1.2.3.4:5", "starling worker --join": "", "vi worker": "",
		"starling train --join x": ""} {
		if got := joined(split(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if _, err := theRun(nil); err == nil {
		t.Error("no run is a run")
	}
	if addr, err := theRun([]string{"a", "b"}); addr != "" || err != nil {
		t.Errorf("of two runs %q, %v", addr, err)
	}
}
