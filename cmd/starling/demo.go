package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"starling/report"
	"starling/run"
	"starling/spec"
)

func demoCommand() *cobra.Command {
	var keep string
	c := &cobra.Command{
		Use:   "demo",
		Short: "The two-minute tour: generate a graph, partition it, train on 4 worker processes, lose one",
		Example: `  starling demo
  starling demo --keep tour     # leaves graph, parts, weights and timeline in this folder`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			dir := keep
			if dir == "" {
				tmp, err := os.MkdirTemp("", "starling-demo-*")
				if err != nil {
					return err
				}
				defer os.RemoveAll(tmp)
				dir = tmp
			} else if err := spec.MakeNewFolder("--keep", dir); err != nil {
				return err
			}
			return demo(c, dir, keep != "")
		},
	}
	c.Flags().StringVar(&keep, "keep", "", "work in this folder, a new one, and leave it there")
	return c
}

// demo shows each step as the command that a user would type.
func demo(c *cobra.Command, dir string, keep bool) error {
	graph, parts := filepath.Join(dir, "graph"), filepath.Join(dir, "parts")
	if err := demoGenerate(c, graph); err != nil {
		return err
	}
	if err := demoPartition(c, graph, parts); err != nil {
		return err
	}
	const flags = " --model sage --layers 2 --hidden 64 --epochs 40 --eval-every 5"
	alone, err := demoTrain(c, demoSpec(graph), "$ starling train graph"+flags)
	if err != nil {
		return err
	}
	many := demoSpec(parts)
	many.Cluster.Workers = demoWorkers
	if keep {
		many.Output.Dir, many.Output.Trace = filepath.Join(dir, "run"), filepath.Join(dir, "trace.json")
	}
	c.SetContext(run.Fault{Rank: 2, Epoch: many.Training.Epochs / 2}.Into(c.Context()))
	together, err := demoTrain(c, many, fmt.Sprintf("$ starling train parts --workers %d", demoWorkers)+flags)
	if err != nil {
		return err
	}
	demoCompare(alone, together)
	if keep {
		fmt.Fprintf(text, "\nLeft in %s: graph, parts, run (weights), trace.json (open in ui.perfetto.dev).\n", dir)
	}
	return nil
}

// demoCompare shows that one worker and several, one of which was killed, compute the same.
func demoCompare(alone, together *report.Run) {
	fmt.Fprint(text, together.Traffic())
	fmt.Fprintf(text, "\nOne worker and %d worker processes, on the same loss curve (largest difference %.1e):\n",
		together.Workers, float64(report.LossDifference(alone.Loss, together.Loss)))
	for _, r := range []*report.Run{alone, together} {
		fmt.Fprintf(text, "  %-9s  test accuracy %.4f   %.1f ms per epoch\n", run.Counted(r.Workers, "worker"),
			float64(r.TestAccuracy), 1000*float64(r.MedianEpochSeconds))
	}
	for _, again := range together.Restarts {
		fmt.Fprintf(text, "A worker was killed half-way; %.1f s later training went on from epoch %d, and ended "+
			"as if "+
			"nothing had happened.\n", again.Seconds, again.Epoch)
	}
}

func demoGenerate(c *cobra.Command, out string) error {
	p := run.DefaultParams()
	p.Name, p.Nodes, p.Edges, p.Features, p.Classes = "demo", 20_000, 400_000, 64, 8
	p.Train, p.Val, p.Test = 0.1, 0.1, 0.8
	fmt.Fprintf(text, "$ starling generate sbm --nodes %d --edges %d --features %d --classes %d --train 0.1 --val "+
		"0.1 "+
		"--test 0.8 --out graph\n", p.Nodes, p.Edges, p.Features, p.Classes)
	sum, err := run.Generate(c.Context(), "sbm", p, out, run.Silent(os.Stderr))
	if err != nil {
		return err
	}
	printSummary(sum)
	return nil
}

const demoWorkers = 4

func demoSpec(dir string) spec.Spec {
	s := spec.Default()
	s.Dataset, s.Model.Name, s.Model.Layers, s.Model.Hidden, s.Training.Epochs, s.Training.EvalEvery = dir, "sage", 2,
		64, 40, 5
	return s
}

func demoPartition(c *cobra.Command, graph, out string) error {
	s := spec.DefaultPartition()
	s.Parts, s.Out, s.Model, s.Layers, s.Hidden = demoWorkers, out, "sage", 2, 64
	fmt.Fprintf(text, "\n$ starling partition graph --parts %d --model sage --layers 2 --hidden 64 --out parts\n",
		s.Parts)
	report, err := run.Partition(c.Context(), graph, s, run.Silent(os.Stderr))
	if err != nil {
		return err
	}
	fmt.Fprint(text, report)
	return nil
}

func demoTrain(c *cobra.Command, s spec.Spec, command string) (*report.Run, error) {
	fmt.Fprintln(text, "\n"+command)
	v := view(false, "")
	r, err := run.Train(c.Context(), s, v)
	v.Close()
	if err == nil && r.Reason == "interrupted" {
		err = run.ErrInterrupted
	}
	return r, err
}
