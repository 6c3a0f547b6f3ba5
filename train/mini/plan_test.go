package mini

import (
	"context"
	"fmt"
	"math"
	"testing"

	"starling/event"
	"starling/partition"
	"starling/sample"
	"starling/tensor/cpu"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// planned is the bytes of kinds that depend on draws, of all workers: as planned, and as counted; off
// is how far they may be apart, by four of the plan's deviations.
func planned(r *traintest.Trained, epochs int) (want, got, off float64) {
	drawn := func(c wire.Class) bool {
		return c.Kind != wire.Parameter && c.Kind != wire.Control // these are exact
	}
	for k, w := range r.Results {
		for c, bytes := range w.Plan.Total(0, epochs, len(w.Measured), epochs) {
			if drawn(c) {
				want += float64(bytes)
			}
		}
		for c, bytes := range r.Counted[k] {
			if drawn(c) {
				got += float64(bytes)
			}
		}
		off += 4 * w.Plan.Deviation * float64(w.Plan.Drawn.Sum()) * float64(epochs)
	}
	return want, got, off
}

// TestPlansOfDraws: the ledger has the bytes that were planned for batches within the plan's error, with
// learnt rows and with models that migrate.
func TestPlansOfDraws(t *testing.T) {
	for _, c := range []struct {
		name, strategy string
		options        []string
		dim            int
		async          bool
	}{
		{"rows and labels", "distdgl", []string{"roots=random"}, 0, false},
		{"embeddings", "distdgl", nil, 3, false},
		{"embeddings of bytegnn", "bytegnn", nil, 3, false},
		{"embeddings, async", "distdgl", []string{"roots=random"}, 3, true},
		{"columns", "p3", nil, 0, false},
		{"look-ahead", "lookahead", []string{"cache_budget=2KB"}, 0, false},
		{"look-ahead of embeddings", "lookahead", []string{"cache_budget=1KB", "cache_window=4"}, 3, false},
		{"look-ahead of cobatch", "cobatch", []string{"together=all", "cache=belady", "cache_budget=2KB"}, 0, false},
		{"look-ahead inside servers", "cobatch", []string{"cache=belady", "cache_window=4"}, 0, false},
		{"look-ahead of bytegnn", "bytegnn", []string{"cache=belady", "cache_budget=2KB"}, 0, false},
		{"look-ahead of hopgnn", "hopgnn", []string{"merge=0", "cache=belady", "cache_budget=2KB"}, 0, false},
		{"migration", "hopgnn", []string{"merge=0"}, 0, false},
		{"merged", "hopgnn", []string{"merge=1"}, 0, false},
		{"gathered per step", "hopgnn", []string{"merge=1", "pre_gather=false"}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := traintest.Communities(t, 300, false)
			o := traintest.Options("sage")
			if c.dim > 0 {
				o = traintest.WithEmbeddings("sage", d, c.dim)
				o.Embeddings.Async = c.async
			}
			o.Epochs, o.Model.Layers, o.Model.Norm = 6, 2, "none"
			m := train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{4, 4}, Threads: 1}
			r := traintest.Batches(t, traintest.Cut(t, d, "random", 3), o, m, true, c.strategy, c.options...)
			if want, got, off := planned(r, o.Epochs); off == 0 || off > want/2 || math.Abs(got-want) > off {
				t.Errorf("%.0f bytes were planned, %.0f sent, which is off by more than %.0f", want, got, off)
			}
		})
	}
}

// TestPlansWithoutChance: with all neighbours and one batch per epoch nothing depends on draws, and the
// plan is right to the byte.
func TestPlansWithoutChance(t *testing.T) {
	d := traintest.Communities(t, 150, false)
	for _, async := range []bool{false, true} {
		o := traintest.WithEmbeddings("sage", d, 3)
		o.Embeddings = &train.EmbeddingOptions{Dim: 3, Async: async}
		m := train.BatchSettings{Sampler: "neighbour", Size: 1000, Fanouts: []int{sample.All, sample.All}, Threads: 1}
		r := traintest.Batches(t, traintest.Cut(t, d, "random", 2), o, m, true, "distdgl", "roots=local")
		if want, got, off := planned(r, o.Epochs); want != got || off != 0 {
			t.Errorf("async %v: %.0f bytes were planned, %.0f sent; deviation of %.0f", async, want, got, off)
		}
	}
}

