package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

func simulateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Train over a simulated network, in virtual time",
		Long: `Simulate networks that are not at hand. docs/simulator.md describes the model and
what it was compared with.`,
		Args: arguments(0, 0, "a subcommand"),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(simulateTrainCommand(), simulateLLMCommand(), simulatePathsCommand())
	return c
}

// progressView counts what is simulated, on standard error: rows are printed once, when all are known.
func progressView(quiet bool) run.View {
	if quiet {
		return run.Silent(os.Stderr)
	}
	return share(run.NewView(os.Stderr, os.Stderr))
}

func simulateLLMCommand() *cobra.Command {
	o := run.DefaultLLM()
	var json string
	var quiet bool
	c := &cobra.Command{
		Use:   "llm",
		Short: "Compare orders of transfers in LLM training",
		Long: `Simulate iterations of LLM training with data, pipeline, tensor and expert parallelism, and
compare in which order transfers leave: Hermod's beside those of Megatron-LM (fifo), Lina and
ByteScheduler. Lists make one row for each combination.`,
		Example: `  starling simulate llm --model gpt3-175b --gpus 1024
  starling simulate llm --model gpt3-175b,mixtral-8x22b --gpus 512,1024 --rate 40Gbps,100Gbps`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if len(o.Schedulers) == 1 && o.Schedulers[0] == "all" {
				o.Schedulers = run.LLMSchedulers()
			}
			v := progressView(quiet)
			done := run.Counting(v, "simulations", len(o.Models)*len(o.GPUs)*len(o.Rates)*len(o.Schedulers))
			t, err := run.SimulateLLM(c.Context(), o, func(run.LLMRow) { done() })
			v.Close()
			if err != nil {
				return err
			}
			return show(t, json)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Models, "model", o.Models, "models: "+strings.Join(run.LLMModels(), ", "))
	f.StringSliceVar(&o.Schedulers, "scheduler", o.Schedulers, "orders of transfers, or all: "+
		strings.Join(run.LLMSchedulers(), ", "))
	f.IntSliceVar(&o.GPUs, "gpus", o.GPUs, "numbers of GPUs, eight per server")
	f.StringSliceVar(&o.Rates, "rate", o.Rates, "rates of a server's links")
	f.IntVar(&o.Links, "links", o.Links, "links of a server")
	spec.AutoVar(f, &o.PP, 0, 1, "pp", "pipeline stages (auto: the model's)")
	spec.AutoVar(f, &o.TP, 0, 1, "tp", "tensor parallelism (auto: the model's)")
	spec.AutoVar(f, &o.EP, 0, 1, "ep", "expert parallelism (auto: the model's)")
	f.IntVar(&o.VirtualStages, "virtual-stages", 0, "chunks of layers per stage; above 1: interleaved 1F1B")
	spec.AutoVar(f, &o.Layers, 0, 1, "layers", "layers (auto: the model's)")
	spec.AutoVar(f, &o.Sequence, 0, 1, "sequence", "tokens per sequence (auto: the model's)")
	spec.AutoVar(f, &o.Microbatch, 0, 1, "microbatch", "sequences per microbatch (auto: the model's)")
	spec.AutoVar(f, &o.Microbatches, 0, 1, "microbatches", "microbatches per iteration (auto: twice the stages)")
	f.IntVar(&o.Iterations, "iterations", o.Iterations, "iterations; the last one is reported")
	f.Float64Var(&o.TeraFLOPS, "tflops", o.TeraFLOPS, "10^12 floating-point operations per second that a GPU reaches")
	f.Float64Var(&o.Inside, "inside", o.Inside, "GB/s between two GPUs of a server")
	f.StringVar(&o.Piece, "piece", o.Piece, "bytes that a host sends at once, where hosts order transfers")
	f.Float64Var(&o.Skew, "skew", o.Skew, "how uneven experts are: the deviation of the logarithm of their popularity")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the experts' popularity")
	f.StringVar(&o.Placement, "placement", o.Placement, "what a server has: spread (as few of a group as possible, "+
		"which is the paper's), replicas of a stage, or the stages of a pipeline")
	f.StringVar(&o.Topology, "topology", "", "another network, with one host per tensor-parallel group; text or file")
	f.StringVar(&o.Level, "level", o.Level, "flow or packet")
	f.BoolVar(&o.CountCore, "count-coflows", false, "count the coflows that meet at a spine of a leaf-spine: at packet level those with packets in its "+
		"queues, every 10 us")
	f.IntVar(&o.Parallel, "parallel", o.Parallel, "simulations at a time")
	f.BoolVar(&quiet, "quiet", false, "say nothing until the end")
	jsonFlag(c, &json)
	return c
}
