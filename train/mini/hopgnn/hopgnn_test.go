package hopgnn

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
	"starling/wire"
)

func mustMini(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, m train.BatchSettings) *train.Result {
	t.Helper()
	return traintest.Ran(t)(batch.Run(context.Background(), dev, d, o, m, nil))
}

// TestItinerary: whatever is merged, every seed vertex is computed once, by its own model;
// without merging on the server that owns it; and at each step every worker has one model.
func TestItinerary(t *testing.T) {
	key := rng.New(testseed.New(t))
	for round := range 200 {
		k := key.Fold(uint64(round))
		r := ring{1 + k.IntN(0, 6), 1 + k.IntN(1, 3)}
		workers := r.servers * r.each
		owner := func(v uint32) int { return int(v) % workers }
		batches := make([][]uint32, workers)
		for v := range uint32(k.IntN(2, 60)) {
			d := k.IntN(uint64(100+v), workers)
			batches[d] = append(batches[d], v)
		}
		merged, random := k.IntN(3, r.servers+1), k.IntN(4, 2) == 0
		it := newItinerary(r, batches, owner, merged, random, k)
		if want := max(1, r.servers-merged); len(it.at) != want {
			t.Fatalf("%+v: %d steps, want %d", r, len(it.at), want)
		}
		for d := range batches {
			var got []uint32
			for j := range it.at {
				got = append(got, it.seeds[j][d]...)
				for _, v := range it.seeds[j][d] {
					if merged == 0 && it.worker(j, d)/r.each != owner(v)/r.each {
						t.Fatalf("%+v: vertex %d of part %d is computed on %d", r, v, owner(v), it.worker(j, d))
					}
				}
			}
			if slices.Sort(got); !slices.Equal(got, batches[d]) {
				t.Fatalf("model %d computes %v of %v", d, got, batches[d])
			}
		}
		for j := range it.at {
			for w := range workers {
				if d := it.model(j, w); it.worker(j, d) != w || d%r.each != w%r.each {
					t.Fatalf("%+v, step %d: model %d is on %d, not %d", r, j, d, it.worker(j, d), w)
				}
			}
		}
	}
}

// TestHopsAreOfServers: models go around servers, not workers: four workers on two servers take two time steps, and
// models cross between servers only; the curve is one worker's.
func TestHopsAreOfServers(t *testing.T) {
	d := traintest.Communities(t, 160, false)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	m := train.BatchSettings{Sampler: "neighbour", Size: 30, Fanouts: []int{3, 4}, Threads: 2}
	one := mustMini(t, traintest.Ref(), d, o, m)
	parts := traintest.CutForServers(t, d, "multilevel", 4, 2)
	o.Strategy, o.Batches = traintest.Strategy(t, "hopgnn", "merge=0"), &m
	r := traintest.TrainServers(t, parts, traintest.Ref, o)
	traintest.SameRun(t, r.Results[0], one)
	steps := int64((len(d.Splits.Train) + m.Size - 1) / m.Size)
	var params int64
	for _, p := range r.Results[0].Final {
		params += int64(len(p.Data))
	}
	want := steps * 2 * params * 8 // weights and gradients, once per batch
	for k, res := range r.Results {
		var models int64
		for c, bytes := range res.Plan.In(1) {
			if c.Kind == wire.Parameter && c.Link == wire.BetweenServers && c.Layer == -1 {
				models += bytes
			}
		}
		if models < want || models > want+want {
			t.Errorf("worker %d plans %d bytes of models between servers, want %d and an all-reduce", k, models, want)
		}
	}
}

// TestMergedStepsAreTheFewest: the step with the fewest seed vertices of all models goes, and
// its seed vertices are spread over the steps of the same model (figure 10).
func TestMergedStepsAreTheFewest(t *testing.T) {
	it := &itinerary{at: []int{0, 1, 2}, seeds: [][][]uint32{
		{{1, 2, 3}, {4, 5, 6, 7}, {8, 9}},
		{{10}, {11, 12}, {13}},
		{{14, 15}, {16, 17}, {18, 19, 20}},
	}}
	it.merge(it.fewest())
	want := [][][]uint32{{{1, 2, 3}, {4, 5, 6, 7}, {8, 9, 13}}, {{14, 15, 10}, {16, 17, 11, 12}, {18, 19, 20}}}
	if !slices.Equal(it.at, []int{0, 2}) || fmt.Sprint(it.seeds) != fmt.Sprint(want) {
		t.Errorf("steps %v with %v, want %v", it.at, it.seeds, want)
	}
}

