package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
)

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "bench WHAT",
		Short:   "Measure this machine: epoch, sample, wire",
		Example: "  starling bench epoch --like ogbn-arxiv --symmetrise\n  starling bench epoch graph --models gcn --dtypes f32,bf16\n  starling bench wire --workers 4",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(benchEpochCommand(), benchSampleCommand(), benchWireCommand())
	return c
}

func benchEpochCommand() *cobra.Command {
	spec := run.Default()
	spec.Epochs, spec.Quiet = 5, true
	var models, dtypes []string
	var like, json string
	var scale float64
	var symmetrise bool
	c := &cobra.Command{
		Use:   "epoch [DIR]",
		Short: "Time epochs of models, as ratios between storage types",
		Example: `  starling bench epoch graph
  starling bench epoch --like reddit --scale 0.1 --models sage --dtypes f32,bf16`,
		Args: arguments(0, 1, "a dataset folder, or --like NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == (like != "") {
				return run.UserError("DIR", fmt.Sprintf("%d folders and --like %q", len(args), like), "a dataset folder or --like NAME", "")
			}
			if len(args) == 1 {
				spec.Dataset = args[0]
			} else {
				tmp, err := os.MkdirTemp("", "starling-bench-*")
				if err != nil {
					return err
				}
				defer os.RemoveAll(tmp)
				spec.Dataset = filepath.Join(tmp, "graph")
				if err := generateLike(c, like, scale, symmetrise, spec.Dataset); err != nil {
					return err
				}
			}
			times, err := run.BenchEpochs(c.Context(), spec, models, dtypes, run.Silent(os.Stderr))
			if err != nil {
				return err
			}
			if json != "" {
				return times.JSON(json, os.Stdout)
			}
			fmt.Print(times)
			return nil
		},
	}
	f := c.Flags()
	f.StringSliceVar(&models, "models", []string{"gcn", "sage", "gat"}, "models to time")
	f.StringSliceVar(&dtypes, "dtypes", []string{"f32", "bf16"}, "storage types to compare; ratios are to the first")
	f.StringVar(&like, "like", "", "generate a graph of this shape: "+strings.Join(run.LikeNames(), ", "))
	f.Float64Var(&scale, "scale", 1, "with --like: times the published vertices and edges")
	f.BoolVar(&symmetrise, "symmetrise", false, "with --like: add the reverse of edges published one way")
	f.IntVar(&spec.Epochs, "epochs", spec.Epochs, "epochs of each; the first is left out of the median")
	f.IntVar(&spec.Layers, "layers", spec.Layers, "number of layers")
	f.IntVar(&spec.Hidden, "hidden", spec.Hidden, "width of hidden layers")
	f.IntVar(&spec.Threads, "threads", spec.Threads, "cores to use; 0: all")
	f.StringVar(&spec.CacheFirst, "cache-first", spec.CacheFirst, "keep the first layer's sums: auto, on or off")
	f.StringVar(&spec.SIMD, "simd", spec.SIMD, "instruction set: auto, generic, avx2, avx512 or amx")
	f.StringVar(&json, "json", "", "write one JSON object to this file, - for standard output")
	f.SortFlags = false
	return c
}

// generateLike draws a graph for a benchmark.
func generateLike(c *cobra.Command, like string, scale float64, symmetrise bool, out string) error {
	p, err := run.Like(like, scale, symmetrise)
	if err != nil {
		return err
	}
	_, err = run.Generate(c.Context(), "sbm", p, out, run.Silent(os.Stderr))
	return err
}
