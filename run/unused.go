package run

import (
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
)

// effect is a setting that may have been given, whether it then has an effect, and if not, why.
type effect struct {
	flag         string
	given, works bool
	reason       string
}

// checkUnused refuses settings that would be without effect: whoever gives one
// expects it to matter.
func (s *Spec) checkUnused() error {
	for _, f := range slices.Concat(s.modelFlags(), s.trainingFlags(), s.workerFlags(), s.miniFlags(), s.pairFlags()) {
		if f.given && !f.works {
			return &graph.InputError{Field: f.flag, Found: "a setting without effect", Fix: f.reason}
		}
	}
	for _, f := range s.ofStrategies() {
		if f.given && !s.uses(f.users...) {
			return &graph.InputError{Field: f.flag(), Found: "a setting without effect", Fix: "only for --strategy " + strings.Join(f.users, ", ")}
		}
	}
	if err := s.checkTwice(); err != nil {
		return err
	}
	return s.checkTogether()
}

// modelFlags are the settings of models, and when each has an effect.
func (s *Spec) modelFlags() []effect {
	d := Default()
	return []effect{
		{"--heads", s.Heads != d.Heads, nn.Attends(s.Model), "only --model gat and gatv2 have heads"},
		{"--out-heads", s.OutHeads != d.OutHeads, nn.Attends(s.Model), "only --model gat and gatv2 have heads"},
		{"--attention-dropout", s.AttentionDropout != 0, nn.Attends(s.Model), "only --model gat and gatv2 have attention"},
		{"--aggregator", s.Aggregator != d.Aggregator, s.Model == "sage", "only --model sage has a choice of aggregators"},
		{"--edge-features", s.EdgeFeatures, nn.UsesEdges(s.Model), "only --model gat, gatv2 and gin look at features of edges"},
		{"--edge-features", s.EdgeFeatures, s.Mode == "full" || s.Model != "gin" || s.Sampler == "cluster" || s.Sampler == "neighbour" && !s.Weighted,
			"--sampler " + s.Sampler + " makes each edge count by what it drew, and gin with features of edges does not weigh them: use --sampler neighbour without --weighted, or cluster, or --model gat"},
		{"--train-eps", s.TrainEps, s.Model == "gin", "only --model gin has an epsilon"},
		{"--norm", s.Norm == "none", !strings.HasPrefix(s.Model, "res"), s.Model + " normalises before every layer: use batch or layer"},
	}
}

// trainingFlags are those of a run, whatever its model and workers.
func (s *Spec) trainingFlags() []effect {
	return []effect{
		{"--momentum", s.Momentum != 0, s.Optimizer == "sgd", "only --optimizer sgd has momentum"},
		{"--nesterov", s.Nesterov, s.Momentum > 0, "it needs a --momentum above 0"},
		{"--decay-first", s.DecayFirst, s.WeightDecay > 0, "it needs a --weight-decay above 0"},
		{"--input-dropout", s.InputDropout, s.Dropout > 0, "it needs a --dropout above 0"},
		{"--patience", s.Patience > 0, s.EvalEvery > 0, "it needs measurements: --eval-every 1 or more"},
		{"--resume", s.Resume, s.CheckpointDir != "", "it needs the --checkpoint-dir to go on from"},
		{"--resume-if-any", s.ResumeIfAny, s.CheckpointDir != "", "it needs the --checkpoint-dir to go on from"},
		{"--threads", s.Threads > 1, s.DType != "f64", "the reference device of --dtype f64 uses one core"},
		{"--simd", s.SIMD != "auto", s.DType != "f64", "the reference device of --dtype f64 uses none"},
	}
}

// workerFlags are those of several workers, and of how they meet.
func (s *Spec) workerFlags() []effect {
	d := Default()
	return []effect{
		{"--servers", s.Servers > 0, s.distributed(), "one worker has no others to be grouped with"},
		{"--partition", s.Partition != "", s.distributed(), "it needs a --strategy of several workers, as halo"},
		{"--sparse-rows", s.SparseRows, s.distributed(), "one worker sends nothing"},
		{"--wire-dtype", s.WireDType != "none", s.distributed(), "one worker sends nothing"},
		{"--partitioner", s.Partitioner != d.Partitioner, s.distributed() && s.partitionFolder() == "", "nothing is partitioned in this run"},
		{"--in-process", s.InProcess, s.distributed(), "one worker always is"},
		{"--transport", s.Transport != "auto", s.distributed(), "one worker sends nothing"},
		{"--listen", s.Listen != "", s.processes(), "workers do not meet in this run"},
		{"--no-launch", s.NoLaunch, s.processes(), "there is nothing to launch in this run"},
		{"--rendezvous", s.Rendezvous != "", s.processes() && s.NoLaunch, "it is for workers that a launcher starts, or others with --no-launch"},
		{"--hosts", s.Hosts != "", s.processes() && !s.NoLaunch, "it is for workers that this run starts"},
		{"--ssh-command", s.SSHCommand != d.SSHCommand, s.Hosts != "", "it is for --hosts"},
		{"--token-file", s.TokenFile != "", s.processes(), "workers do not meet in this run"},
		{"--on-failure", s.OnFailure != d.OnFailure, s.processes(), "there are no processes to lose in this run"},
		{"--heartbeat", s.Heartbeat != d.Heartbeat, s.processes(), "there are no processes to lose in this run"},
		{"--tls", s.TLS != "", s.processes() || s.MetricsListen != "", "workers do not meet in this run"},
		{"--insecure", s.Insecure, s.TLS == "" && (s.Listen != "" && s.TokenFile == "" || s.MetricsListen != ""), "it needs a --listen address, and is not for --tls or a --token-file"},
	}
}

// checkTogether refuses settings that do not go together.
func (s *Spec) checkTogether() error {
	if s.InProcess && s.Transport != "auto" && s.Transport != "inprocess" {
		return mistake("--transport", s.Transport, "inprocess with --in-process", "leave out one of the two")
	}
	if s.Transport == "mpi" && !s.NoLaunch {
		return mistake("--transport", "mpi in a process that no MPI has started", "a launcher of MPI", "start the run as mpirun -n 4 starling train ...; see docs/mpi.md")
	}
	if s.Servers > 0 && s.Workers%s.Servers != 0 {
		return mistake("--servers", fmt.Sprintf("%d for %d workers", s.Servers, s.Workers), "a number that divides the workers", "")
	}
	if nn.Attends(s.Model) && s.Layers > 1 && s.Hidden%s.Heads != 0 {
		return mistake("--hidden", fmt.Sprint(s.Hidden), fmt.Sprintf("a multiple of the %d heads", s.Heads), "hidden is the width of all heads together")
	}
	return nil
}

// checkTwice refuses a setting of the strategy that stands after its name, and another by
// its flag.
func (s *Spec) checkTwice() error {
	c, err := s.choice()
	if err != nil {
		return err
	}
	d := Default()
	for _, f := range []struct{ flag, given, usual, taken string }{
		{"--staleness", s.Staleness, d.Staleness, c.Staleness},
		{"--g3-pipeline", s.G3Pipeline, d.G3Pipeline, c.Pipeline},
		{"--preload", s.Preload, d.Preload, c.Preload},
		{"--eas", s.EAS, d.EAS, c.Sample},
	} {
		if f.given != f.usual && f.given != f.taken {
			return mistake(f.flag, f.given+" beside --strategy "+s.Strategy, "one of the two", "leave out the flag, or what follows the strategy's name")
		}
	}
	return nil
}
