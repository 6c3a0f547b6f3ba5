package spec

import (
	"cmp"
	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Options are the settings as the training loop takes them.
func (s *Spec) Options(data *graph.Meta) (train.Options, error) {
	schedule, err := nn.ParseSchedule(s.Optimizer.Schedule)
	if err != nil {
		return train.Options{}, Mistake("--schedule", Sentence(err), "", "")
	}
	t, m := &s.Training, &s.Machine
	opt := train.Options{Model: s.ModelConfig(data), Optim: s.Optimizer.config(), Schedule: schedule, Epochs: t.Epochs,
		EvalEvery: t.EvalEvery, Patience: t.Patience, Seed: s.Seed, Inductive: t.Inductive, Rows: m.RowType(),
		CacheFirst: m.CacheFirst == "on", RowNormalize: t.RowNormalize, Embeddings: s.Embeddings.options(),
		HostFeatures: m.FeaturesOn == "host"}
	if m.FeaturesOn == "disk" { // workers fill it in
		opt.Disk = &train.DiskOptions{}
	}
	if err := s.objective(&opt); err != nil {
		return opt, err
	}
	if opt.Strategy, err = s.Choice(); err != nil {
		return opt, err
	}
	if s.Mode == string(train.MiniBatch) && s.Distributed() {
		batches, err := s.BatchSettings(data)
		if err != nil {
			return opt, err
		}
		opt.Batches = &batches
	}
	if opt.Batches != nil || s.learnsRelations() && data.Schema != nil {
		if opt.Pairs, err = s.pairOptions(data); err != nil {
			return opt, err
		}
	}
	if err := cmp.Or(opt.Model.Validate(), opt.Optim.Validate()); err != nil {
		return opt, &graph.InputError{Found: Sentence(err)}
	}
	return opt, nil
}
