package distdgl

import (
	"slices"
	"sync"
	"testing"

	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// feederDevice is a device that is told of batches ahead, and counts them.
type feederDevice struct {
	tensor.Device
	counts *feederCounts
}

type feederCounts struct {
	sync.Mutex
	ahead, joined, freed, packed int
}

func (c *feederCounts) add(n *int) {
	c.Lock()
	defer c.Unlock()
	*n++
}

func (f feederDevice) Ahead(do func()) tensor.Fed {
	do()
	f.counts.add(&f.counts.ahead)
	return fedBatch{f.counts}
}

func (f feederDevice) NewParcel() tensor.Parcel { return fedBatch{f.counts} }

type fedBatch struct{ *feederCounts }

func (f fedBatch) Join()       { f.add(&f.joined) }
func (f fedBatch) Free()       { f.add(&f.freed) }
func (f fedBatch) Pack(...any) { f.add(&f.packed) }

// TestBatchesComeAhead: workers whose device can have the next batch brought while this one is computed, and losses are
// the same to the bit, with features at their owners and whatever brings them.
func TestBatchesComeAhead(t *testing.T) {
	for _, strategy := range []string{"distdgl", "salient", "lookahead"} {
		for _, model := range []string{"sage", "gcn", "gat"} {
			t.Run(strategy+" "+model, func(t *testing.T) {
				t.Parallel()
				parts := traintest.Cut(t, traintest.Communities(t, 300, model == "gat"), "random", 2)
				o := traintest.Options(model)
				o.Epochs, o.Model.Layers = 2, 2
				o.Strategy = traintest.Strategy(t, strategy)
				o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 32, Fanouts: []int{4, 3}, Threads: 2}
				run := func(device func() tensor.Device) []float64 {
					return traintest.TrainOver(t, traintest.BatchEnds(2, true), parts, device, o)[0].Loss
				}
				plain := func() tensor.Device { return traintest.CPU(t, 1) }
				counts := &feederCounts{}
				want := run(plain)
				if got := run(func() tensor.Device { return feederDevice{plain(), counts} }); !slices.Equal(got, want) {
					t.Errorf("losses %v, want %v", got, want)
				}
				if n := counts.ahead; n == 0 || counts.joined != n || counts.freed != n || counts.packed < n {
					t.Errorf("%d batches were laid, %d joined, %d freed, %d packed", n, counts.joined, counts.freed,
						counts.packed)
				}
			})
		}
	}
}
