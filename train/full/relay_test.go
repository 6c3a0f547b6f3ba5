package full

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/exchange"
	"starling/graph"
	"starling/partition"
	"starling/train"
	"starling/train/traintest"
)

// relayed are the options of a strategy whose rows are relayed, if relay is set.
func relayed(t *testing.T, model, strategy string, relay bool, options ...string) train.Options {
	t.Helper()
	o := traintest.Small(model)
	options = append(options, optionIf(relay, "relay"))
	if train.NameOf(strategy) == "g3" {
		options = append(options, "memory_budget=2KiB") // bins of a few vertices
	}
	o.Strategy = traintest.Strategy(t, strategy, append(options, rated(strategy, o.Model.Layers))...)
	return o
}

// TestRelayIsExact: rows that are relayed are the rows that come directly.
func TestRelayIsExact(t *testing.T) {
	for i, model := range traintest.FamilyModels {
		d := traintest.Communities(t, 120, i%2 == 0)
		for _, c := range []struct{ workers, servers int }{{4, 2}, {6, 2}, {6, 3}}[i%3 : i%3+1] {
			parts := traintest.CutForServers(t, d, "random", c.workers, c.servers)
			bns := []string{"bns:1:cached", "bns:1"}[i%2]
			for _, strategy := range []string{"halo", bns, "g3", "neutronstar"} {
				o := relayed(t, model, strategy, true,
					optionIf(strategy == "neutronstar", "memory_budget=1B")) // which then receives all
				want := traintest.Full(t, traintest.Ref(), d, o)
				label := fmt.Sprintf("%s of %s on %d servers of %d workers", strategy, model, c.servers,
					c.workers/c.servers)
				for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-9)
				}
				for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
					traintest.SameCurve(t, label+", float32", r.Loss, want.Loss, 1e-3)
				}
			}
		}
	}
}

// TestPipeGCNRelayed: relayed or not, rows and gradients are an epoch stale.
func TestPipeGCNRelayed(t *testing.T) {
	for i, model := range traintest.FamilyModels {
		parts := traintest.CutForServers(t, traintest.Communities(t, 120, i%2 == 0), "random", 6, 2)
		for _, smooth := range []string{"smooth=0", "smooth=0.9"} {
			want := traintest.TrainParts(t, parts, traintest.Ref, relayed(t, model, "pipegcn", false, smooth))
			for k, r := range traintest.TrainParts(t, parts, traintest.Ref,
				relayed(t, model, "pipegcn", true, smooth)) {
				traintest.SameCurve(t, model+" with "+smooth, r.Loss, want[k].Loss, 1e-9)
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
// vertex and a server that needs it, forward and backward.
func TestRelaySendsRowsOnce(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	for _, c := range []struct{ workers, servers int }{{4, 2}, {6, 3}, {8, 2}} {
		parts := traintest.CutForServers(t, d, "random", c.workers, c.servers)
		rows, once := pairsBetween(d, parts)
		var sumRows, sumOnce int64
		for _, p := range parts {
			r, o := exchange.BetweenServers(p)
			sumRows, sumOnce = sumRows+r, sumOnce+o
		}
		if sumRows != rows || sumOnce != once || once >= rows {
			t.Fatalf("%+v: %d rows go between servers, %d each once; counted %d and %d", c, rows, once, sumRows,
				sumOnce)
		}
		for _, strategy := range []string{"halo", "pipegcn", "g3"} {
			for _, relay := range []bool{false, true} {
				o := relayed(t, "gcn", strategy, relay)
				o.Epochs, o.EvalEvery, o.CacheFirst = 2, 0, true
				o.Model.Layers, o.Model.Norm = 2, "none"
				want := rows
				if relay {
					want = once
				}
				run := traintest.TrainServers(t, parts, traintest.Single, o)
				// Layer 1, forward and backward in two epochs and once to measure.
				if got := run.Between(1); got != 5*want*int64(4*o.Model.Out) {
					t.Errorf("%+v, %s, relay %v: %d bytes between servers, want 5 times %d rows of %d", c, strategy,
						relay, got, want, 4*o.Model.Out)
				}
			}
		}
	}
}

// TestBNSRelayedSendsRowsOnce: between servers an epoch sends the kept pairs of a vertex
// and a server, a share p of them, and inside it each worker has the rows that its server keeps.
func TestBNSRelayedSendsRowsOnce(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	parts := traintest.CutForServers(t, d, "random", 6, 2)
	_, once := pairsBetween(d, parts)
	for _, cached := range []bool{false, true} {
		o := relayed(t, "gcn", "bns:0.3"+optionIf(cached, ":cached"), true)
		o.Epochs, o.EvalEvery = 30, 0
		o.Model.Layers, o.Model.Norm, o.CacheFirst = 2, "none", true
		run := traintest.TrainServers(t, parts, traintest.Single, o)
		row := float64(4 * o.Model.Out)
		kept := (float64(run.Between(1)) - float64(once)*row) / (2 * row) // without measuring, one way
		want := 0.3 * float64(once) * 30
		if cached { // all in the first epoch
			want += 0.7 * float64(once)
		}
		if math.Abs(kept-want) > 0.05*want {
			t.Errorf("cached %v: %g rows between servers, want about %g", cached, kept, want)
		}
	}
}

// TestRelayOfRoundedRows: rows are relayed in the form they arrived in, so that rounding
// them once is all; sums of gradients are rounded twice.
func TestRelayOfRoundedRows(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 120, false), "random", 4, 2)
	for _, strategy := range []string{"halo", "pipegcn", "g3"} {
		for _, dtype := range []string{"wire_dtype=bf16", "wire_dtype=int8"} {
			want := traintest.TrainParts(t, parts, traintest.Single, relayed(t, "sage", strategy, false, dtype))
			for k, r := range traintest.TrainParts(t, parts, traintest.Single,
				relayed(t, "sage", strategy, true, dtype)) {
				traintest.SameCurve(t, strategy+" with "+dtype, r.Loss, want[k].Loss, 1e-2)
			}
		}
	}
}

// TestBNSRelayedRounded: of fewer rows each finds its own error-feedback residual.
func TestBNSRelayedRounded(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 120, false), "random", 4, 2)
	for _, strategy := range []string{"bns:0.5", "bns:0.5:cached"} {
		want := traintest.TrainParts(t, parts, traintest.Single, relayed(t, "sage", strategy, true))
		for k, r := range traintest.TrainParts(t, parts, traintest.Single,
			relayed(t, "sage", strategy, true, "wire_dtype=int8")) {
			traintest.SameCurve(t, strategy, r.Loss, want[k].Loss, 1e-2)
		}
	}
}

