package mini

import (
	"slices"
	"testing"

	"starling/sample"
	"starling/train"
	"starling/train/traintest"
)

// TestOnDiskOnWorkers: workers whose rows are read from disk ahead of their batches have the losses of those who map
// them, to the bit, with every sampler.
func TestOnDiskOnWorkers(t *testing.T) {
	d := traintest.Communities(t, 300, false)
	parts := traintest.Cut(t, d, "hash", 3)
	for _, strategy := range []string{"distdgl", "salient"} {
		for _, sampler := range sample.Names {
			o := traintest.Options("sage")
			o.Epochs, o.EvalEvery = 3, 0
			o.Strategy = traintest.Strategy(t, strategy)
			m := samplerOptions(sampler, o.Model.Layers)
			o.Batches = &m
			mapped := traintest.TrainParts(t, parts, traintest.Ref, o)
			o.Disk = &train.DiskOptions{Memory: 16 << 20, Packed: 1 << 20, Scratch: t.TempDir()}
			disk := traintest.TrainParts(t, parts, traintest.Ref, o)
			if !slices.Equal(mapped[0].Loss, disk[0].Loss) || mapped[0].TestMetric != disk[0].TestMetric {
				t.Errorf("%s, %s: losses %v, mapped %v", strategy, sampler, disk[0].Loss, mapped[0].Loss)
			}
			if mapped[0].Rows.Needed != disk[0].Rows.Needed {
				t.Errorf("%s, %s: %d rows needed, mapped %d", strategy, sampler, disk[0].Rows.Needed,
					mapped[0].Rows.Needed)
			}
		}
	}
}
