package dgs

import (
	"context"
	"slices"
	"sync"
	"testing"

	"starling/event"
	"starling/partition"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// resumable is a run that others are compared with: its last two epochs are trained again by runs that go on.
type resumable struct {
	parts []*partition.Part
	o     train.Options
	stop  int // the epochs that others train first
	loss  []float64
	steps int // of those epochs
}

func newResumable(t *testing.T, size int, strategy string, options ...string) *resumable {
	r := &resumable{parts: traintest.Cut(t, traintest.Communities(t, 120, false), "random", 3), stop: 3,
		o: traintest.Options("sage")}
	r.o.Epochs, r.o.Model.Layers, r.o.Model.Norm, r.o.SaveEvery = 5, 2, "none", 1
	r.o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: size, Fanouts: []int{3, 3}, Threads: 2}
	r.o.Strategy = traintest.Strategy(t, strategy, dgsOptions(append(options, "dgs_features=0.6")...)...)
	r.loss = guidedWorkers(t, r.parts, r.o, nil, func(rank int, s *train.State) {
		if rank == 0 && s.Epoch == r.stop {
			r.steps = s.Steps
		}
	}).Loss
	return r
}

// goesOn trains from the states of all workers, and compares.
func (r *resumable) goesOn(t *testing.T, what string, states []train.State) {
	t.Helper()
	got := guidedWorkers(t, r.parts, r.o, states, nil)
	if !slices.Equal(got.Loss, r.loss) {
		t.Errorf("%s after %d steps: losses %v, uninterrupted %v", what, r.steps, got.Loss, r.loss)
	}
}

// TestGuidedRunsOfMoreEpochsGoOn: a run with DGS that has finished, and then goes on for more epochs, has the losses of
// one run of all epochs, though no batch of the first needed its last masks. Steps are a multiple of T, and not.
func TestGuidedRunsOfMoreEpochsGoOn(t *testing.T) {
	for _, size := range []int{10, 20, 30} {
		r := newResumable(t, size, "distdgl")
		states, short := make([]train.State, len(r.parts)), r.o
		short.Epochs = r.stop
		guidedWorkers(t, r.parts, short, nil, func(rank int, s *train.State) { states[rank] = *s })
		r.goesOn(t, "finished", states)
	}
}

// TestInterruptedGuidedRunsGoOn: a run that was interrupted while a worker's explainer was at work, and whose other
// workers have ended when it is done, goes on to the losses of an uninterrupted run.
func TestInterruptedGuidedRunsGoOn(t *testing.T) {
	defer func() { explainerFault = nil }()
	for _, strategy := range []string{"distdgl", "bytegnn"} {
		explainerFault = nil
		r := newResumable(t, 10, strategy)
		var others sync.WaitGroup
		others.Add(len(r.parts) - 1)
		explainerFault = func(rank, number, _ int) {
			if rank == 1 && number == r.steps/3 {
				others.Wait()
			}
		}
		states := r.interrupt(t, func(rank int) {
			if rank != 1 {
				others.Done()
			}
		})
		explainerFault = nil
		r.goesOn(t, strategy+", interrupted", states)
	}
}

// interrupt has all workers stop after some epochs, and returns the states that they saved last.
func (r *resumable) interrupt(t *testing.T, ended func(rank int)) []train.State {
	t.Helper()
	states, errs := make([]train.State, len(r.parts)), make([]error, len(r.parts))
	opt := wire.DefaultOptions()
	for k := range r.parts { // each on a host of its own, so that masks travel
		opt.ServerOf = append(opt.ServerOf, k)
	}
	ends := wire.NewGroup(len(r.parts), opt)
	defer traintest.Close(ends)
	traintest.Each(len(r.parts), func(k int) {
		defer ended(k)
		dev := traintest.Ref()
		defer dev.Close()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		o := r.o
		o.SaveEvery = 0 // the last state alone
		o.HostDevice, o.Save = traintest.Ref, func(s *train.State) error { states[k] = *s; return nil }
		peers := train.NewGroup(context.Background(), ends[k], dev, r.parts[k].Book.Servers)
		_, errs[k] = train.Worker(ctx, dev, r.parts[k], ends[k], peers, o, event.Func(func(e event.Event) {
			if done, ok := e.(event.Epoch); ok && done.Epoch+1 == r.stop {
				stop()
			}
		}))
	})
	for k, err := range errs {
		if err != nil || states[k].Epoch != r.stop {
			t.Fatalf("worker %d stopped after epoch %d: %v", k, states[k].Epoch, err)
		}
	}
	return states
}
