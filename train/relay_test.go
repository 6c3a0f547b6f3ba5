package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

func relayOptions(model, strategy string) Options {
	o := small(model)
	o.Strategy = DefaultChoice(strategy)
	o.Strategy.Relay = true
	o.Strategy.Budget = 2 << 10 // g3: bins of a few vertices
	return o
}

// TestRelayIsExact: rows that are passed on are the rows that come straight.
func TestRelayIsExact(t *testing.T) {
	for i, model := range familyModels {
		d := communities(t, 120, i%2 == 0)
		for _, c := range []struct{ workers, servers int }{{4, 2}, {6, 2}, {6, 3}}[i%3 : i%3+1] {
			parts := cutForServers(t, d, "random", c.workers, c.servers)
			for _, strategy := range []string{"halo", "bns", "g3", "neutronstar"} {
				o := relayOptions(model, strategy)
				o.Strategy.Keep, o.Strategy.Cached = 1, i%2 == 0
				if strategy == "neutronstar" {
					o.Strategy.Budget = 1 // all is received
				}
				want := mustTrain(t, tensor.NewRef(), d, o)
				label := fmt.Sprintf("%s of %s on %d servers of %d workers", strategy, model, c.servers, c.workers/c.servers)
				for _, r := range trainParts(t, parts, ref, o) {
					sameCurve(t, label, r.Loss, want.Loss, 1e-9)
				}
				for _, r := range trainParts(t, parts, single, o) {
					sameCurve(t, label+", float32", r.Loss, want.Loss, 1e-3)
				}
			}
		}
	}
}

// TestPipeGCNRelayed: passed on or not, rows and gradients are an epoch late.
func TestPipeGCNRelayed(t *testing.T) {
	for i, model := range familyModels {
		parts := cutForServers(t, communities(t, 120, i%2 == 0), "random", 6, 2)
		for _, smooth := range []float64{0, 0.9} {
			o := relayOptions(model, "pipegcn")
			o.Strategy.Smooth, o.Strategy.Relay = smooth, false
			want := trainParts(t, parts, ref, o)
			o.Strategy.Relay = true
			for k, r := range trainParts(t, parts, ref, o) {
				sameCurve(t, fmt.Sprintf("%s smoothed by %g", model, smooth), r.Loss, want[k].Loss, 1e-9)
			}
		}
	}
}

// pairsBetween counts, the dumb way, the rows that go from one server to another, each
// once to a worker and once to a server.
func pairsBetween(d *graph.Dataset, parts []*partition.Part) (rows, once int64) {
	book := parts[0].Book
	owner := map[uint32]int{}
	for k, p := range parts {
		for _, id := range p.IDs[:p.Core()] {
			owner[id] = k
		}
	}
	workers, servers := map[[2]int]bool{}, map[[2]int]bool{}
	for v := range d.Graph.Nodes() {
		to := owner[uint32(v)]
		for _, u := range d.Graph.Neighbors(uint32(v)) {
			if book.Server(owner[u]) != book.Server(to) {
				workers[[2]int{int(u), to}], servers[[2]int{int(u), book.Server(to)}] = true, true
			}
		}
	}
	return int64(len(workers)), int64(len(servers))
}

// TestRelaySendsRowsOnce: between servers a layer sends one row for every pair of a
// vertex and a server that needs it, forwards and backwards.
func TestRelaySendsRowsOnce(t *testing.T) {
	d := communities(t, 200, false)
	for _, c := range []struct{ workers, servers int }{{4, 2}, {6, 3}, {8, 2}} {
		parts := cutForServers(t, d, "random", c.workers, c.servers)
		rows, once := pairsBetween(d, parts)
		var sumRows, sumOnce int64
		for _, p := range parts {
			r, o := BetweenServers(p)
			sumRows, sumOnce = sumRows+r, sumOnce+o
		}
		if sumRows != rows || sumOnce != once || once >= rows {
			t.Fatalf("%+v: %d rows go between servers, %d each once; counted %d and %d", c, rows, once, sumRows, sumOnce)
		}
		for _, strategy := range []string{"halo", "pipegcn", "g3"} {
			for _, relay := range []bool{false, true} {
				o := relayOptions("gcn", strategy)
				o.Strategy.Relay, o.Epochs, o.EvalEvery, o.CacheFirst = relay, 2, 0, true
				o.Model.Layers, o.Model.Norm = 2, "none"
				want := rows
				if relay {
					want = once
				}
				run := trainServers(t, parts, onCPU, o)
				// Layer 1, forwards and backwards in two epochs and once to measure.
				if got := run.between(1); got != 5*want*int64(4*o.Model.Out) {
					t.Errorf("%+v, %s, relay %v: %d bytes between servers, want 5 times %d rows of %d", c, strategy, relay, got, want, 4*o.Model.Out)
				}
			}
		}
	}
}

