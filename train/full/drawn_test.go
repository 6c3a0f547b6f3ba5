package full_test

import (
	"testing"

	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// TestInputDropoutSendsNothingMore: where workers keep a copy of their halo's features, dropout on features is drawn on
// it, so that a run follows one worker's loss and sends what a run without that dropout does.
func TestInputDropoutSendsNothingMore(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for _, c := range []struct {
		strategy, model string
		exact           bool
	}{
		{"halo", "sage", true}, {"halo", "gcn", true}, {"halo", "gin", true}, {"halo+relay", "sage", true},
		{"g3", "sage", true}, {"granndis", "sage", true}, {"neutronstar", "gcn", true}, {"cagnet", "sage", true},
		{"pipegcn", "sage", false}, {"sancus", "sage", false}, {"bns:0.5", "sage", false},
	} {
		for _, hidden := range []int{6, 24} { // narrower and wider than the features
			o := traintest.Options(c.model)
			o.Epochs, o.EvalEvery, o.Model.Hidden = 4, 2, hidden
			o.Strategy = traintest.Strategy(t, c.strategy)
			parts := traintest.CutForServers(t, d, "random", 4, 2)
			var sent [2]int64
			for i := range sent {
				o.Model.InputDropout = i == 1
				run := traintest.TrainServers(t, parts, traintest.Ref, o)
				for _, counted := range run.Counted {
					for class, bytes := range counted {
						if class.Kind == wire.Feature || class.Layer == 0 && class.Kind != wire.Control {
							sent[i] += bytes
						}
					}
				}
				if !c.exact || i == 0 {
					continue
				}
				alone := o
				alone.Strategy = train.Choice{}
				want := traintest.Full(t, traintest.Ref(), d, alone)
				for _, r := range run.Results {
					traintest.SameCurve(t, c.strategy+", "+c.model, r.Loss, want.Loss, 1e-12)
					traintest.SameCurve(t, c.strategy+", "+c.model+", validation", r.Val, want.Val, 1e-12)
				}
			}
			// These choose replicas by measured times.
			chooses := c.strategy == "granndis" || c.strategy == "neutronstar"
			if sent[0] != sent[1] && !chooses || sent[0] == 0 {
				t.Errorf("%s, %s of width %d: the first layer's rows take %d bytes without input dropout, %d with it",
					c.strategy, c.model, hidden, sent[0], sent[1])
			}
		}
	}
}

// TestInputDropoutOfOneWorker: a worker without a halo keeps nothing of it.
func TestInputDropoutOfOneWorker(t *testing.T) {
	d := traintest.Communities(t, 60, false)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.Model.InputDropout = 3, 1, true
	for _, device := range []func() tensor.Device{traintest.Ref, traintest.Single} {
		dev := device()
		alone := traintest.Full(t, dev, d, o)
		with := o
		with.Strategy = traintest.Strategy(t, "halo")
		for _, r := range traintest.TrainParts(t, traintest.Cut(t, d, "random", 1), device, with) {
			traintest.SameCurve(t, "one worker", r.Loss, alone.Loss, 1e-5)
		}
		dev.Close()
	}
}

// TestInputDropoutWithoutCopies: where the first sum is not kept, rows after dropout travel, to the same loss.
func TestInputDropoutWithoutCopies(t *testing.T) {
	d := traintest.Communities(t, 100, false)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.CacheFirst, o.Model.InputDropout = 4, 2, false, true
	want := traintest.Full(t, traintest.Ref(), d, o)
	o.Strategy = traintest.Strategy(t, "halo")
	for _, r := range traintest.TrainParts(t, traintest.Cut(t, d, "random", 3), traintest.Ref, o) {
		traintest.SameCurve(t, "halo", r.Loss, want.Loss, 1e-12)
	}
}

// TestTrafficOfInputDropout: what the first layer sends, by what is done about its sum.
func TestTrafficOfInputDropout(t *testing.T) {
	o := traintest.Options("sage")
	o.Model.InputDropout = true
	m := nn.New(traintest.Ref(), o.Model, 1)
	for first, once := range map[nn.FirstSum]int{nn.Computed: 0, nn.Kept: 0, nn.Redrawn: o.Model.In} {
		got := m.Traffic(false, first, true)[0]
		if got.Once != once || (got.Forward.Rows == 0) != (once > 0) {
			t.Errorf("first sum %d: %+v, want %d numbers once", first, got, once)
		}
	}
}
