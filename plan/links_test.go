package plan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"starling/cost"
	"starling/event"
	"starling/report"
	"starling/wire"
	"starling/worker"
)

// TestTimePairs: every pair that is to be measured has a rate and a delay, told by its lower rank.
func TestTimePairs(t *testing.T) {
	t.Parallel()
	const workers, servers = 4, 2
	found := make([][]linkToPeer, workers)
	var all sync.WaitGroup
	ends := wire.NewGroup(workers, wire.DefaultOptions())
	for r, end := range ends {
		all.Go(func() {
			var err error
			if found[r], err = timePairs(context.Background(), end, servers, 0.05); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	all.Wait()
	for _, end := range ends {
		end.Close()
	}
	for r, want := range [][]int{{1, 2}, {3}, {3}, nil} {
		if len(found[r]) != len(want) {
			t.Fatalf("rank %d tells of %v, want links to %v", r, found[r], want)
		}
		for i, l := range found[r] {
			if l.Peer != want[i] || !(l.Rate > 1) || !(l.Delay > 0) {
				t.Errorf("rank %d: %+v, want a link to %d", r, l, want[i])
			}
		}
	}
}

// TestMeasureLinks: workers join a plan and measure, the file keeps their links and a later plan predicts by them;
// a --rate that is far from them is named, and so is a host that does not answer.
func TestMeasureLinks(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	o := Default()
	o.Cluster.Workers, o.Cluster.Servers, o.RatesFile = 2, 2, roundRates(t)
	o.Links = LinkOptions{Measure: true, Timeout: 20}
	joined := make(chan error, 2)
	var notes []string
	var mu sync.Mutex
	hear := event.Func(func(e event.Event) {
		n, ok := e.(event.Note)
		if !ok {
			return
		}
		mu.Lock()
		notes = append(notes, n.Text)
		mu.Unlock()
		if _, rest, ok := strings.Cut(n.Text, "--join "); ok {
			for r := range 2 {
				w := &worker.Spec{Addr: strings.Fields(rest)[0], Rank: r, Timeout: 20, Heartbeat: 10}
				go func() { joined <- JoinLinks(context.Background(), w) }()
			}
		}
	})
	known, err := o.rates(context.Background(), hear)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-joined; err != nil {
			t.Error(err)
		}
	}
	if len(known.Links) != 1 || known.Links[0].B != 1 || known.Between.Rate != known.Links[0].Rate {
		t.Fatalf("%+v, want the link between servers 0 and 1", known.Links)
	}
	again := o
	again.Links.Measure = false
	if kept, err := again.rates(context.Background(), hear); err != nil || len(kept.Links) != 1 {
		t.Errorf("the file has %+v: %v", kept, err)
	}
	again.Rate = "1mbit"
	if kept, err := again.rates(context.Background(), hear); err != nil || kept.Links != nil ||
		!strings.HasPrefix(notes[len(notes)-1], "--rate 1mbit is not what was measured: servers 0 and 1") {
		t.Errorf("%+v, %v: %q", kept, err, notes)
	}
	if err := again.keep(known); err != nil {
		t.Fatal(err)
	}
	if kept, err := ReadRates(o.RatesFile); err != nil || len(kept.Links) != 1 {
		t.Errorf("what is learnt from a plan with --rate takes away the links: %+v, %v", kept, err)
	}
	late := o
	late.Links.Timeout = 1
	if _, err := late.rates(context.Background(), event.All()); err == nil ||
		!strings.Contains(err.Error(), "missing rank 0, 1") {
		t.Errorf("no worker joined: %v", err)
	}
}

// TestJoinCommandOfPlanHasTokenFile: the command that workers are to be started by has all they need to join.
func TestJoinCommandOfPlanHasTokenFile(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-secret-of-many-words-in-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	shown := ""
	o := Default()
	o.Cluster.Workers = 2
	o.Links = LinkOptions{Measure: true, Timeout: 20, TokenFile: token}
	err := o.measureLinks(ctx, &cost.Known{}, event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			shown = n.Text
			cancel()
		}
	}))
	if !errors.Is(err, report.ErrInterrupted) || !strings.Contains(shown, " --token-file "+token+" --rank R") {
		t.Errorf("%q, %v", shown, err)
	}
}

// TestTakeLinks: of several pairs of two servers the slowest counts, and what cannot be is refused.
func TestTakeLinks(t *testing.T) {
	t.Parallel()
	o, k := &Options{}, &cost.Known{}
	o.Cluster.Workers, o.Cluster.Servers = 4, 2
	link := func(peer int, rate float64) linkToPeer { return linkToPeer{peer, cost.Link{Rate: rate, Delay: 1e-4}} }
	found := []linkReport{{"a", []linkToPeer{link(1, 9e9), link(2, 2e8)}}, {"b", []linkToPeer{link(3, 1e8)}},
		{"c", []linkToPeer{link(3, 8e9)}}, {"d", nil}}
	if err := o.takeLinks(k, found, event.All()); err != nil {
		t.Fatal(err)
	}
	if len(k.Links) != 1 || k.Links[0].Rate != 1e8 || k.Links[0].Hosts != [2]string{"b", "d"} || k.Inside.Rate != 8e9 {
		t.Errorf("%+v", k)
	}
	found[1].Links[0].Peer = 0
	if o.takeLinks(k, found, event.All()) == nil {
		t.Error("a link to an earlier rank passed")
	}
}
