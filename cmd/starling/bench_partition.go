package main

import (
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
)

func benchPartitionCommand() *cobra.Command {
	spec := run.DefaultPartition()
	spec.Parts, spec.Quiet = 4, true
	names, _ := run.PartitionMethods()
	methods := append([]string{"multilevel"}, without(names, "multilevel")...)
	var graph benchGraph
	var json string
	c := &cobra.Command{
		Use:   "partition [DIR]",
		Short: "Time the ways to cut a graph, as ratios to the first",
		Example: `  starling bench partition graph --parts 16
  starling bench partition --like ogbn-arxiv --symmetrise --methods multilevel,metis`,
		Args: arguments(0, 1, "a dataset folder, or --like NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, done, err := graph.folder(c, args)
			if err != nil {
				return err
			}
			defer done()
			b, err := run.BenchPartition(c.Context(), dir, spec, methods, shown(json))
			if err != nil || json == "" {
				return err
			}
			return b.JSON(json, stdout)
		},
	}
	f := c.Flags()
	f.IntVar(&spec.Parts, "parts", spec.Parts, "number of parts")
	f.StringSliceVar(&methods, "methods", methods, "some of "+strings.Join(names, ", ")+"; ratios are to the first")
	graph.flags(f)
	f.StringVar(&spec.Objective, "objective", spec.Objective, "what to make small: cut or volume")
	f.StringVar(&spec.Balance, "balance", spec.Balance, "what to keep even, with tolerances, as for starling partition")
	f.Uint64Var(&spec.Seed, "seed", spec.Seed, "seed of all random draws")
	f.IntVar(&spec.Threads, "threads", spec.Threads, "cores to use; 0: all")
	jsonFlag(c, &json)
	f.SortFlags = false
	return c
}

func without(names []string, name string) (rest []string) {
	for _, n := range names {
		if n != name {
			rest = append(rest, n)
		}
	}
	return rest
}
