package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/bench"
	"starling/spec"
)

func benchSampleCommand() *cobra.Command {
	s := spec.Default()
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
				return spec.Mistake("--batches", fmt.Sprint(batches), "1 or more", "")
			}
			dir, done, err := graph.folder(c, args)
			if err != nil {
				return err
			}
			defer done()
			s.Dataset, s.Mode = dir, "mini"
			b, err := bench.TimeSamples(c.Context(), s, batches)
			if err != nil {
				return err
			}
			return show(b, json)
		},
	}
	f := c.Flags()
	f.StringVar(&s.Batches.Sampler, "sampler", s.Batches.Sampler, "how batches are drawn, as for starling train")
	f.Var(&s.Batches.Fanout, "fanout", "neighbours drawn per vertex, one number per layer")
	f.IntVar(&s.Batches.Size, "batch-size", s.Batches.Size, "seed vertices per batch")
	spec.AutoVar(f, &s.Model.Layers, spec.Auto, 1, "layers", "number of layers")
	f.BoolVar(&s.Batches.Replace, "replace", s.Batches.Replace, "draw neighbours with replacement")
	spec.AutoVar(f, &s.Machine.Threads, 0, 1, "threads", "threads that draw at once; auto: one per core")
	f.IntVar(&batches, "batches", 200, "batches to draw")
	graph.flags(f)
	jsonFlag(c, &json)
	f.SortFlags = false
	return c
}
