package g3

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/train"
	"starling/train/traintest"
)

// piped is g3 with bins of a few vertices in small models.
func piped(pipeline string) train.Choice {
	return traintest.Made(Strategy, options{Pipeline: pipeline,
		BudgetOption: exchange.BudgetOption{MemoryBudget: "2KiB"}, RowOptions: exchange.DefaultRows})
}

// TestIsExact: every model and pipeline, on several workers and partitions, follows
// one worker's loss: to 1e-9 in float64, to 1e-4 in float32.
func TestIsExact(t *testing.T) {
	workers := []int{1, 2, 3, 5}
	method := func(w int) string { return []string{"random", "hash", "chunk", "fennel"}[w%4] }
	for _, sparse := range []bool{false, true} {
		d := traintest.Communities(t, 120, sparse)
		cuts := map[int][]*partition.Part{}
		for _, w := range workers {
			cuts[w] = traintest.Cut(t, d, method(w), w)
		}
		for _, model := range nn.Models {
			o := traintest.Options(model)
			o.Strategy = piped("both")
			o.Epochs, o.EvalEvery = 4, 2
			if o.Model.Layers > 2 {
				o.Model.Layers = 4
			}
			if model == "gcn" {
				o.Model.Norm = "batch"
			}
			want := traintest.Full(t, traintest.Ref(), d, o)
			for i, w := range workers {
				parts := cuts[w]
				pipeline := []string{"none", "intra", "both", "inter"}[i]
				o.Strategy = piped(pipeline)
				label := fmt.Sprintf("%s sparse=%v on %d workers cut by %s, pipeline %s", model, sparse, w, method(w),
					pipeline)
				for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-9)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
					traintest.SameCurve(t, label+", float32", r.Loss, want.Loss, 1e-4)
				}
			}
		}
	}
}

func TestOnOddParts(t *testing.T) {
	for _, pipeline := range []string{"none", "both"} {
		traintest.ExactOnOddParts(t, piped(pipeline))
	}
}

func TestStopsTogether(t *testing.T) { traintest.AllStop(t, piped("both")) }

// twoThreads is the device of float32 on two threads.
func twoThreads() tensor.Device { return cpu.New(2) }

// TestSameBits: whatever rows come first, equal runs have equal bits.
func TestSameBits(t *testing.T) {
	for _, model := range []string{"sage", "sage-pool", "gat", "gatv2", "film", "ressage+"} {
		d := traintest.Communities(t, 300, false)
		o := traintest.Options(model)
		o.Strategy = piped("both")
		o.Epochs, o.EvalEvery, o.Model.Layers = 5, 0, 3
		parts := traintest.Cut(t, d, "fennel", 3)
		want := traintest.TrainParts(t, parts, traintest.Single, o)[0]
		for range 3 {
			if r := traintest.TrainParts(t, parts, twoThreads, o)[0]; !slices.Equal(r.Loss, want.Loss) {
				t.Fatalf("%s: losses %v, before %v", model, r.Loss, want.Loss)
			}
		}
	}
}

// TestJoinedChunks: chunks that are gathered, summed and added together have the bits of chunks by themselves, whatever
// the codec, relays and attention.
func TestJoinedChunks(t *testing.T) {
	was := leastSend
	defer func() { leastSend = was }()
	d := traintest.Communities(t, 300, false)
	for _, model := range []string{"sage", "gat"} {
		for i, o := range []options{{Pipeline: "both"}, {Pipeline: "none"}, {Pipeline: "both"}, {Pipeline: "intra"}} {
			o.RowOptions = exchange.DefaultRows
			o.BudgetOption = exchange.BudgetOption{MemoryBudget: "16KiB"}
			run := traintest.Options(model)
			run.Epochs, run.EvalEvery, run.Model.Layers = 3, 0, 3
			parts := traintest.Cut(t, d, "fennel", 6)
			switch i {
			case 1:
				o.SparseRows = model == "sage"
			case 2:
				o.WireDType = "bf16"
			case 3:
				o.Relay = true
				for _, p := range parts {
					p.Book.Servers = 2
				}
			}
			run.Strategy = traintest.Made(Strategy, o)
			leastSend = was
			joined := traintest.TrainParts(t, parts, traintest.Single, run)[0].Loss
			leastSend = 0
			alone := traintest.TrainParts(t, parts, traintest.Single, run)[0].Loss
			if !slices.Equal(joined, alone) {
				t.Errorf("%s, %s: losses %v, of chunks by themselves %v", model, o.Pipeline, joined, alone)
			}
		}
	}
}