// TestBNSRelayedSendsRowsOnce: between servers an epoch sends the kept pairs of a vertex
// and a server, a share p of them, and inside it each worker has the rows that its server keeps.
func TestBNSRelayedSendsRowsOnce(t *testing.T) {
	d := communities(t, 200, false)
	parts := cutForServers(t, d, "random", 6, 2)
	_, once := pairsBetween(d, parts)
	for _, cached := range []bool{false, true} {
		o := relayOptions("gcn", "bns")
		o.Strategy.Keep, o.Strategy.Cached, o.Epochs, o.EvalEvery = 0.3, cached, 30, 0
		o.Model.Layers, o.Model.Norm, o.CacheFirst = 2, "none", true
		run := trainServers(t, parts, onCPU, o)
		row := float64(4 * o.Model.Out)
		kept := (float64(run.between(1)) - float64(once)*row) / (2 * row) // without measuring, one way
		want := 0.3 * float64(once) * 30
		if cached { // all in the first epoch
			want += 0.7 * float64(once)
		}
		if math.Abs(kept-want) > 0.05*want {
			t.Errorf("cached %v: %g rows between servers, want about %g", cached, kept, want)
		}
	}
}

// TestRelayOfSmallRows: rows pass on in the form they came in, so that rounding them once
// is all; sums of gradients are rounded twice.
func TestRelayOfSmallRows(t *testing.T) {
	parts := cutForServers(t, communities(t, 120, false), "random", 4, 2)
	for _, strategy := range []string{"halo", "pipegcn", "g3"} {
		for _, rows := range []string{"bf16", "int8"} {
			o := relayOptions("sage", strategy)
			o.Strategy.WireRows, o.Strategy.Relay = rows, false
			want := trainParts(t, parts, single, o)
			o.Strategy.Relay = true
			for k, r := range trainParts(t, parts, single, o) {
				sameCurve(t, strategy+" in "+rows, r.Loss, want[k].Loss, 1e-2)
			}
		}
	}
}

// TestBNSRelayedSmallRows: of fewer rows each finds its own rest.
func TestBNSRelayedSmallRows(t *testing.T) {
	parts := cutForServers(t, communities(t, 120, false), "random", 4, 2)
	for _, cached := range []bool{false, true} {
		o := relayOptions("sage", "bns")
		o.Strategy.Keep, o.Strategy.Cached = 0.5, cached
		want := trainParts(t, parts, single, o)
		o.Strategy.WireRows = "int8"
		for k, r := range trainParts(t, parts, single, o) {
			sameCurve(t, fmt.Sprint("cached ", cached), r.Loss, want[k].Loss, 1e-2)
		}
	}
}

// TestRelayResumes: late rows and rests that are passed on are in the checkpoint.
func TestRelayResumes(t *testing.T) {
	parts := cutForServers(t, communities(t, 90, false), "hash", 4, 2)
	for _, strategy := range []string{"pipegcn", "bns"} {
		for _, rows := range []string{"", "int8"} {
			o := relayOptions("sage", strategy)
			o.Epochs, o.EvalEvery, o.Model.Layers, o.Strategy.WireRows = 7, 2, 3, rows
			o.Strategy.Cached = true
			want := trainParts(t, parts, single, o)[0].Loss
			for _, at := range []int{1, 4} {
				if got := resumedAt(t, parts, o, at); !slices.Equal(got, want) {
					t.Errorf("%s, rows %q, saved after %d: %v, never stopped %v", strategy, rows, at, got, want)
				}
			}
		}
	}
}

func TestRelayStopsTogether(t *testing.T) {
	for _, strategy := range []string{"halo", "bns", "pipegcn", "g3"} {
		allStop(t, relayOptions("gcn", strategy).Strategy)
	}
}

// TestRelayWithoutUse: on one server it is refused, with one worker a server there is a
// note, and where it would help and is off there is a hint.
func TestRelayWithoutUse(t *testing.T) {
	d := communities(t, 120, false)
	for _, c := range []struct {
		servers int
		relay   bool
		note    string
	}{{4, true, "nothing to pass on"}, {4, false, ""}, {2, false, "fewer rows between servers"}, {2, true, ""}} {
		o := relayOptions("gcn", "halo")
		o.Strategy.Relay, o.Epochs = c.relay, 1
		notes := strings.Join(trainServers(t, cutForServers(t, d, "random", 4, c.servers), onCPU, o).notes, "; ")
		if c.note == "" && notes != "" || !strings.Contains(notes, c.note) {
			t.Errorf("%+v: %q", c, notes)
		}
	}
	dev := tensor.NewRef()
	o := relayOptions("gcn", "halo")
	_, err := PlanOnPaper(cut(t, d, "random", 2)[0], wire.NewGroup(2, wire.DefaultOptions())[0], dev, nn.New(dev, o.Model, 1), nn.Classify{}, o)
	if err == nil || !strings.Contains(err.Error(), "--servers") {
		t.Errorf("on one server: %v", err)
	}
}
