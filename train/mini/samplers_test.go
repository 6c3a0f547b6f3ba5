package mini

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
)

func mustMini(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, m train.BatchSettings) *train.Result {
	t.Helper()
	return traintest.Ran(t)(batch.Run(context.Background(), dev, d, o, m, nil))
}

// samplerOptions are small batches of each kind.
func samplerOptions(name string, layers int) train.BatchSettings {
	m := train.BatchSettings{Sampler: name, Size: 40, Threads: 2}
	switch name {
	case "neighbour", "pinsage":
		m.Fanouts = slices.Repeat([]int{4}, layers)
	case "fastgcn", "ladies":
		m.Fanouts = slices.Repeat([]int{150}, layers)
	case "cluster":
		m.Size, m.Clusters = 100, 12
	default:
		m.Size = 150
	}
	return m
}

// TestDistributedSamplersAreOneWorkers: with every sampler whose batches are one worker's, the loss
// curve is one worker's, for several numbers of workers, models, graphs, caches, ways to divide a
// batch, and strategies.
func TestDistributedSamplersAreOneWorkers(t *testing.T) {
	samplers := []string{"fastgcn", "ladies", "saint-node", "saint-edge", "saint-walk", "pinsage"}
	for i, sampler := range samplers {
		for j, model := range []string{"gcn", "sage", "gat", "gin"} {
			workers, strategy := []int{2, 1, 3, 5}[(i+j)%4], []string{"distdgl", "salient", "p3"}[(i+j)%3]
			if model == "gat" && strategy == "p3" {
				strategy = "distdgl"
			}
			t.Run(fmt.Sprintf("%s %s %d %s", sampler, model, workers, strategy), func(t *testing.T) {
				d := traintest.Communities(t, 120, (i+j)%5 == 0)
				if j%2 == 1 {
					d = traintest.WithLoops(t, d, model != "gat" && i%2 == 0)
				}
				o := traintest.Options(model)
				o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
				m := train.BatchSettings{Sampler: sampler, Size: 30, Threads: 2}
				switch sampler {
				case "fastgcn", "ladies":
					m.Fanouts = []int{20, 30}
				case "pinsage":
					m.Fanouts, m.VertexWalks, m.WalkLength, m.Restart = []int{3, 4}, 8, 4, 0.4
				}
				one := mustMini(t, traintest.Ref(), d, o, m)
				options := []string{"roots=" + []string{"owner", "random"}[(i+j/2)%2]}
				if strategy != "p3" {
					options = append(options, traintest.CacheFor(d, i+j)...)
				}
				parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], workers)
				traintest.SameRun(t, traintest.Batches(t, parts, o, m, j%2 == 0, strategy, options...).Results[0], one)
			})
		}
	}
}

// TestDistributedClusters: the loss does not depend on who computes which seed vertices, nor on the
// strategy; and clusters of each worker's own part send no rows.
func TestDistributedClusters(t *testing.T) {
	d := traintest.Communities(t, 240, false)
	parts := traintest.Cut(t, d, "fennel", 3)
	o := traintest.Options("gcn")
	o.Epochs, o.Model.Layers, o.Model.Norm = 4, 2, "none"
	m := train.BatchSettings{Sampler: "cluster", Size: 60, Threads: 2, Clusters: 24}
	want := traintest.Batches(t, parts, o, m, true, "distdgl").Results[0]
	for _, strategy := range []string{"distdgl", "salient", "p3", "bytegnn"} {
		traintest.SameRun(t, traintest.Batches(t, parts, o, m, false, strategy, "roots=random").Results[0], want)
	}
	m.Sampler, o.Epochs = "cluster-local", 12
	r := traintest.Batches(t, parts, o, m, true, "distdgl")
	if l := r.Results[0].Loss; l[len(l)-1] > 0.8*l[0] {
		t.Errorf("clusters of parts: losses %v", l)
	}
	for _, w := range r.Results {
		if w.Rows.Needed == 0 || w.Rows.Remote > 0 {
			t.Errorf("clusters of parts: %+v", w.Rows)
		}
	}
}

// TestSamplersRefuse: what goes with the neighbour sampler only.
func TestSamplersRefuse(t *testing.T) {
	d := traintest.Communities(t, 60, false)
	parts := traintest.Cut(t, d, "random", 2)
	for _, c := range []struct{ strategy, option, sampler, want string }{
		{"hopgnn", "", "cluster-local", "use --sampler cluster"},
		{"bytegnn", "", "ladies", "use --sampler neighbour"},
		{"distdgl", "roots=local", "ladies", "use --roots owner"},
	} {
		o := traintest.Options("gcn")
		o.Model.Layers, o.Model.Norm = 2, "none"
		o.Strategy = traintest.Strategy(t, c.strategy, strings.Fields(c.option)...)
		o.Batches = &train.BatchSettings{Sampler: c.sampler, Size: 20, Fanouts: []int{4, 4}}
		ends := traintest.Ends(2)
		errs := make([]error, 2)
		traintest.Each(2, func(k int) { _, errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o, nil) })
		traintest.Close(ends)
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.strategy, err)
		}
	}
}
