package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"starling/spec"
)

// finding is the result of a command: a text, or a JSON object.
type finding interface {
	fmt.Stringer
	JSON(path string, stdout io.Writer) error
}

// jsonFlag adds --json to a command. A file that cannot be written is refused before the work is
// done.
func jsonFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "json", "", "write one JSON object to this file, - for standard output")
	c.PreRunE = func(*cobra.Command, []string) error { return spec.CheckFile("--json", *path) }
}

// show writes a finding to --json, or else as text.
func show(f finding, json string) error {
	if json != "" {
		return f.JSON(json, stdout)
	}
	_, err := fmt.Fprint(text, f)
	return err
}
