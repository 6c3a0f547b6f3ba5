package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"starling/run"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which starling this is",
		Args:  arguments(0, 0, "no arguments"),
		Run:   func(*cobra.Command, []string) { fmt.Fprintln(stdout, version()) },
	}
}

func version() string {
	return fmt.Sprintf("starling %s %s %s/%s", run.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
