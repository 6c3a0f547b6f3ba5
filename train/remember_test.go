package train

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// resumedAt trains, saves after some epochs, and trains on from there on new workers.
func resumedAt(t *testing.T, parts []*partition.Part, o Options, epoch int) []float64 {
	t.Helper()
	states := make([]*State, len(parts))
	run := func(o func(rank int) Options) (loss []float64) {
		ends := wire.NewGroup(len(parts), wire.DefaultOptions())
		var wg sync.WaitGroup
		for k := range parts {
			wg.Go(func() {
				dev := tensor.NewCPU(1)
				defer dev.Close()
				r, err := Worker(context.Background(), dev, parts[k], ends[k], NewGroup(context.Background(), ends[k], dev, parts[k].Book.Servers), o(k), nil)
				if err != nil {
					t.Errorf("rank %d: %v", k, err)
					return
				}
				if k == 0 {
					loss = r.Loss
				}
			})
		}
		wg.Wait()
		for _, e := range ends {
			e.Close()
		}
		return loss
	}
	run(func(rank int) Options {
		o := o
		o.Epochs, o.SaveEvery = epoch, epoch
		o.Save = func(s *State) error {
			for i := range s.Caches { // they lie on the device, which goes
				t := &s.Caches[i]
				t.Data, t.Read = t.Numbers(), nil
			}
			states[rank] = s
			return nil
		}
		return o
	})
	return run(func(rank int) Options {
		o := o
		o.Resume = states[rank]
		return o
	})
}

// TestResumeRemembers: a run that goes on from a checkpoint has every loss of one
// that never stopped, to the bit, also where old rows, late rows or rests of
// rounding are used.
func TestResumeRemembers(t *testing.T) {
	parts := cutForServers(t, communities(t, 90, false), "hash", 4, 2)
	for _, model := range []string{"sage", "gat"} {
		for _, strategy := range []string{"halo", "bns:0.5", "bns:0.3:cached", "pipegcn", "sancus:epoch:2", "sancus:adaptive:1", "sancus:variation:0.9", "skipg:2", "g3", "granndis:1", "neutronstar"} {
			for _, rows := range []string{"", "int8"} {
				for _, smooth := range []float64{0, 0.6} {
					if smooth > 0 && strategy != "pipegcn" {
						continue
					}
					o := options(model)
					o.Epochs, o.EvalEvery, o.Model.Layers = 7, 2, 3
					c := DefaultChoice("")
					c.WireRows, c.Smooth = rows, smooth
					var err error
					if o.Strategy, err = c.Parse(strategy); err != nil {
						t.Fatal(err)
					}
					want := trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(1) }, o)[0].Loss
					for _, at := range []int{1, 4} {
						got := resumedAt(t, parts, o, at)
						if fmt.Sprint(got) != fmt.Sprint(want) {
							t.Errorf("%s %s %s smooth %g, saved after %d: %v, never stopped %v", model, strategy, rows, smooth, at, got, want)
						}
					}
				}
			}
		}
	}
}

// TestRecallOnce: what was saved is of the first matrix of its name, and then forgotten.
func TestRecallOnce(t *testing.T) {
	dev := tensor.NewRef()
	saved := func(name string) nn.Tensor {
		return nn.Tensor{Name: name, Shape: []int{2, 3}, Data: []float64{1, 2, 3, 4, 5, 6}}
	}
	s := &site{dev: dev, opt: Options{Resume: &State{Caches: []nn.Tensor{saved("a"), saved("b")}}}}
	if s.recall("b", dev.New(tensor.F64, 3, 2)) || s.recall("b", dev.New(tensor.F64, 2, 3)) {
		t.Error("a matrix that came too late was recalled")
	}
	m, got := dev.New(tensor.F64, 2, 3), make([]float64, 6)
	if !s.recall("a", m) {
		t.Error("nothing was recalled")
	}
	if dev.Download(got, m); fmt.Sprint(got) != "[1 2 3 4 5 6]" || len(s.opt.Resume.Caches) != 0 {
		t.Errorf("%v, and %v is left", got, s.opt.Resume.Caches)
	}
}

// A run that goes on chooses from the figures it began with, not from those of another
// moment.
func TestFiguresAreKept(t *testing.T) {
	begun := &site{}
	want, err := begun.figures("rates", 2, func() ([]float64, error) { return []float64{1, 2.5}, nil })
	if err != nil {
		t.Fatal(err)
	}
	again := &site{opt: Options{Resume: &State{Caches: begun.known}}}
	fresh := func() ([]float64, error) { return []float64{3}, nil }
	got, err := again.figures("rates", 2, fresh)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || len(again.known) != 1 {
		t.Errorf("%v, %v, kept %v", got, err, again.known)
	}
	if got, _ := again.figures("rates", 1, fresh); got[0] != 3 {
		t.Errorf("figures of another model: %v", got)
	}
}
