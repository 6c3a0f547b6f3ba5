package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/bench"
	"starling/run"
	"starling/spec"
)

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench WHAT",
		Short: "Measure this machine: kernels, epoch, sample, partition, wire",
		Example: `  starling bench epoch --like ogbn-arxiv --symmetrize
  starling bench epoch graph --models gcn --dtypes f32,bf16
  starling bench kernels
  starling bench wire --workers 4`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(benchKernelsCommand(), benchEpochCommand(), benchSampleCommand(), benchPartitionCommand(),
		benchWireCommand())
	return c
}

func benchEpochCommand() *cobra.Command {
	s := spec.Default()
	s.Training.Epochs, s.Output.Quiet = 5, true
	var models, dtypes []string
	var graph benchGraph
	var json string
	c := &cobra.Command{
		Use:   "epoch [DIR]",
		Short: "Time epochs of models, as ratios between storage types",
		Example: `  starling bench epoch graph
  starling bench epoch --like reddit --scale 0.1 --models sage --dtypes f32,bf16`,
		Args: arguments(0, 1, "a dataset folder, or --like NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, done, err := graph.folder(c, args)
			if err != nil {
				return err
			}
			defer done()
			s.Dataset = dir
			times, err := bench.TimeEpochs(c.Context(), s, models, dtypes, run.Train, run.Silent(os.Stderr))
			if err != nil {
				return err
			}
			return show(times, json)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&models, "models", []string{"gcn", "sage", "gat"}, "models to time")
	f.StringSliceVar(&dtypes, "dtypes", []string{"f32", "bf16"}, "storage types to compare; ratios are to the first")
	graph.flags(f)
	f.IntVar(&s.Training.Epochs, "epochs", s.Training.Epochs,
		"epochs per model and type; the first is left out of the median")
	spec.AutoVar(f, &s.Model.Layers, spec.Auto, 1, "layers", "number of layers")
	spec.AutoVar(f, &s.Model.Hidden, spec.Auto, 1, "hidden", "width of hidden layers")
	spec.AutoVar(f, &s.Machine.Threads, 0, 1, "threads", "cores to use; auto: all")
	f.StringVar(&s.Machine.CacheFirst, "cache-first", s.Machine.CacheFirst,
		"keep the first layer's aggregation: auto, on or off")
	f.StringVar(&s.Machine.SIMD, "simd", s.Machine.SIMD, "instruction set: "+strings.Join(spec.SIMDNames, ", "))
	jsonFlag(c, &json)
	f.SortFlags = false
	return c
}

// benchGraph is the graph of a benchmark: a folder, or a generated one.
type benchGraph struct {
	like       string
	scale      float64
	symmetrize bool
}

func (g *benchGraph) flags(f *pflag.FlagSet) {
	f.StringVar(&g.like, "like", "", "generate a graph of this shape: "+strings.Join(run.LikeNames(), ", "))
	f.Float64Var(&g.scale, "scale", 1, "with --like: factor on the published vertices and edges")
	f.BoolVar(&g.symmetrize, "symmetrize", false, "with --like: add the reverse of edges published in one direction")
}

// folder is where the graph is, until done is called.
func (g *benchGraph) folder(c *cobra.Command, args []string) (dir string, done func(), err error) {
	if (len(args) == 1) == (g.like != "") {
		return "", nil, spec.Mistake("DIR", fmt.Sprintf("%s and --like %q", run.Counted(len(args), "folder"), g.like),
			"a dataset folder or --like NAME", "")
	}
	if len(args) == 1 {
		return args[0], func() {}, nil
	}
	p, err := run.Like(g.like, g.scale, g.symmetrize)
	if err != nil {
		return "", nil, err
	}
	p.Fit()
	tmp, err := os.MkdirTemp("", "starling-bench-*")
	if err != nil {
		return "", nil, err
	}
	done = func() { os.RemoveAll(tmp) }
	dir = filepath.Join(tmp, "graph")
	if _, err := run.Generate(c.Context(), "sbm", p, dir, run.Silent(os.Stderr)); err != nil {
		done()
		return "", nil, err
	}
	return dir, done, nil
}
