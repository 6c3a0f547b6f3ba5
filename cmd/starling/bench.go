package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/run"
)

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "bench WHAT",
		Short:   "Measure this machine: kernels, epoch, sample, partition, wire",
		Example: "  starling bench epoch --like ogbn-arxiv --symmetrise\n  starling bench epoch graph --models gcn --dtypes f32,bf16\n  starling bench kernels\n  starling bench wire --workers 4",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(benchKernelsCommand(), benchEpochCommand(), benchSampleCommand(), benchPartitionCommand(), benchWireCommand())
	return c
}

func benchEpochCommand() *cobra.Command {
	spec := run.Default()
	spec.Epochs, spec.Quiet = 5, true
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
			spec.Dataset = dir
			times, err := run.BenchEpochs(c.Context(), spec, models, dtypes, run.Silent(os.Stderr))
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
	f.IntVar(&spec.Epochs, "epochs", spec.Epochs, "epochs of each; the first is left out of the median")
	f.IntVar(&spec.Layers, "layers", spec.Layers, "number of layers")
	f.IntVar(&spec.Hidden, "hidden", spec.Hidden, "width of hidden layers")
	f.IntVar(&spec.Threads, "threads", spec.Threads, "cores to use; 0: all")
	f.StringVar(&spec.CacheFirst, "cache-first", spec.CacheFirst, "keep the first layer's sums: auto, on or off")
	f.StringVar(&spec.SIMD, "simd", spec.SIMD, "instruction set: auto, generic, avx2, avx512, amx or amx-fp16")
	jsonFlag(c, &json)
	f.SortFlags = false
	return c
}

// benchGraph is the graph of a benchmark: a folder, or one drawn for it.
type benchGraph struct {
	like       string
	scale      float64
	symmetrise bool
}

func (g *benchGraph) flags(f *pflag.FlagSet) {
	f.StringVar(&g.like, "like", "", "generate a graph of this shape: "+strings.Join(run.LikeNames(), ", "))
	f.Float64Var(&g.scale, "scale", 1, "with --like: times the published vertices and edges")
	f.BoolVar(&g.symmetrise, "symmetrise", false, "with --like: add the reverse of edges published one way")
}

// folder is where the graph is, until done is called.
func (g *benchGraph) folder(c *cobra.Command, args []string) (dir string, done func(), err error) {
	if (len(args) == 1) == (g.like != "") {
		return "", nil, run.UserError("DIR", fmt.Sprintf("%s and --like %q", run.Counted(len(args), "folder"), g.like), "a dataset folder or --like NAME", "")
	}
	if len(args) == 1 {
		return args[0], func() {}, nil
	}
	p, err := run.Like(g.like, g.scale, g.symmetrise)
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
