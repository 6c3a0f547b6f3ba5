package mini

import (
	"math"
	"testing"

	"starling/sample"
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
