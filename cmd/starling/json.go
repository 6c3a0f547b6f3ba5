package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"starling/run"
)

// finding is what a command found: a text for people, an object for programs.
type finding interface {
	fmt.Stringer
	JSON(path string, stdout io.Writer) error
}

// jsonFlag gives a command --json. A place where nothing can be written is refused before
// the work is done.
func jsonFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "json", "", "write one JSON object to this file, - for standard output")
	c.PreRunE = func(*cobra.Command, []string) error { return run.CheckFile("--json", *path) }
}

// show writes a finding where --json says, or else for people.
func show(f finding, json string) error {
	if json != "" {
		return f.JSON(json, stdout)
	}
	_, err := fmt.Fprint(stdout, f)
	return err
}
