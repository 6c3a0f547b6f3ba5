package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
)

func exportCommand() *cobra.Command {
	var format, out string
	var overwrite bool
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a trained model as PyG or DGL load it",
		Long: `Write the model of starling train --out RUN as safetensors and config.json, with the
names and layouts of PyG's or DGL's state dicts. docs/export.md has the ten lines of
Python that load each.`,
		Example: `  starling train cora --out run
  starling export run --format pyg --out cora-pyg`,
		Args: arguments(1, 1, "the folder of a run"),
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := run.Export(args[0], format, out, overwrite)
			if err != nil {
				return err
			}
			fmt.Fprintf(text, "%s: %s for %s, %s of %s\n", out, e.Model, e.Library, run.Counted(len(e.Layers), "layer"), e.Layers[0].Class)
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", "pyg", "library: "+strings.Join(run.ExportFormats, " or "))
	c.Flags().StringVar(&out, "out", "", "folder to write (required)")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace an earlier export")
	completeValues(c, map[string][]string{"format": run.ExportFormats})
	return c
}
