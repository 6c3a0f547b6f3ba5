package hopgnn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"starling/partition"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// mergingRun is on a graph whose rows are dearer to send than a model of one hidden column, and cheaper than others.
func mergingRun(t *testing.T, hidden int) ([]*partition.Part, train.Options, train.BatchSettings) {
	d := traintest.Communities(t, 160, false)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.Model.Hidden = 5, 2, "none", hidden
	m := train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{3, 4}, Threads: 2}
	return traintest.Cut(t, d, "multilevel", 3), o, m
}

// TestAutoMergesAlikeInTwoRuns: what is merged follows from seed and partition, so that two runs have the same losses,
// weights and bytes, to the bit, and the number that is printed gives the same run.
func TestAutoMergesAlikeInTwoRuns(t *testing.T) {
	decisions := map[string]bool{}
	for _, hidden := range []int{1, 4, 64} {
		parts, o, m := mergingRun(t, hidden)
		run := func(options ...string) *traintest.Trained {
			return traintest.Batches(t, parts, o, m, true, "hopgnn", options...)
		}
		first, again := run(), run()
		decided := decision(t, first)
		decisions[decided] = true
		given := run("merge=" + decided)
		for k, r := range first.Results {
			if r.Plan.AtMost {
				t.Errorf("worker %d plans bytes at most", k)
			}
			if !maps.Equal(first.Counted[k], again.Counted[k]) {
				t.Errorf("worker %d sent %v, then %v", k, first.Counted[k], again.Counted[k])
			}
			for _, other := range []*train.Result{again.Results[k], given.Results[k]} {
				if !slices.Equal(r.Loss, other.Loss) || fmt.Sprint(r.Final) != fmt.Sprint(other.Final) {
					t.Errorf("hidden %d, worker %d: losses %v, then %v", hidden, k, r.Loss, other.Loss)
				}
			}
		}
	}
	if len(decisions) < 2 {
		t.Errorf("models of all sizes merge %v steps", slices.Collect(maps.Keys(decisions)))
	}
}

// decision is the number of merged steps that a run printed.
func decision(t *testing.T, r *traintest.Trained) string {
	for _, n := range r.Notes {
		if _, rest, ok := strings.Cut(n, "; --merge "); ok {
			return strings.Fields(rest)[0]
		}
	}
	t.Fatalf("no decision in %q", r.Notes)
	return ""
}

// TestResumedRunKeepsMerging: on other links, where another number of merged steps would send less, a run goes on as it
// began.
func TestResumedRunKeepsMerging(t *testing.T) {
	parts, o, m := mergingRun(t, 1)
	saved := make([]*train.State, len(parts))
	o.Strategy, o.Batches = traintest.Strategy(t, "hopgnn"), &m
	run := func(remote bool, change func(rank int, o *train.Options)) []*train.Result {
		ends := traintest.BatchEnds(len(parts), remote)
		defer traintest.Close(ends)
		out := make([]*train.Result, len(parts))
		errs := make([]error, len(parts))
		traintest.Each(len(parts), func(k int) {
			own := o
			change(k, &own)
			out[k], errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, own, nil)
		})
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	whole := run(true, func(k int, o *train.Options) {
		o.SaveEvery, o.MidwayOnly = 3, true
		o.Save = func(s *train.State) error {
			kept := *s
			saved[k] = &kept
			return nil
		}
	})
	rest := run(false, func(k int, o *train.Options) { o.Resume = saved[k] })
	anew := run(false, func(k int, o *train.Options) {
		from := *saved[k]
		from.Caches, o.Resume = nil, &from
	})
	if !slices.Equal(rest[0].Loss, whole[0].Loss) || models(rest[0]) != models(whole[0]) {
		t.Errorf("losses %v and %d bytes of models, undisturbed %v and %d", rest[0].Loss, models(rest[0]),
			whole[0].Loss, models(whole[0]))
	}
	if models(anew[0]) == models(whole[0]) {
		t.Error("the links decide nothing, so this test shows nothing")
	}
}

// models is the bytes of parameters in the last epoch.
func models(r *train.Result) (bytes int64) {
	for c, b := range r.Plan.In(4) {
		if c.Kind == wire.Parameter {
			bytes += b
		}
	}
	return bytes
}
