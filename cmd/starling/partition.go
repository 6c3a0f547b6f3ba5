package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/report"
	"starling/run"
	"starling/spec"
)

func partitionCommand() *cobra.Command {
	s := spec.DefaultPartition()
	var memory, launcher string
	names, about := run.PartitionMethods()
	var list strings.Builder
	for i, name := range names {
		fmt.Fprintf(&list, "  %-11s %s\n", name, about[i])
	}
	c := &cobra.Command{
		Use:   "partition DIR --parts K --out DIR",
		Short: "Cut a graph into parts, one per worker",
		Long: `Cut the graph of a dataset folder into parts, write each as a folder that a worker
maps, and say what training on them will move and need. Methods:

` + list.String() + `
--servers S --workers W cuts between servers first, then inside each. --balance
lists what no part may have too much of, with tolerances; what is asked for is met
or is an error that says how far it went. Without --out there is only the report.
Given a partition folder instead of a dataset, --verify checks every invariant.`,
		Example: `  starling partition graph --parts 4 --out parts
  starling partition graph --parts 16 --method fennel --balance vertices:0.05,train:0.1 --out parts --json -
  starling partition graph --servers 2 --workers 4 --out parts --html parts.html
  starling partition parts --verify`,
		Args: arguments(1, 1, "one dataset folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if run.IsPartition(args[0]) || s.Verify && s.Parts == 0 && s.Workers == 0 { // its book may be what is missing
				return verifyPartition(c.Context(), args[0], s)
			}
			if err := s.CheckUnused(); err != nil {
				return err
			}
			p, err := run.ProcessesOf("--processes", s.Shared.Processes, launcher, os.Args[1:], os.Getenv)
			if err != nil && s.Shared.Processes > 0 {
				return err
			}
			v := view(s.Quiet || p.Silent(), s.JSON)
			report, err := partitionBy(c, args[0], s, p, memory, v)
			v.Close()
			if err != nil || report == nil {
				return err
			}
			if s.JSON != "" {
				if err := report.Write(s.JSON, stdout); err != nil {
					return err
				}
			}
			if s.JSON != "-" && !s.Quiet {
				_, err = fmt.Fprint(text, report)
			}
			return err
		},
	}
	partitionFlags(c.Flags(), &s, names)
	c.Flags().IntVar(&s.Shared.Processes, "processes", 0, "processes that partition together, none of which holds the graph (ldg, fennel; others hold it in one), and go on after they were killed; the same command on other hosts that share the folders joins in; under srun, mpirun or torchrun the number of tasks")
	c.Flags().StringVar(&launcher, "launcher", "auto", "with --processes: which launcher has started this task, each of whose tasks is one process: auto, none, "+strings.Join(spec.Launchers[2:], ", "))
	c.Flags().StringVar(&memory, "memory", "512MiB", "with --processes: what each may take for edges, beside its part and 16 bytes per vertex")
	c.Flags().SortFlags = false
	completeValues(c, settingValues())
	return c
}

// partitionBy partitions in this process, or in several.
func partitionBy(c *cobra.Command, dir string, s spec.Partition, p run.Processes, memory string, v run.View) (*report.Partition, error) {
	if s.Shared.Processes != 0 {
		return run.PartitionShared(c.Context(), dir, s, p, memory, v)
	}
	if c.Flags().Changed("memory") || c.Flags().Changed("launcher") {
		return nil, spec.Mistake("--memory, --launcher", "a setting without effect", "it beside --processes", "leave it out")
	}
	return run.Partition(c.Context(), dir, s, v)
}

// verifyPartition is what a partition folder, rather than a dataset, asks for.
func verifyPartition(ctx context.Context, dir string, s spec.Partition) error {
	if !s.Verify {
		return spec.Mistake("DIR", dir+", a partition", "a dataset folder", "to check the partition, add --verify")
	}
	if err := run.VerifyPartition(ctx, dir); err != nil {
		return err
	}
	if !s.Quiet {
		fmt.Fprintf(text, "%s: sound\n", dir)
	}
	return nil
}

func partitionFlags(f *pflag.FlagSet, s *spec.Partition, names []string) {
	f.IntVar(&s.Parts, "parts", s.Parts, "number of parts")
	spec.TwoNames(f, &s.Method, "method", "partitioner", "one of "+strings.Join(names, ", ")+" (--partitioner, too)")
	f.StringVar(&s.Out, "out", s.Out, "folder to write; none: only the report")
	f.StringVar(&s.PartDir, "part-dir", s.PartDir, "folder for each part instead, {} being its number: /disk{}/graph")
	f.IntVar(&s.Servers, "servers", s.Servers, "cut between this many servers first")
	f.IntVar(&s.Workers, "workers", s.Workers, "workers a server; parts are servers times workers")
	f.StringVar(&s.Objective, "objective", s.Objective, "what to make small: cut or volume")
	f.StringVar(&s.Balance, "balance", s.Balance, "what to keep even, with tolerances: vertices:0.05,edges:0.1,train,val,test,features,types")
	f.StringVar(&s.Target, "target", s.Target, "type of vertices whose labels parts have (typed graphs); by default the only one with labels")
	f.BoolVar(&s.BestEffort, "best-effort", s.BestEffort, "where --balance cannot be met, write the best found")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of all random draws")
	f.IntVar(&s.Tries, "tries", s.Tries, "cut so often, with seeds made of --seed, and keep the best by --objective;"+
		" multilevel combines them")
	spec.AutoVar(f, &s.Threads, 0, 1, "threads", "cores to use; auto: all. The result is the same")
	spec.AutoVar(f, &s.Passes, 0, 1, "passes", "passes of a streaming method; auto: its own choice")
	spec.AutoVar(f, &s.Refine, spec.Auto, 0, "refine", "passes that refine what a streaming method has found; auto: two")
	spec.AutoVar(f, &s.Hops, 0, 1, "hops", "reach of bytegnn's blocks; auto: two")
	f.BoolVar(&s.Verify, "verify", s.Verify, "read everything back and check it")
	f.BoolVar(&s.Overwrite, "overwrite", s.Overwrite, "replace an existing partition")
	f.StringVar(&s.HTML, "html", s.HTML, "write a page with the traffic between parts and what other methods give")
	f.StringVar(&s.JSON, "json", s.JSON, "write one JSON object to this file, - for standard output")
	f.StringVar(&s.Model, "model", s.Model, "model whose traffic and memory are planned; auto: gcn, or rgcn of a typed graph")
	spec.AutoVar(f, &s.Layers, spec.Auto, 1, "layers", "its layers; auto, here and below: as starling train has them")
	spec.AutoVar(f, &s.Hidden, spec.Auto, 1, "hidden", "its width")
	spec.AutoVar(f, &s.Heads, spec.Auto, 1, "heads", "its heads (gat, gatv2, rgat, hgt, simplehgn)")
	f.IntVar(&s.BatchSize, "batch-size", s.BatchSize, "batch of sampled training, over all workers")
	f.Var(spec.FanoutFlag{To: &s.Fanout}, "fanout", "neighbours sampled a vertex, the seed vertices' layer first")
	f.BoolVar(&s.Quiet, "quiet", s.Quiet, "show nothing")
}
