package main

import (
	"github.com/spf13/cobra"

	"starling/run"
)

func infoCommand() *cobra.Command {
	var json string
	var verify, guess bool
	c := &cobra.Command{
		Use:     "info DIR",
		Short:   "Say what a dataset or partition folder holds, and what training on it takes",
		Example: "  starling info graph\n  starling info graph --verify --json -",
		Args:    arguments(1, 1, "one dataset or partition folder"),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := look(c, args[0], verify, guess)
			if err != nil {
				return err
			}
			return show(info, json)
		},
	}
	jsonFlag(c, &json)
	c.Flags().BoolVar(&guess, "estimate", true, "estimate what training takes, by running a few epochs of a small piece")
	c.Flags().BoolVar(&verify, "verify", false, "check every checksum and every number")
	return c
}

// look describes a dataset or a partition.
func look(c *cobra.Command, dir string, verify, guess bool) (finding, error) {
	if run.IsPartition(dir) {
		return run.DescribeParts(c.Context(), dir, verify)
	}
	return run.Describe(c.Context(), dir, verify, guess)
}
