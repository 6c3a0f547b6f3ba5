package batch

import "starling/train"

func init() {
	train.RegisterBatches(func(b train.BatchSettings) any {
		o, _ := OptionsOf(b, nil)
		return o
	})
}

// OptionsOf are the options for the settings of a run, or the mistake in them.
func OptionsOf(b train.BatchSettings, err error) (Options, error) {
	return Options{Sampler: b.Sampler, Size: b.Size, Fanouts: b.Fanouts, Replace: b.Replace, Weighted: b.Weighted,
		Clusters: b.Clusters, WalkLength: b.WalkLength, Threads: b.Threads}, err
}
