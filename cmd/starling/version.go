package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"starling/run"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Args:  arguments(0, 0, "no arguments"),
		Run:   func(*cobra.Command, []string) { fmt.Fprintln(text, version()) },
	}
}

func version() string {
	return fmt.Sprintf("starling %s (commit %s) %s %s/%s", run.Version(), cmp.Or(run.Commit(), "unknown"),
		runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
}