// TestRandomMergingIsDrawn: whichever step has the fewest seed vertices, over many batches every step is merged
// about as often as any other, by seed, epoch and number of the batch alone.
func TestRandomMergingIsDrawn(t *testing.T) {
	const servers, batches = 4, 2000
	seeds := [][]uint32{{0, 4, 8, 12, 1, 5, 9, 2, 6, 3}, {}, {}, {}} // of model 0; vertex v is on server v mod 4
	owner := func(v uint32) int { return int(v) % servers }
	key := rng.New(testseed.New(t)).Fold(useMerge)
	merged := [servers]int{}
	for number := range batches {
		k := key.Fold(uint64(number))
		it := newItinerary(ring{servers, 1}, seeds, owner, 1, true, k)
		if again := newItinerary(ring{servers, 1}, seeds, owner, 1, true, k); !slices.Equal(it.at, again.at) {
			t.Fatalf("steps %v, and then %v", it.at, again.at)
		}
		for step := range servers {
			if !slices.Contains(it.at, step) {
				merged[step]++
			}
		}
	}
	for step, n := range merged { // a deviation is 19
		if n < batches/servers-120 || n > batches/servers+120 {
			t.Errorf("step %d is merged in %d of %d batches: %v", step, n, batches, merged)
		}
	}
	if fewest := newItinerary(ring{servers, 1}, seeds, owner, 1, false, key); slices.Contains(fewest.at, 3) {
		t.Errorf("of steps of 4, 3, 2 and 1 seed vertices %v are left", fewest.at)
	}
}

// TestHopIsOneWorker: models that migrate follow one worker's loss curve, with each technique
// on and off; and migrating changes nothing: seed vertices that are computed where they are
// owned, without migration, give the same curve.
func TestHopIsOneWorker(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gat", "gin"} {
		d := traintest.Communities(t, 120, i == 1)
		o := traintest.Options(model)
		o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
		m := train.BatchSettings{Sampler: "neighbour", Size: 30, Fanouts: []int{3, 4}, Threads: 2}
		one := mustMini(t, traintest.Ref(), d, o, m)
		parts := traintest.Cut(t, d, "fennel", 2+i)
		for _, options := range [][]string{nil, {"merge=0"}, {"merge=1", "pre_gather=false"},
			{"merge=2", "merge_order=random"}, {"merge=9"}} {
			t.Run(fmt.Sprint(model, options), func(t *testing.T) {
				traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "hopgnn", options...).Results[0], one)
			})
		}
		traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "distdgl", "roots=owner").Results[0], one)
	}
}

// TestHopWithoutSampling: with all neighbours and one batch, models that migrate train on the full graph
// (figure 21 of the paper): the curve equals the curve of full-graph training on one worker, which is what
// neutronstar's is, and with smaller batches that of one worker with all neighbours.
func TestHopWithoutSampling(t *testing.T) {
	for _, model := range []string{"gcn", "sage", "gat"} {
		d := traintest.Communities(t, 120, false)
		o := traintest.Options(model)
		o.Epochs = 4
		parts := traintest.Cut(t, d, "multilevel", 3)
		all := train.BatchSettings{Sampler: "neighbour", Size: 1 << 30, Threads: 2,
			Fanouts: slices.Repeat([]int{sample.All}, o.Model.Layers)}
		hop := traintest.Batches(t, parts, o, all, true, "hopgnn", "merge=1").Results[0]
		traintest.SameCurve(t, model, hop.Loss, traintest.Full(t, traintest.Ref(), d, o).Loss, 1e-9)
		all.Size = 25
		traintest.SameRun(t, traintest.Batches(t, parts, o, all, true, "hopgnn").Results[0],
			mustMini(t, traintest.Ref(), d, o, all))
	}
}

// TestHopMovesFewerRows: fewer rows of features travel than with model-centric training, and
// fewer with pre-gathering than without; models travel instead.
func TestHopMovesFewerRows(t *testing.T) {
	d := traintest.Communities(t, 300, false)
	parts := traintest.Cut(t, d, "multilevel", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 2, 2, "none", 0
	m := train.BatchSettings{Sampler: "neighbour", Size: 60, Fanouts: []int{4, 4}, Threads: 2}
	rows := func(strategy string, options ...string) int64 {
		r := traintest.Batches(t, parts, o, m, true, strategy, options...)
		return r.Sum(func(c wire.Class) bool { return c.Kind == wire.Feature })
	}
	central, micro, gathered := rows("distdgl", "roots=random"), rows("hopgnn", "merge=0",
		"pre_gather=false"), rows("hopgnn", "merge=0")
	if !(central > micro && micro > gathered) {
		t.Errorf("bytes of rows: model-centric %d, micrographs %d, pre-gathered %d", central, micro, gathered)
	}
	t.Logf("bytes of rows: model-centric %d, micrographs %d, pre-gathered %d", central, micro, gathered)
}