// TestTimeline: every exchange of an epoch is on the timeline, beside computation,
// and from it follows how much was hidden.
func TestTimeline(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 200, false), "hash", 2)
	o := traintest.Options("sage")
	o.Strategy = piped("both")
	o.Epochs, o.EvalEvery, o.Model.Layers = 2, 0, 3
	spans := traintest.TrainServers(t, parts, traintest.Ref, o).Spans
	var travel, wait time.Duration
	transfers, computed := 0, 0
	for _, s := range spans {
		switch {
		case s.Kind == "transfer" && s.Lane > 0 && strings.Contains(s.Name, "layer"):
			transfers++
			travel += s.Dur
		case s.Kind == "wait" && strings.Contains(s.Name, "layer") && s.Lane == 0:
			wait += s.Dur
		case (s.Kind == "forward" || s.Kind == "backward") && strings.Contains(s.Name, "bin"):
			computed++
		}
	}
	// Two layers go forward and backward in each epoch, and forward to measure.
	if want := 2*4 + 2; transfers != want || computed == 0 {
		t.Fatalf("%d transfers and %d bins on the timeline, want %d transfers", transfers, computed, want)
	}
	t.Logf("rows travelled %v, %v of it waited for: %.0f%% hidden", travel, wait, 100*(1-float64(wait)/float64(travel)))
}

// TestWaves: on a dense graph, whose halo rows are added wave by wave, g3 is as exact,
// on one server and on several, and equal runs have equal bits.
func TestWaves(t *testing.T) {
	d := crowded(t, 90)
	for _, model := range []string{"gcn", "sage", "gin", "ressage+"} {
		o := traintest.Options(model)
		o.Strategy = piped("both")
		o.Epochs, o.EvalEvery = 4, 0
		want := traintest.Full(t, traintest.Ref(), d, o)
		for _, servers := range []int{1, 2} {
			parts := traintest.Cut(t, d, "hash", 4)
			for _, p := range parts {
				p.Book.Servers = servers
			}
			if n := (&g3{Aggregator: &exchange.Aggregator{W: &exchange.Worker{Part: parts[0]}}}).waveCount(); n < 2 {
				t.Fatalf("%d waves: the graph is not dense enough to try them", n)
			}
			label := fmt.Sprintf("%s on %d servers", model, servers)
			for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
				traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-9)
			}
			first := traintest.TrainParts(t, parts, traintest.Single, o)[0]
			again := traintest.TrainParts(t, parts, twoThreads, o)[0]
			traintest.SameCurve(t, label+", float32", first.Loss, want.Loss, 1e-4)
			if !slices.Equal(first.Loss, again.Loss) {
				t.Fatalf("%s: losses %v, then %v", label, first.Loss, again.Loss)
			}
		}
	}
}

// crowded is a graph in which every vertex has an edge to most others.
func crowded(t *testing.T, n int) *graph.Dataset {
	t.Helper()
	d := traintest.Communities(t, n, false)
	var src, dst []uint32
	for u := range uint32(n) {
		for v := range u {
			if (u*7+v*3)%5 > 0 {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	d.Graph = traintest.FromEdges(t, n, src, dst, nil, graph.BuildOptions{Symmetrize: true})
	d.Meta.Edges = d.Graph.Edges()
	return d
}

// TestOfOneWayEdges: a part of a graph that is said to be symmetric, and is not, is the
// user's mistake.
func TestOfOneWayEdges(t *testing.T) {
	d := traintest.Communities(t, 400, false)
	var src, dst []uint32
	for v := range uint32(400) {
		src, dst = append(src, v), append(dst, (v+1)%400)
	}
	d.Graph = traintest.FromEdges(t, 400, src, dst, nil, graph.BuildOptions{})
	d.Meta.Edges, d.Meta.Symmetric = d.Graph.Edges(), true
	o := traintest.Options("gcn")
	o.Strategy = piped("both")
	_, err := traintest.Plan(traintest.Cut(t, d, "random", 2)[0], traintest.Ends(2)[0], o)
	if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "edges without their reverse") {
		t.Error(err)
	}
}
