package cluster

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"starling/internal/testdeadline"
)

// waits is a rank that waits for another.
func waits(rank, peer int, seconds float64, what string) Status {
	return Status{Rank: rank, Waits: []Waiting{{Rank: peer, For: what, Seconds: seconds}}}
}

func TestWhoWaits(t *testing.T) {
	busy := Status{Rank: 2, Host: "alpha", PID: 7, After: "backward convs.1", Busy: 7.1}
	stopped := Status{Rank: 2, Host: "alpha", PID: 7, Age: 6.4,
		Waits: []Waiting{{Rank: 0, For: "control", Seconds: 0.1}}}
	aged := waits(0, 2, 5.5, "activation rows, layer 1")
	aged.Age = 0.7
	for _, c := range []struct {
		name  string
		ranks []Status
		want  string
		waits float64
	}{
		{"all wait for one that computes", []Status{waits(0, 2, 6.2, "activation rows, layer 1"),
			waits(1, 2, 6.0, "activation rows, layer 1"), busy},
			"rank 0 has waited 6.2 s for rank 2 (activation rows, layer 1); rank 1 6.0 s for rank 2 (activation " +
				"rows, layer 1); rank 2 computes since 7.1 s, after backward convs.1; all wait for rank 2 (pid 7 on " +
				"alpha)", 6.2},
		{"for one that is stopped, whatever it did before", []Status{aged, waits(1, 2, 6.0, "control"), stopped},
			"rank 0 has waited 6.2 s for rank 2 (activation rows, layer 1); rank 1 6.0 s for rank 2 (control); rank " +
				"2 has reported nothing for 6.4 s; all wait for rank 2 (pid 7 on alpha)", 6.2},
		{"along a ring", []Status{waits(0, 1, 5.1, "x"), waits(1, 2, 5.3, "x"), busy, waits(3, 0, 5.2, "x")},
			"rank 1 has waited 5.3 s for rank 2 (x); rank 3 5.2 s for rank 0 (x); rank 0 5.1 s for rank 1 (x); rank " +
				"2 computes since 7.1 s, after backward convs.1; all wait for rank 2 (pid 7 on alpha)", 5.3},
		{"for each other", []Status{waits(0, 1, 9, "x"), waits(1, 0, 9, "x")},
			"rank 0 has waited 9.0 s for rank 1 (x); rank 1 9.0 s for rank 0 (x); they wait for each other", 9},
		{"for two", []Status{waits(0, 2, 9, "x"), waits(1, 3, 8, "x"), busy, {Rank: 3, Busy: 8}},
			"rank 0 has waited 9.0 s for rank 2 (x); rank 1 8.0 s for rank 3 (x); rank 2 computes since 7.1 s, " +
				"after backward convs.1; rank 3 prepares since 8.0 s; all wait for ranks 2, 3", 9},
		{"for one that never spoke", []Status{waits(0, 1, 9, "x"), {Rank: 1, Age: -1}},
			"rank 0 has waited 9.0 s for rank 1 (x); rank 1 has reported nothing yet; all wait for rank 1", 9},
		{"short waits are none", []Status{waits(0, 1, 0.5, "x"), busy},
			"rank 0 waits for rank 1 (x); rank 2 computes since 7.1 s, after backward convs.1; no rank waits", 0},
		{"for a rank that there is not", []Status{waits(0, 7, 9, "x")},
			"rank 0 has waited 9.0 s for rank 7 (x); no rank waits", 9},
		{"none", nil, "no rank waits", 0},
	} {
		if got := WhoWaits(c.ranks); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
		if got := LongestWait(c.ranks); got != c.waits {
			t.Errorf("%s: the longest wait is %v, want %v", c.name, got, c.waits)
		}
	}
}

// A line stays readable, however many there are.
func TestWhoWaitsOfMany(t *testing.T) {
	var ranks []Status
	for r := range 100 {
		ranks = append(ranks, waits(r, 99, 6, "x"))
	}
	ranks[99] = Status{Rank: 99, Age: 7}
	if got := WhoWaits(ranks); !strings.Contains(got, "91 others wait too; rank 99 has reported nothing for 7.0 s; "+
		"all wait for rank 99") || len(got) > 600 {
		t.Error(got)
	}
}

// What workers report comes with their signs of life, and watchers see what the
// coordinator shows, if they know the token.
func TestReportsAndWatchers(t *testing.T) {
	var unseen atomic.Bool
	told := make(chan Status, 100)
	g := gather(t, context.Background(), Config{Workers: 2, Token: []byte("for workers only"),
		WatchToken: []byte("for watchers too"),
		Status:     func(s Status) { told <- s },
		Watch: func() any {
			if unseen.Load() {
				return math.NaN()
			}
			return []string{"a", "b"}
		}})
	members := g.all(t, 2, "for workers only")
	members[1].Report(func() Status {
		return Status{Rank: 77, Epoch: 5,
			Waits: []Waiting{{Rank: 0, For: "x", Seconds: 2}}}
	})
	if s := testdeadline.Receive(t, told, "a report"); s.Rank != 1 || s.Epoch != 5 || len(s.Waits) != 1 || s.Waits[0].Seconds != 2 {
		t.Errorf("%+v", s)
	}
	var view []string
	in := JoinRequest{Coordinator: g.Addr(), Timeout: 5 * time.Second, Token: []byte("for watchers too")}
	if err := Watch(t.Context(), in, &view); err != nil || strings.Join(view, "") != "ab" {
		t.Error(view, err)
	}
	// A view that cannot be shown is the watcher's problem, not the job's.
	unseen.Store(true)
	if err := Watch(t.Context(), in, &view); err == nil || !strings.Contains(err.Error(), "cannot be encoded") {
		t.Error(err)
	}
	in.Token = []byte("for workers only")
	if err := Watch(t.Context(), in, &view); err == nil || !strings.Contains(err.Error(), "wrong token") {
		t.Error(err)
	}
	// Nor does the watchers' token admit workers.
	if _, err := g.join(t, 0, "for watchers too"); err == nil || !strings.Contains(err.Error(), "wrong token") {
		t.Error(err)
	}
	finishAll(members)
	testdeadline.Receive(t, g.over, "the end of the run")
	if g.err != nil {
		t.Error(g.err)
	}
}

// finishAll ends a job well.
func finishAll(members []*Member) {
	var wg sync.WaitGroup
	for _, m := range members {
		wg.Go(func() { m.Done([]byte(`{}`), nil) })
	}
	wg.Wait()
}
