package mini

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/sample"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
	"starling/wire"
)

// typedBatches are sampled by relation, one of which has fanouts of its own.
func typedBatches(d *graph.Dataset) train.BatchSettings {
	own := make([]int, len(d.Meta.Schema.Relations))
	own[0], own[1] = sample.All, 1
	return train.BatchSettings{Sampler: "neighbour", Size: 16, Fanouts: []int{3, 2}, RelationFanouts: [][]int{own},
		Threads: 1}
}

// TestTypedBatchesAreExact: typed models on several workers follow one worker's loss, whatever the strategy, and send
// what was planned.
func TestTypedBatchesAreExact(t *testing.T) {
	d := traintest.Typed(t, 40)
	settings := typedBatches(d)
	for m, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		o.Epochs, o.EvalEvery = 2, 2
		want := traintest.Ran(t)(batch.Run(context.Background(), traintest.Ref(), d, o, settings, nil))
		for w, workers := range []int{1, 2, 3, 5} {
			parts := traintest.CutForServers(t, d, []string{"random", "hash"}[workers%2], workers, workers)
			for i, c := range typedStrategies {
				if (m+w+i)%len(nn.TypedModels) > 0 {
					continue // every strategy has every number of workers, and every model
				}
				label := fmt.Sprintf("%s with %v on %d workers", model, c, workers)
				for _, r := range traintest.Batches(t, parts, o, settings, true, c[0], c[1:]...).Results {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-12)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
				}
			}
		}
	}
}

var typedStrategies = [][]string{{"distdgl", "roots=random"}, {"salient"}, {"distdgl", "cache=s3fifo"}, {"bytegnn"},
	{"hopgnn"}, {"hopgnn", "pre_gather=false"}, {"cobatch"}, {"lookahead", "cache_budget=2KB", "cache_window=3"}}

// TestTypedServersShareBatches: so do the workers of a server that compute a typed batch together, or draw apart.
func TestTypedServersShareBatches(t *testing.T) {
	d := traintest.Typed(t, 40)
	settings := typedBatches(d)
	for i, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		o.Epochs, o.EvalEvery = 2, 2
		want := traintest.Ran(t)(batch.Run(context.Background(), traintest.Ref(), d, o, settings, nil))
		parts := traintest.CutForServers(t, d, "hash", 4, []int{1, 2, 2, 1, 2}[i])
		o.Batches = &settings
		for _, strategy := range []string{"cobatch", "salient"} {
			o.Strategy = traintest.Strategy(t, strategy)
			for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
				traintest.SameCurve(t, model+" with "+strategy, r.Loss, want.Loss, 1e-12)
				traintest.SameCurve(t, model+" with "+strategy+", validation", r.Val, want.Val, 1e-12)
			}
		}
	}
}