// TestRelayResumes: stale rows and residuals that are relayed are in the checkpoint.
func TestRelayResumes(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "hash", 4, 2)
	for _, strategy := range []string{"pipegcn", "bns:cached"} {
		for _, dtype := range []string{"none", "int8"} {
			o := relayed(t, "sage", strategy, true, "wire_dtype="+dtype)
			o.Epochs, o.EvalEvery, o.Model.Layers = 7, 2, 3
			for _, at := range []int{1, 4} {
				if want, got := traintest.Resumed(t, parts, o, at, true); !slices.Equal(got.Loss, want.Loss) {
					t.Errorf("%s, rows %s, saved after %d: %v, never stopped %v", strategy, dtype, at, got.Loss,
						want.Loss)
				}
			}
		}
	}
}

func TestRelayStopsTogether(t *testing.T) {
	for _, strategy := range []string{"halo", "bns", "pipegcn", "g3"} {
		traintest.AllStop(t, relayed(t, "gcn", strategy, true).Strategy)
	}
}

// TestRelayWithoutUse: on one server it is refused, and with one worker per server; where it would
// help and is off there is a hint.
func TestRelayWithoutUse(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for _, c := range []struct {
		servers int
		relay   bool
		note    string
	}{{4, false, ""}, {2, false, "fewer rows between servers"}, {2, true, ""}} {
		o := relayed(t, "gcn", "halo", c.relay)
		o.Epochs = 1
		notes := strings.Join(traintest.TrainServers(t, traintest.CutForServers(t, d, "random", 4, c.servers),
			traintest.Single, o).Notes, "; ")
		if c.note == "" && notes != "" || !strings.Contains(notes, c.note) {
			t.Errorf("%+v: %q", c, notes)
		}
	}
	for _, servers := range []int{1, 2} {
		part := traintest.CutForServers(t, d, "random", 2, servers)[0]
		_, err := traintest.Plan(part, traintest.Ends(2)[0], relayed(t, "gcn", "halo", true))
		if err == nil || !strings.Contains(err.Error(), "--servers") {
			t.Errorf("on %d servers: %v", servers, err)
		}
	}
}
