package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

func pathsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "paths",
		Short: "Describe the links between this host and others",
		Long:  `Describe the networks that this host is in, for train --paths. docs/paths.md has the file.`,
		Args:  arguments(0, 0, "a subcommand"),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(pathsProbeCommand())
	return c
}

func pathsProbeCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "probe",
		Short:   "Measure this host's links and write them as a file for --paths",
		Example: `  starling paths probe --out links.yaml`,
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := run.ProbePaths(c.Context())
			if err != nil || out == "" {
				fmt.Print(text)
				return err
			}
			if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
				return spec.Mistake("--out", spec.Sentence(err), "a file that can be written", "")
			}
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write (default: stdout)")
	return c
}
