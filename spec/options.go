package spec

import (
	"runtime"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/train"
)

// Options are the settings as the training loop takes them.
func (s *Spec) Options(data *graph.Meta) (train.Options, error) {
	schedule, err := nn.ParseSchedule(s.Schedule)
	if err != nil {
		return train.Options{}, Mistake("--schedule", graph.Sentence(err.Error()), "", "")
	}
	opt := train.Options{Model: s.ModelConfig(data), Optim: s.optimConfig(), Schedule: schedule, Epochs: s.Epochs,
		EvalEvery: s.EvalEvery, Patience: s.Patience, Seed: s.Seed, Inductive: s.Inductive, Rows: s.RowType(),
		CacheFirst: s.CacheFirst == "on", RowNormalize: s.RowNormalize, Embeddings: s.Embeddings(),
		HostFeatures: s.FeaturesOn == "host"}
	if opt.Strategy, err = s.Choice(); err != nil {
		return opt, err
	}
	if s.Mode == string(train.MiniBatch) && s.Distributed() {
		batches, err := s.BatchSettings()
		if err != nil {
			return opt, err
		}
		opt.Batches = batches.Options()
		if opt.Pairs, err = s.Pairs(); err != nil {
			return opt, err
		}
	}
	for _, err := range []error{opt.Model.Validate(), opt.Optim.Validate()} {
		if err != nil {
			return opt, &graph.InputError{Found: graph.Sentence(err.Error())}
		}
	}
	return opt, nil
}

// ModelConfig is the model for a dataset.
func (s *Spec) ModelConfig(data *graph.Meta) nn.Config {
	edges := 0
	if s.EdgeFeatures {
		edges = data.EdgeDim
	}
	in := s.LearnEmbeddings
	if data.Features != nil {
		in += data.Features.Dim
	}
	return nn.Config{EdgeDim: edges, Model: s.Model, Layers: s.Layers, Hidden: s.Hidden, Heads: s.Heads,
		OutHeads: s.OutHeads,
		Dropout:  s.Dropout, InputDropout: s.InputDropout, AttentionDropout: s.AttentionDropout,
		Norm: s.Norm, Aggregator: s.Aggregator, TrainEps: s.TrainEps,
		Decoder: s.decoder(), In: in, Out: s.outputs(data)}
}

func (s *Spec) optimConfig() nn.OptimConfig {
	c := nn.DefaultOptim()
	c.Name, c.LR, c.WeightDecay, c.DecayFirst = s.Optimizer, s.LR, s.WeightDecay, s.DecayFirst
	c.Momentum, c.Nesterov = s.Momentum, s.Nesterov
	return c
}

// RowType is the storage type of features and activations.
func (s *Spec) RowType() tensor.DType {
	switch s.DType {
	case "bf16":
		return tensor.BF16
	case "f64":
		return tensor.F64
	}
	return tensor.F32
}

// processors are those that this process may use when it starts; a worker may limit itself
// to fewer later.
var processors = runtime.GOMAXPROCS(0)

// Cores is how many the run computes on.
func (s *Spec) Cores() int {
	switch {
	case s.DType == "f64":
		return 1
	case s.Threads > 0:
		return s.Threads
	}
	return processors
}

// CoresOf is the cores of each of several workers on one host.
func (s *Spec) CoresOf(workers int) int {
	if s.Threads > 0 || s.DType == "f64" {
		return s.Cores()
	}
	return max(s.Cores()/workers, 1)
}