// dryPlans are what workers plan to send in a dry run, which takes two batches of an epoch.
func dryPlans(t *testing.T, parts []*partition.Part, o train.Options, m train.BatchSettings, strategy string,
	options ...string) []*wire.Plan {
	o.Strategy, o.Batches = traintest.Strategy(t, strategy, options...), &m
	ends := traintest.BatchEnds(len(parts), true)
	defer traintest.Close(ends)
	plans, errs := make([]*wire.Plan, len(parts)), make([]error, len(parts))
	traintest.Each(len(parts), func(k int) {
		dev := cpu.NewDry(cpu.DryOptions{F64: true, Cores: 1, Most: 1 << 40})
		defer dev.Close()
		ctx := context.Background()
		needs, err := train.DryRun(ctx, dev, parts[k], ends[k], train.NewGroup(ctx, ends[k], dev, 1), o, event.All())
		if errs[k] = err; err == nil {
			plans[k] = needs.Plan
		}
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return plans
}

// sums are the bytes of all workers in a run of some epochs, as their plans have them and as they were counted: of
// parameters, which are known, and of everything.
func sums(r *traintest.Trained, plans []*wire.Plan, epochs int) (planned, counted [2]float64) {
	add := func(to *[2]float64, b wire.Bytes) {
		for c, bytes := range b {
			to[1] += float64(bytes)
			if c.Kind == wire.Parameter {
				to[0] += float64(bytes)
			}
		}
	}
	for k, p := range plans {
		add(&planned, p.Total(0, epochs, len(r.Results[k].Measured), epochs))
		add(&counted, r.Counted[k])
	}
	return planned, counted
}

// TestDryRunsPlanWhatIsCounted: of models that migrate and of batches that are skipped, the bytes of parameters are
// known to the byte before the run, and all bytes to 2%; dropout of p3's input sends what no dropout does, and ids.
func TestDryRunsPlanWhatIsCounted(t *testing.T) {
	neighbours := train.BatchSettings{Sampler: "neighbour", Size: 14, Fanouts: []int{4, 4}, Threads: 1}
	saint := func(sampler string, size int) train.BatchSettings {
		return train.BatchSettings{Sampler: sampler, Size: size, Threads: 1, Clusters: 30}
	}
	for _, c := range []struct {
		strategy string
		options  []string
		batches  train.BatchSettings
		training int // vertices; few: batches without one are many
	}{
		{"hopgnn", nil, neighbours, 75},
		{"hopgnn", []string{"merge=0"}, neighbours, 75},
		{"hopgnn", []string{"merge=1", "pre_gather=false"}, neighbours, 75},
		{"distdgl", nil, neighbours, 75},
		{"distdgl", nil, saint("saint-node", 20), 6},
		{"distdgl", nil, saint("saint-node", 6), 25},
		{"distdgl", nil, saint("cluster", 40), 12},
		{"p3", nil, neighbours, 75},
	} {
		t.Run(fmt.Sprint(c.strategy, c.options, c.batches.Sampler, c.batches.Size), func(t *testing.T) {
			t.Parallel()
			d := traintest.Communities(t, 300, false)
			d.Splits.Train = d.Splits.Train[:c.training]
			o := traintest.Options("sage")
			o.Epochs, o.Model.Layers, o.Model.Norm, o.Model.InputDropout = 6, 2, "none", true
			parts := traintest.Cut(t, d, "random", 3)
			r := traintest.Batches(t, parts, o, c.batches, true, c.strategy, c.options...)
			planned, counted := sums(r, dryPlans(t, parts, o, c.batches, c.strategy, c.options...), o.Epochs)
			if planned[0] != counted[0] || math.Abs(planned[1]/counted[1]-1) > 0.02 {
				t.Errorf("planned %.0f bytes of parameters and %.0f in all, counted %.0f and %.0f", planned[0],
					planned[1], counted[0], counted[1])
			}
		})
	}
}

// TestBatchesReportWaiting: every step of every strategy says how long it waited for its batch and for the gradients of
// others, and those that exchange during a step, for that.
func TestBatchesReportWaiting(t *testing.T) {
	within := map[string]string{"p3": "partial sums", "naive-hop": "models", "hopgnn": "models"}
	for _, s := range strategies {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			d, o := traintest.Communities(t, 120, false), traintest.Options("sage")
			o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 2, 2, "none", 0
			m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 1}
			options := map[string][]string{"hopgnn": {"merge=0"}}[s.Name]
			waits := map[string]int{}
			for _, span := range traintest.Batches(t, traintest.Cut(t, d, "random", 2), o, m, true, s.Name,
				options...).Spans {
				if span.Kind == "wait" {
					waits[span.Name]++
				}
			}
			steps := o.Epochs * 3
			if waits["batch"] < steps || waits["gradients"] != steps || waits["sums over all workers"] < o.Epochs ||
				waits[within[s.Name]] < steps && within[s.Name] != "" {
				t.Errorf("%d steps reported waits %v", steps, waits)
			}
		})
	}
}
