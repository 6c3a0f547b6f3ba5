package p3

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
	"starling/wire/wiretest"
)

// pipelined are small batches, of which an epoch has several.
func pipelined(model string) (train.Options, train.BatchSettings) {
	o := traintest.Options(model)
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	return o, train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 4}, Threads: 2}
}

// TestPipelinesAreAlike: how old the weights of the first layer are depends on the batch alone, so that any number of
// workers has the losses of one with the same pipeline; they are not those without; and they send the same bytes.
func TestPipelinesAreAlike(t *testing.T) {
	d := traintest.Communities(t, 160, false)
	for i, model := range []string{"sage", "gat", "film"} {
		o, m := pipelined(model)
		exact := mustMini(t, traintest.Ref(), d, o, m)
		var counted []wire.Bytes
		for _, delay := range []int{0, 1, 2, 8} {
			option := fmt.Sprint("pipeline=", delay)
			one := traintest.Batches(t, traintest.Cut(t, d, "random", 1), o, m, true, "p3", option).Results[0]
			got := traintest.Batches(t, traintest.Cut(t, d, "random", 2+i), o, m, true, "p3", option)
			traintest.SameRun(t, got.Results[0], one)
			if same := slices.Equal(one.Loss, exact.Loss); same != (delay == 0) && delay > 0 {
				t.Errorf("%s: losses %v with a pipeline of %d, without %v", model, one.Loss, delay, exact.Loss)
			}
			if counted == nil {
				counted = got.Counted
			}
			for k := range counted {
				if !maps.Equal(counted[k], got.Counted[k]) {
					t.Errorf("%s, worker %d: sent %v with a pipeline of %d, without %v", model, k, got.Counted[k],
						delay, counted[k])
				}
			}
		}
	}
}

// TestPipelineEndsWithTheEpoch: where an epoch has one batch, nothing begins ahead.
func TestPipelineEndsWithTheEpoch(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	o, m := pipelined("gcn")
	m.Size = 1000
	traintest.SameRun(t, traintest.Batches(t, traintest.Cut(t, d, "random", 3), o, m, true, "p3",
		"pipeline=2").Results[0], mustMini(t, traintest.Ref(), d, o, m))
}

// TestStaleness: the first layer of a batch has the weights of as many steps before as the pipeline is long, from the
// first step of the epoch on; steps of batches without seed vertices, as 3 and 4 here, there are none.
func TestStaleness(t *testing.T) {
	s := &split{delay: 2}
	want := map[int]int{0: 0, 1: 0, 2: 0, 5: 5, 6: 5, 7: 5, 8: 6}
	for _, number := range []int{0, 1, 2, 5, 6, 7, 8} {
		s.versions = append(s.needed(1, number), version{1, number, nil})
		if got := s.versions[s.from(number)].number; got != want[number] {
			t.Errorf("batch %d begins with the weights of step %d, want %d", number, got, want[number])
		}
		if len(s.versions) > s.delay+1 {
			t.Errorf("%d versions are kept at batch %d", len(s.versions), number)
		}
	}
	if left := s.needed(2, 0); len(left) > 0 {
		t.Errorf("%v are left in the next epoch", left)
	}
}

// TestPipelineHidesPartialSums: where partial sums take a second and nothing else takes any time, all batches that are
// under way share that second.
func TestPipelineHidesPartialSums(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 160, false), "random", 2)
	o, m := pipelined("sage")
	o.Epochs, o.EvalEvery, o.Batches, m.Size = 1, 0, &m, 4
	var steps float64
	for _, delay := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			o.Strategy = traintest.Strategy(t, "p3", fmt.Sprint("pipeline=", delay))
			opt := wire.DefaultOptions()
			opt.Timeout, opt.ServerOf = 1000*time.Hour, []int{0, 1}
			ends := wiretest.Simulate(t, 2, opt, func(int, int) wiretest.SimulatedLink {
				return wiretest.SimulatedLink{Delay: func(id coflow.ID) time.Duration {
					if id.Type == coflow.Rows && !id.Backward && id.Layer == 0 {
						return time.Second
					}
					return time.Microsecond
				}}
			})
			took := traintest.Observe(t, ends, parts, traintest.Ref, o).Results[0].EpochSeconds[0]
			if delay == 0 {
				steps = took
			} else if most := steps/float64(delay+1) + 2; took > most {
				t.Errorf("with a pipeline of %d an epoch took %g s, want at most %g; without %g", delay, took, most,
					steps)
			}
		})
	}
	if steps < 4 {
		t.Errorf("an epoch took %g s: there is nothing to hide", steps)
	}
}

// TestPipelineResumes: a run that goes on from any state that was saved inside an epoch has the bits of the whole run,
// as its first batches begin with the weights that they had; and without these it is refused.
func TestPipelineResumes(t *testing.T) {
	d := traintest.Communities(t, 160, false)
	parts := traintest.Cut(t, d, "random", 3)
	for _, model := range []string{"sage", "gatv2"} {
		o, m := pipelined(model)
		o.Strategy, o.Batches = traintest.Strategy(t, "p3", "pipeline=2"), &m
		saved := make([][]*train.State, len(parts))
		run := func(change func(rank int, o *train.Options)) ([]*train.Result, error) {
			ends := traintest.BatchEnds(len(parts), true)
			defer traintest.Close(ends)
			results, errs := make([]*train.Result, len(parts)), make([]error, len(parts))
			traintest.Each(len(parts), func(k int) {
				own := o
				own.SaveSteps, own.MidwayOnly, own.Save = 3, true, func(*train.State) error { return nil }
				change(k, &own)
				results[k], errs[k] = traintest.Work(parts[k], ends[k], traintest.Single, own, nil)
			})
			return results, errors.Join(errs...)
		}
		whole, err := run(func(k int, o *train.Options) {
			o.Save = func(s *train.State) error {
				kept := *s
				kept.Caches = slices.Clone(s.Caches)
				for i := range kept.Caches {
					kept.Caches[i].Data, kept.Caches[i].Read = kept.Caches[i].Numbers(), nil
				}
				saved[k] = append(saved[k], &kept)
				return nil
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range saved[0] {
			rest, err := run(func(k int, o *train.Options) { o.Resume = saved[k][i] })
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(rest[0].Loss, whole[0].Loss) || fmt.Sprint(rest[0].Final) != fmt.Sprint(whole[0].Final) {
				t.Errorf("%s, from batch %d of epoch %d: losses %v, undisturbed %v", model, s.Batch, s.Epoch,
					rest[0].Loss, whole[0].Loss)
			}
		}
		_, err = run(func(k int, o *train.Options) {
			from := *saved[k][0]
			from.Caches, o.Resume = nil, &from
		})
		if err == nil || !strings.Contains(err.Error(), "--pipeline 2 begins with") {
			t.Error(err)
		}
	}
}
