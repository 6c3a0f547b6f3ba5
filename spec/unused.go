package spec

import (
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/train"
)

// noEffect is what is found where a setting has no effect.
const noEffect = "a setting without effect"

// effect is a setting, whether it was given, whether it then has an effect, and if not,
// why.
type effect struct {
	flag         string
	given, works bool
	reason       string
}

// checkUnused refuses settings without effect: a user who gives one expects one.
func (s *Spec) checkUnused() error {
	all := slices.Concat(s.modelEffects(), s.trainingEffects(), s.workerEffects(), s.joinEffects(), s.batchEffects(),
		s.pairEffects(), s.embeddingEffects())
	for _, f := range all {
		if f.given && !f.works {
			return &graph.InputError{Field: f.flag, Found: noEffect, Fix: f.reason}
		}
	}
	return s.checkOptions()
}

// modelEffects are the settings of models.
func (s *Spec) modelEffects() []effect {
	d, attends, unset := Default(), nn.Attends(s.Model), *s
	unset.Heads, unset.Dropout = Auto, 0
	unset.completeModel(dataset{})
	weighted := !strings.HasPrefix(s.Sampler, "cluster") && (s.Sampler != "neighbour" || s.Weighted)
	return []effect{
		{"--heads", s.Heads != unset.Heads, attends, "only --model gat and gatv2 have heads"},
		{"--out-heads", s.OutHeads != d.OutHeads, attends, "only --model gat and gatv2 have heads"},
		{"--attention-dropout", s.AttentionDropout != 0, attends, "only --model gat and gatv2 have attention"},
		{"--aggregator", s.Aggregator != d.Aggregator, s.Model == "sage",
			"only --model sage has a choice of aggregators"},
		{"--edge-features", s.EdgeFeatures, nn.UsesEdges(s.Model), "only --model gat, gatv2 and gin use edge features"},
		{"--edge-features", s.EdgeFeatures, s.Mode == "full" || s.Model != "gin" || !weighted,
			"--sampler " + s.Sampler + " weights each edge, and gin with edge features has no edge weights: " +
				"use --sampler neighbour without --weighted, or cluster, or --model gat"},
		{"--train-eps", s.TrainEps, s.Model == "gin", "only --model gin has an epsilon"},
		{"--norm", s.Norm == "none", !strings.HasPrefix(s.Model, "res"),
			s.Model + " normalizes before every layer: use batch or layer"},
	}
}

// trainingEffects are the settings of any run, whatever its model and workers.
func (s *Spec) trainingEffects() []effect {
	return []effect{
		{"--momentum", s.Momentum != 0, s.Optimizer == "sgd", "only --optimizer sgd has momentum"},
		{"--nesterov", s.Nesterov, s.Momentum > 0, "it needs a --momentum above 0"},
		{"--decay-first", s.DecayFirst, s.WeightDecay > 0, "it needs a --weight-decay above 0"},
		{"--input-dropout", s.InputDropout, s.Dropout > 0, "it needs a --dropout above 0"},
		{"--patience", s.Patience > 0, s.EvalEvery > 0, "it needs evaluations: --eval-every 1 or more"},
		{"--resume", s.Resume, s.CheckpointDir != "", "it needs the --checkpoint-dir to continue from"},
		{"--resume-if-any", s.ResumeIfAny, s.CheckpointDir != "", "it needs the --checkpoint-dir to continue from"},
		{"--threads", s.Threads > 1, s.DType != "f64", "the reference device of --dtype f64 uses one core"},
		{"--features-on", s.FeaturesOn != "auto", s.Device != "cpu" && s.Mode == "mini",
			"it is for --device cuda and --mode mini"},
		{"--matmul", s.MatMul != "split", s.DType != "f64", "the reference device of --dtype f64 has float64 products"},
		{"--simd", s.SIMD != "auto", s.DType != "f64", "the reference device of --dtype f64 uses none"},
	}
}

// workerEffects are the settings of several workers.
func (s *Spec) workerEffects() []effect {
	d, distributed, processes := Default(), s.Distributed(), s.Processes()
	cut := distributed && s.PartitionFolder() == ""
	const alone = "one worker sends nothing: give --workers, or leave it out"
	nothingCut := "nothing is partitioned in this run"
	if cut && (s.NoLaunch || s.Hosts != "") {
		cut = false
		nothingCut = "workers that are started elsewhere need a partition: make one with starling partition --method"
	}
	return []effect{
		{"--servers", s.Servers > 0, distributed,
			"one worker has no others to be grouped with: give --workers, or leave it out"},
		{"--partition", s.Partition != "", distributed, "it needs a --strategy of several workers, as " +
			train.Default().Name},
		{"--partitioner", s.Partitioner != d.Partitioner, cut, nothingCut},
		{"--in-process", s.InProcess, distributed, "one worker always is"},
		{"--transport", s.Transport != "auto", distributed, alone},
		{"--send-order", s.SendOrder != "type", distributed, alone},
		{"--all-reduce", s.AllReduce != d.AllReduce, distributed, alone},
		{"--all-reduce", s.AllReduce == "nccl", s.Device != "cpu",
			"NCCL is for cards: give --device cuda, or leave it out"},
		{"--dscp", s.DSCP, processes && s.Transport != "shm" && s.Transport != "mpi",
			"no bytes of this run leave by TCP"},
		{"--paths", s.Paths != "", distributed, alone},
		{"--on-failure", s.OnFailure != d.OnFailure, processes, "there are no processes to lose in this run"},
		{"--heartbeat", s.Heartbeat != d.Heartbeat, processes, "there are no processes to lose in this run"},
	}
}

// joinEffects are the settings of how workers find and trust each other.
func (s *Spec) joinEffects() []effect {
	d, processes := Default(), s.Processes()
	exposed := s.Listen != "" && s.TokenFile == "" || s.MetricsListen != ""
	const none = "no processes join this run: give --workers without --in-process, or leave it out"
	return []effect{
		{"--listen", s.Listen != "", processes, none},
		{"--no-launch", s.NoLaunch, processes, "there is nothing to launch in this run"},
		{"--rendezvous", s.Rendezvous != "", processes && s.NoLaunch,
			"it is for workers that a launcher starts, or --no-launch"},
		{"--hosts", s.Hosts != "", processes && !s.NoLaunch, "it is for workers that this run starts"},
		{"--ssh-command", s.SSHCommand != d.SSHCommand, s.Hosts != "", "it is for --hosts"},
		{"--token-file", s.TokenFile != "", processes, none},
		{"--tls", s.TLS != "", processes || s.MetricsListen != "", none},
		{"--insecure", s.Insecure, s.TLS == "" && exposed, "it needs a --listen address, and is not for --tls or a " +
			"--token-file"},
	}
}