// TestUntypedBatchesSayWhy: who cannot train on a typed graph refuses it with a reason.
func TestUntypedBatchesSayWhy(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 40))
	o := traintest.TypedOptions(d, "rgcn")
	settings := typedBatches(d)
	o.Batches = &settings
	for _, c := range [][]string{{"p3"}, {"naive-hop"}, {"distdgl", "dgs=true"}, {"salient", "drop_features=0.5"},
		{"cobatch", "eas=1,5"}} {
		o.Strategy = traintest.Strategy(t, c[0], c[1:]...)
		err := train.Check(&o, train.Facts{Workers: 2})
		if err == nil || !strings.Contains(err.Error(), "a typed graph") {
			t.Errorf("%v: %v", c, err)
		}
	}
	o.Strategy = traintest.Strategy(t, "distdgl")
	for name, change := range map[string]func(o *train.Options){
		"--sampler ladies":   func(o *train.Options) { o.Batches.Sampler = "ladies" },
		"--weighted":         func(o *train.Options) { o.Batches.Weighted = true },
		"--inductive":        func(o *train.Options) { o.Inductive = true },
		"--learn-embeddings": func(o *train.Options) { o.Embeddings = &train.EmbeddingOptions{Dim: 2} },
	} {
		other, batches := o, settings
		other.Batches = &batches
		change(&other)
		if err := train.Check(&other, train.Facts{Workers: 2}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLearntTypesResume: a run whose types without features have learnt rows goes on to the same bits, on one worker
// and on several, and these rows have been learnt.
func TestLearntTypesResume(t *testing.T) {
	d := traintest.Typed(t, 40)
	settings := typedBatches(d)
	o := traintest.TypedOptions(d, "hsage")
	o.Epochs = 4
	var saved *train.State
	one := func(o train.Options) *train.Result {
		o.SaveEvery, o.MidwayOnly, o.Save = 2, true, func(s *train.State) error {
			for i := range s.Caches {
				s.Caches[i].Data, s.Caches[i].Read = s.Caches[i].Numbers(), nil
			}
			saved = s
			return nil
		}
		return traintest.Ran(t)(batch.Run(context.Background(), traintest.Single(), d, o, settings, nil))
	}
	want := one(o)
	o.Resume = saved
	if got := one(o); !slices.Equal(got.Loss, want.Loss) {
		t.Errorf("one worker: losses %v, resumed %v", want.Loss, got.Loss)
	}
	moved := slices.IndexFunc(saved.Caches, func(x nn.Tensor) bool { return x.Name == "learnt.sparse.first_moment" })
	if !slices.ContainsFunc(saved.Caches[moved].Data, func(x float64) bool { return x != 0 }) {
		t.Error("no row was learnt")
	}
	o.Resume, o.Batches = nil, &settings
	parts := traintest.Cut(t, d, "hash", 3)
	for _, strategy := range []string{"salient", "hopgnn"} {
		o.Strategy = traintest.Strategy(t, strategy)
		if want, got := traintest.Resumed(t, parts, o, 2, true); !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: losses %v, resumed %v", strategy, want.Loss, got.Loss)
		}
	}
}

// TestLearntTypesResumeOnOtherWorkers: rows of types without features go where their vertices are, with their moments.
func TestLearntTypesResumeOnOtherWorkers(t *testing.T) {
	d := traintest.Typed(t, 40)
	settings := typedBatches(d)
	for i, workers := range [][2]int{{4, 2}, {2, 3}, {3, 1}} {
		o := traintest.TypedOptions(d, []string{"hsage", "rgcn", "hsage"}[i])
		o.Epochs, o.Batches = 3, &settings
		o.Strategy = traintest.Strategy(t, []string{"salient", "distdgl", "bytegnn"}[i])
		cut := func(k int) []*partition.Part { return traintest.Cut(t, d, []string{"random", "hash"}[k%2], k) }
		traintest.ResumesOnOthers(t, cut(workers[0]), cut(workers[1]), o, 2)
	}
}

// TestTypedBatchesSendWhatIsPlanned: where every epoch draws the same, plans of typed batches are what is counted to
// the byte, in dry runs too: edges with relations, rows of every type, learnt rows and their gradients. Shares that are
// dealt at random, and rows that are asked for hop by hop, come close; a share of rows is rounded.
func TestTypedBatchesSendWhatIsPlanned(t *testing.T) {
	d := traintest.Typed(t, 40)
	all := []int{sample.All, sample.All}
	settings := train.BatchSettings{Sampler: "neighbour", Size: 1000, Fanouts: all, Threads: 1}
	for _, c := range [][]string{{"distdgl"}, {"distdgl", "pull_dtype=bf16"}, {"salient", "cache_budget=1KiB"},
		{"cobatch"}, {"bytegnn"}, {"hopgnn"}, {"hopgnn", "pre_gather=false"}, {"lookahead", "cache_budget=300B"},
		{"lookahead", "cache_budget=2KB"}} {
		o := traintest.TypedOptions(d, "rgcn")
		o.Epochs = 2
		parts := traintest.CutForServers(t, d, "random", 3, 3)
		r := traintest.Batches(t, parts, o, settings, true, c[0], c[1:]...)
		within := map[string]float64{"bytegnn": 0.01, "hopgnn": 0.05, "lookahead": 0.001}[c[0]]
		planned, dry, sent := map[wire.Kind]int64{}, map[wire.Kind]int64{}, map[wire.Kind]int64{}
		for k, p := range dryPlans(t, parts, o, settings, c[0], c[1:]...) {
			measured := len(r.Results[k].Measured)
			addKinds(planned, r.Results[k].Plan.Total(0, o.Epochs, measured, o.Epochs))
			addKinds(dry, p.Total(0, o.Epochs, measured, o.Epochs))
			addKinds(sent, r.Counted[k])
		}
		for kind, bytes := range sent {
			if most := within * float64(bytes); math.Abs(float64(planned[kind]-bytes)) > most ||
				math.Abs(float64(dry[kind]-bytes)) > most {
				t.Errorf("%v: planned %d bytes of kind %v, in a dry run %d, sent %d", c, planned[kind], kind, dry[kind],
					bytes)
			}
		}
	}
}

// addKinds adds bytes by kind.
func addKinds(to map[wire.Kind]int64, b wire.Bytes) {
	for c, bytes := range b {
		to[c.Kind] += bytes
	}
}
