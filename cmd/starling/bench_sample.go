package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/run"
)

func benchSampleCommand() *cobra.Command {
	spec := run.Default()
	var graph benchGraph
	var batches int
	var json string
	c := &cobra.Command{
		Use:   "sample [DIR]",
		Short: "Time how fast mini-batches are drawn",
		Example: `  starling bench sample graph --fanout 15,10,5 --batch-size 1024
  starling bench sample graph --sampler ladies --fanout 512,512,512`,
		Args: arguments(0, 1, "a dataset folder, or --like NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if batches < 1 {
				return run.UserError("--batches", fmt.Sprint(batches), "1 or more", "")
			}
			dir, done, err := graph.folder(c, args)
			if err != nil {
				return err
			}
			defer done()
			spec.Dataset, spec.Mode = dir, "mini"
			b, err := run.BenchSample(c.Context(), spec, batches)
			if err != nil {
				return err
			}
			return show(b, json)
		},
	}
	f := c.Flags()
	f.StringVar(&spec.Sampler, "sampler", spec.Sampler, "how batches are drawn, as for starling train")
	f.StringVar(&spec.Fanout, "fanout", spec.Fanout, "neighbours drawn for a vertex, one number a layer")
	f.IntVar(&spec.BatchSize, "batch-size", spec.BatchSize, "training vertices of a batch")
	f.IntVar(&spec.Layers, "layers", spec.Layers, "number of layers")
	f.BoolVar(&spec.Replace, "replace", spec.Replace, "draw neighbours with replacement")
	f.IntVar(&spec.Threads, "threads", spec.Threads, "threads that draw at once; 0: one a core")
	f.IntVar(&batches, "batches", 200, "batches to draw")
	graph.flags(f)
	jsonFlag(c, &json)
	f.SortFlags = false
	return c
}
