package main

import (
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
)

func simulatePathsCommand() *cobra.Command {
	o := run.DefaultPaths()
	var json string
	var quiet bool
	c := &cobra.Command{
		Use:   "paths",
		Short: "Compare ways to choose a path for each request",
		Long: `Simulate hosts with more than one path for a message (LEO): the case studies of the paper on its three
hardware models, with the systems that it compares with as policies; or a description of your own, with
round-robin, greedy, LEO's heuristic and the optimum. docs/paths.md describes the file.`,
		Example: `  starling simulate paths
  starling simulate paths --case kvs,policy --requests 50000
  starling simulate paths --file host.yaml --trace recorded.txt`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			v := progressView(quiet)
			done := run.Counting(v, "simulations", 0)
			t, err := run.SimulatePaths(c.Context(), o, func(run.PathsRow) { done() })
			v.Close()
			if err != nil {
				return err
			}
			return show(t, json)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Cases, "case", o.Cases, "case studies: "+strings.Join(run.PathsCases(), ", "))
	f.StringVar(&o.File, "file", "", "a description of paths, instead of the case studies")
	f.StringVar(&o.Trace, "trace", "", "a recorded trace of requests, for --file")
	f.IntVar(&o.Requests, "requests", o.Requests, "requests per simulation")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of arrivals and of the network's delays")
	f.BoolVar(&quiet, "quiet", false, "say nothing until the end")
	jsonFlag(c, &json)
	return c
}
