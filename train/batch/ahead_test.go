package batch

import (
	"slices"
	"testing"

	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// feederDevice is a device that is told of batches ahead, and counts them.
type feederDevice struct {
	tensor.Device
	ahead, joined, freed, packed int
	parcels                      chan struct{}
}

type fedNow struct{ f *feederDevice }

func (f *feederDevice) Ahead(do func()) tensor.Fed {
	do()
	f.ahead++
	return fedNow{f}
}

func (f fedNow) Join() { f.f.joined++ }
func (f fedNow) Free() { f.f.freed++ }

func (f *feederDevice) NewParcel() tensor.Parcel { return counted{f} }

type counted struct{ f *feederDevice }

func (p counted) Pack(slices ...any) { p.f.parcels <- struct{}{} }

// TestAhead: with every batch laid before the step of the one before, losses are the same to the bit.
func TestAhead(t *testing.T) {
	t.Parallel()
	for _, sparse := range []bool{false, true} {
		d := traintest.Communities(t, 300, sparse)
		for _, model := range []string{"sage", "gcn", "gat"} {
			o := traintest.Options(model)
			o.Epochs = 2
			mo := train.BatchSettings{Sampler: "neighbour", Size: 32, Fanouts: []int{4, 3}, Threads: 2}
			o.Model.Layers = 2
			want := mustMini(t, traintest.CPU(t, 1), d, o, mo)
			dev := &feederDevice{Device: traintest.CPU(t, 1), parcels: make(chan struct{}, 1000)}
			got := mustMini(t, dev, d, o, mo)
			if !slices.Equal(got.Loss, want.Loss) {
				t.Errorf("%s: losses %v, want %v", model, got.Loss, want.Loss)
			}
			if dev.ahead == 0 || dev.joined != dev.ahead || dev.freed != dev.ahead || len(dev.parcels) < dev.ahead {
				t.Errorf("%s: %d batches were laid, %d joined, %d freed, %d packed", model, dev.ahead, dev.joined,
					dev.freed, len(dev.parcels))
			}
		}
	}
}
