package spec

import (
	"slices"

	"starling/coflow"
	"starling/nn"
	"starling/partition"
	"starling/sample"
	"starling/train"
)

// SIMDNames are the values of --simd.
var SIMDNames = []string{"auto", "generic", "avx2", "avx512", "amx", "amx-fp16"}

// Launchers are the values of --launcher: the launchers that package cluster knows.
var Launchers = []string{"auto", "none", "slurm", "openmpi", "mpich", "torchrun", "kubernetes"}

// Samplers are the values of --sampler.
func Samplers() []string { return sample.Names }

// choice is a setting that has one of a few values.
type choice struct {
	name   string
	value  string
	values []string
}

type choiceList []choice

// choices are the settings with a list of values, for help and validation. The strategy
// may be followed by options, so that its value is not compared with the list.
func (s *Spec) choices() choiceList {
	return choiceList{
		{"task", s.Task, append([]string{"auto"}, nn.Tasks...)},
		{"model", s.Model, nn.Models},
		{"mode", s.Mode, []string{string(train.FullGraph), string(train.MiniBatch)}},
		{"sampler", s.Sampler, sample.Names},
		{"decoder", s.Decoder, nn.Decoders},
		{"embedding_optimizer", s.EmbeddingOptimizer, []string{"adam", "adagrad"}},
		{"negatives_from", s.NegativesFrom, []string{"global", "local"}},
		{"norm", s.Norm, []string{"auto", "none", "batch", "layer"}},
		{"aggregator", s.Aggregator, []string{"mean", "gcn"}},
		{"optimizer", s.Optimizer, nn.Optimisers},
		{"device", deviceKind(s.Device), DeviceNames},
		{"dtype", s.DType, []string{"f32", "bf16", "f64"}},
		{"features_on", s.FeaturesOn, []string{"auto", "card", "host"}},
		{"cache_first", s.CacheFirst, []string{"auto", "on", "off"}},
		{"simd", s.SIMD, SIMDNames},
		{"matmul", s.MatMul, []string{"split", "f32", "tf32"}},
		{"strategy", "", train.Names()},
		{"transport", s.Transport, []string{"auto", "tcp", "shm", "inprocess", "mpi"}},
		{"send_order", s.SendOrder, coflow.OrderNames()},
		{"all_reduce", s.AllReduce, []string{"host", "nccl"}},
		{"partitioner", s.Partitioner, partition.Names()},
		{"on_failure", s.OnFailure, []string{"restart", "wait", "stop"}},
		{"launcher", s.Launcher, Launchers},
	}
}

// of are the values of a setting.
func (l choiceList) of(name string) []string {
	if i := slices.IndexFunc(l, func(c choice) bool { return c.name == name }); i >= 0 {
		return l[i].values
	}
	return nil
}

// check names the first setting with a value that is not in its list.
func (l choiceList) check() error {
	for _, c := range l {
		if c.name != "strategy" && !slices.Contains(c.values, c.value) {
			return NotOneOf(field{name: c.name}.flag(), c.value, c.values)
		}
	}
	return nil
}
