package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"starling/bench"
	"starling/run"
	"starling/spec"
)

func benchPartitionCommand() *cobra.Command {
	s := spec.DefaultPartition()
	s.Parts, s.Quiet = 4, true
	names, _ := run.PartitionMethods()
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "multilevel" })
	methods := append([]string{"multilevel"}, others...)
	var graph benchGraph
	var json string
	c := &cobra.Command{
		Use:   "partition [DIR]",
		Short: "Time partitioning methods, as ratios to the first",
		Example: `  starling bench partition graph --parts 16
  starling bench partition --like ogbn-arxiv --symmetrize --methods multilevel,metis`,
		Args: arguments(0, 1, "a dataset folder, or --like NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, done, err := graph.folder(c, args)
			if err != nil {
				return err
			}
			defer done()
			b, err := bench.TimePartitions(c.Context(), dir, s, methods, shown(json))
			if err != nil || json == "" {
				return err
			}
			return b.JSON(json, stdout)
		},
	}
	f := c.Flags()
	f.IntVar(&s.Parts, "parts", s.Parts, "number of parts")
	f.StringSliceVar(&methods, "methods", methods, "some of "+strings.Join(names, ", ")+"; ratios are to the first")
	graph.flags(f)
	f.StringVar(&s.Objective, "objective", s.Objective, "what to minimise: cut or volume")
	f.StringVar(&s.Balance, "balance", s.Balance, "what to balance, with tolerances, as for starling partition")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of all random draws")
	spec.AutoVar(f, &s.Threads, 0, 1, "threads", "cores to use; auto: all")
	jsonFlag(c, &json)
	f.SortFlags = false
	return c
}
