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
	return fmt.Sprintf("starling %s %s %s/%s", buildName(run.Version(), run.Commit()), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

// buildName is a version and its commit. A build without a release has its commit for a version, which is named once.
func buildName(version, commit string) string {
	if version == commit {
		return "commit " + commit
	}
	return fmt.Sprintf("%s (commit %s)", version, cmp.Or(commit, "unknown"))
}
