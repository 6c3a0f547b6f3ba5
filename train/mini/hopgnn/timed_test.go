package hopgnn

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	"starling/partition"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
	"starling/wire/wiretest"
)

// TestTrialsFollowThePaper: figure 17, where four steps become three, then two, and then three again, and others.
func TestTrialsFollowThePaper(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds []float64
		merged  []int // after each epoch
	}{
		{"figure 17", []float64{10, 8, 9, 7}, []int{1, 2, 1, 1}},
		{"none pays", []float64{10, 10, 3}, []int{1, 0, 0}},
		{"all pay", []float64{10, 8, 7, 6, 9}, []int{1, 2, 3, 3, 3}},
		{"one is not measured", []float64{10, 0, 8, 9}, []int{1, 1, 2, 1}},
	} {
		tr := newTrial(3, 5, 0, 0, false)
		for i, seconds := range c.seconds {
			if !tr.settled() {
				tr.judge(5+i, seconds)
			}
			if got, _ := tr.known(6 + i); got != c.merged[i] {
				t.Errorf("%s: %d steps merged in epoch %d, want %d", c.name, got, 6+i, c.merged[i])
			}
		}
		if !tr.settled() {
			t.Errorf("%s: nothing is decided", c.name)
		}
	}
}

// slowModels are links over which models take a second, and all else no time.
func slowModels(int, int) wiretest.SimulatedLink {
	return wiretest.SimulatedLink{Delay: func(id coflow.ID) time.Duration {
		if id.Type == coflow.Params {
			return time.Second
		}
		return time.Millisecond
	}}
}

// overLinks trains in virtual time over links.
func overLinks(t *testing.T, parts []*partition.Part, o train.Options,
	link func(from, to int) wiretest.SimulatedLink) (r *traintest.Trained) {
	synctest.Test(t, func(t *testing.T) {
		opt := wire.DefaultOptions()
		opt.Timeout = 1000 * time.Hour
		for k := range parts {
			opt.ServerOf = append(opt.ServerOf, k)
		}
		ends := wiretest.Simulate(t, len(parts), opt, link)
		r = traintest.Observe(t, ends, parts, traintest.Ref, o)
	})
	return r
}

// TestMergingByTime: where models take long, epochs with fewer steps take less time, and merging is accepted; where
// features are dear and models are not, it is rejected, and the run goes on with all steps. Warm epochs are
// compared, so that an epoch after a trial that is accepted does take less time. Either way the losses are one
// worker's.
func TestMergingByTime(t *testing.T) {
	for _, c := range []struct {
		name   string
		link   func(from, to int) wiretest.SimulatedLink
		hidden int
		want   string
	}{
		{"latency", slowModels, 4, "merges 2 of 3"},
		{"rate, large model", wiretest.Uniform(0, 1e4), 64, "merges 2 of 3"},
		{"rate, small model", wiretest.Uniform(0, 1e4), 1, "merges 0 of 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts, o, m := mergingRun(t, c.hidden)
			d := traintest.Communities(t, 160, false)
			o.EvalEvery = 0
			o.Strategy, o.Batches = traintest.Strategy(t, "hopgnn", "merge=time"), &m
			r := overLinks(t, parts, o, c.link)
			traintest.SameRun(t, r.Results[0], mustMini(t, traintest.Ref(), d, o, m))
			if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, c.want) }) {
				t.Errorf("epochs took %v s; want %q in %q", r.Results[0].EpochSeconds, c.want, r.Notes)
			}
			if s := r.Results[0].EpochSeconds; strings.HasPrefix(c.want, "merges 2") && s[3] >= s[1] {
				t.Errorf("epochs took %v s", s)
			}
		})
	}
}

// TestTrialsResume: a run that is killed while it finds out, between epochs or within one, goes on with the number
// of steps that it was at, and ends as the whole run did: the number that is kept, and what the last epoch sends.
func TestTrialsResume(t *testing.T) {
	parts, o, m := mergingRun(t, 4)
	o.EvalEvery = 0
	o.Strategy, o.Batches = traintest.Strategy(t, "hopgnn", "merge=time"), &m
	for _, steps := range []int{m.Size, 3} { // more than an epoch has: between epochs
		saved := make([]*train.State, len(parts))
		run := func(change func(rank int, o *train.Options)) (results []*train.Result) {
			synctest.Test(t, func(t *testing.T) {
				opt := wire.DefaultOptions()
				opt.Timeout, opt.ServerOf = 1000*time.Hour, []int{0, 1, 2}
				ends := wiretest.Simulate(t, len(parts), opt, slowModels)
				defer traintest.Close(ends)
				results = make([]*train.Result, len(parts))
				errs := make([]error, len(parts))
				traintest.Each(len(parts), func(k int) {
					own := o
					change(k, &own)
					results[k], errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, own, nil)
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
			})
			return results
		}
		whole := run(func(k int, o *train.Options) {
			o.SaveEvery, o.SaveSteps, o.MidwayOnly = 1, steps, true
			o.Save = func(s *train.State) error {
				if s.Epoch == 1 && (s.Batch > 0) == (steps < m.Size) {
					kept := *s
					saved[k] = &kept
				}
				return nil
			}
		})
		if saved[0] == nil {
			t.Fatalf("nothing was saved in epoch 1 every %d steps", steps)
		}
		rest := run(func(k int, o *train.Options) { o.Resume = saved[k] })
		for i, loss := range rest[0].Loss {
			if math.Abs(loss-whole[0].Loss[i]) > 1e-12 { // steps are in other epochs: a cold one is measured again
				t.Errorf("every %d steps: losses %v, undisturbed %v", steps, rest[0].Loss, whole[0].Loss)
				break
			}
		}
		if models(rest[0]) != models(whole[0]) {
			t.Errorf("every %d steps: %d bytes of models, undisturbed %d", steps, models(rest[0]), models(whole[0]))
		}
	}
}
