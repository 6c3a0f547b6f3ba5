package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"starling/run"
)

func demoCommand() *cobra.Command {
	var keep string
	c := &cobra.Command{
		Use:   "demo",
		Short: "The two-minute tour: generate a graph, train on it, show what came of it",
		Example: `  starling demo
  starling demo --keep tour     # leaves graph, weights and timeline in this folder`,
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
			} else if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			return demo(c, dir, keep != "")
		},
	}
	c.Flags().StringVar(&keep, "keep", "", "work in this folder and leave it there")
	return c
}

// demo shows each step as the command a user would type.
func demo(c *cobra.Command, dir string, keep bool) error {
	graph := filepath.Join(dir, "graph")
	p := run.DefaultParams()
	p.Name, p.Nodes, p.Edges, p.Features, p.Classes, p.Overwrite = "demo", 20_000, 400_000, 64, 8, true
	p.Train, p.Val, p.Test = 0.1, 0.1, 0.8
	fmt.Printf("$ starling generate sbm --nodes %d --edges %d --features %d --classes %d --train 0.1 --val 0.1 --test 0.8 --out graph\n", p.Nodes, p.Edges, p.Features, p.Classes)
	sum, err := run.Generate(c.Context(), "sbm", p, graph, run.Silent(os.Stderr))
	if err != nil {
		return err
	}
	printSummary(sum)
	fmt.Printf("\n$ starling info graph\n")
	info, err := run.Describe(graph, false)
	if err != nil {
		return err
	}
	fmt.Print(info)
	results := map[string]*run.Report{}
	for _, model := range []string{"mlp", "gcn", "sage"} {
		spec := run.Default()
		spec.Dataset, spec.Model, spec.Layers, spec.Hidden, spec.Epochs, spec.EvalEvery = graph, model, 2, 64, 40, 5
		if keep {
			spec.Out, spec.Trace = filepath.Join(dir, "run-"+model), filepath.Join(dir, "trace-"+model+".json")
		}
		fmt.Printf("\n$ starling train graph --model %s --layers 2 --hidden 64 --epochs 40 --eval-every 5\n", model)
		v := view(false, "")
		r, err := run.Train(c.Context(), spec, v)
		v.Close()
		if err != nil {
			return err
		}
		if r.Reason == "interrupted" {
			return run.ErrInterrupted
		}
		results[model] = r
	}
	fmt.Println("\nThe mlp sees each vertex alone; the graph models also see its neighbours:")
	for _, model := range []string{"mlp", "gcn", "sage"} {
		r := results[model]
		fmt.Printf("  %-5s test accuracy %.3f   %.1f ms an epoch\n", model, float64(r.TestAccuracy), 1000*float64(r.MedianEpochSeconds))
	}
	if keep {
		fmt.Printf("\nLeft in %s: graph, run-MODEL (weights), trace-MODEL.json (open in ui.perfetto.dev).\n", dir)
	}
	return nil
}
