package main

import (
	"github.com/spf13/cobra"

	"starling/run"
)

// chartsCommand gives the Python package what a notebook shows of a run: the curves of its page.
func chartsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "charts RESULT",
		Short:  "Write the curves of a run's page, from what train --json wrote, as HTML for other documents",
		Hidden: true,
		Args:   arguments(1, 1, "a result"),
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := run.Charts(args[0])
			if err == nil {
				_, err = stdout.Write(b)
			}
			return err
		},
	}
}
