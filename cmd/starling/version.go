package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"starling/run"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Args:  arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(stdout).Encode(map[string]string{"version": run.Version(), "commit": run.Commit(),
					"go": runtime.Version(), "system": runtime.GOOS, "arch": runtime.GOARCH})
			}
			fmt.Fprintln(text, version())
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object to standard output")
	return c
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
