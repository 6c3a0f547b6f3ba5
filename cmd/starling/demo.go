package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"starling/run"
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
			} else if err := run.MakeNewFolder("--keep", dir); err != nil {
				return err
			}
			return demo(c, dir, keep != "")
		},
	}
	c.Flags().StringVar(&keep, "keep", "", "work in this folder, a new one, and leave it there")
	return c
}

// demo shows each step as the command a user would type.
func demo(c *cobra.Command, dir string, keep bool) error {
	graph := filepath.Join(dir, "graph")
	p := run.DefaultParams()
	p.Name, p.Nodes, p.Edges, p.Features, p.Classes = "demo", 20_000, 400_000, 64, 8
	p.Train, p.Val, p.Test = 0.1, 0.1, 0.8
	fmt.Fprintf(stdout, "$ starling generate sbm --nodes %d --edges %d --features %d --classes %d --train 0.1 --val 0.1 --test 0.8 --out graph\n", p.Nodes, p.Edges, p.Features, p.Classes)
	sum, err := run.Generate(c.Context(), "sbm", p, graph, run.Silent(os.Stderr))
	if err != nil {
		return err
	}
	printSummary(sum)
	parts := filepath.Join(dir, "parts")
	if err := demoPartition(c, graph, parts); err != nil {
		return err
	}
	one := demoSpec(graph)
	alone, err := demoTrain(c, one, "$ starling train graph --model sage --layers 2 --hidden 64 --epochs 40 --eval-every 5")
	if err != nil {
		return err
	}
	many := demoSpec(parts)
	many.Workers = demoWorkers
	if keep {
		many.Out, many.Trace = filepath.Join(dir, "run"), filepath.Join(dir, "trace.json")
	}
	c.SetContext(run.Drill{Rank: 2, Epoch: many.Epochs / 2}.Into(c.Context()))
	together, err := demoTrain(c, many, "$ starling train parts --workers 4 --model sage --layers 2 --hidden 64 --epochs 40 --eval-every 5")
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, together.Traffic())
	fmt.Fprintf(stdout, "\nOne worker and %d worker processes, on the same loss curve (largest difference %.1e):\n", together.Workers, apart(alone.Loss, together.Loss))
	for _, r := range []*run.Report{alone, together} {
		fmt.Fprintf(stdout, "  %-9s  test accuracy %.4f   %.1f ms an epoch\n", run.Counted(r.Workers, "worker"), float64(r.TestAccuracy), 1000*float64(r.MedianEpochSeconds))
	}
	for _, again := range together.Restarts {
		fmt.Fprintf(stdout, "A worker was killed half-way; %.1f s later training went on from epoch %d, and ended as if nothing had happened.\n", float64(again.Seconds), again.Epoch)
	}
	if keep {
		fmt.Fprintf(stdout, "\nLeft in %s: graph, parts, run (weights), trace.json (open in ui.perfetto.dev).\n", dir)
	}
	return nil
}

const demoWorkers = 4

func demoSpec(dir string) run.Spec {
	s := run.Default()
	s.Dataset, s.Model, s.Layers, s.Hidden, s.Epochs, s.EvalEvery = dir, "sage", 2, 64, 40, 5
	return s
}

func demoPartition(c *cobra.Command, graph, out string) error {
	s := run.DefaultPartition()
	s.Parts, s.Out, s.Model, s.Layers, s.Hidden = demoWorkers, out, "sage", 2, 64
	fmt.Fprintf(stdout, "\n$ starling partition graph --parts %d --model sage --layers 2 --hidden 64 --out parts\n", s.Parts)
	report, err := run.Partition(c.Context(), graph, s, run.Silent(os.Stderr))
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, report)
	return nil
}

func demoTrain(c *cobra.Command, spec run.Spec, command string) (*run.Report, error) {
	fmt.Fprintln(stdout, "\n"+command)
	v := view(false, "")
	r, err := run.Train(c.Context(), spec, v)
	v.Close()
	if err == nil && r.Reason == "interrupted" {
		err = run.ErrInterrupted
	}
	return r, err
}

// apart is the largest difference between two curves, relative.
func apart(a, b []run.Number) (most float64) {
	for i := range min(len(a), len(b)) {
		most = max(most, math.Abs(float64(a[i]-b[i]))/float64(a[i]))
	}
	return most
}
