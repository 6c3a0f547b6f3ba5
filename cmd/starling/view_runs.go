package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/run"
)

func viewCommand() *cobra.Command {
	o := run.DefaultView()
	c := &cobra.Command{
		Use:   "view RUN...",
		Short: "Show runs on a page, from their files of events",
		Long: `Show runs on a page: curves, what each worker does and whom it waits for, bytes planned
and counted, memory, events, settings. RUN is a file that starling train --events wrote, or
writes: the page follows a run that goes on. Several runs are shown side by side.

It listens on loopback until Ctrl-C. Beyond that the link has a token. With --html it writes
the page to a file instead, with all numbers and nothing from outside.`,
		Example: `  starling train graph --workers 4 --events a.jsonl
  starling view a.jsonl
  starling view a.jsonl b.jsonl
  starling view a.jsonl b.jsonl --html both.html`,
		Args: arguments(1, 16, "files of events"),
		RunE: func(c *cobra.Command, args []string) error {
			o.Files = args
			return run.ViewRuns(c.Context(), o, func(link string) { fmt.Fprintln(text, "showing at "+link+" (Ctrl-C ends)") })
		},
	}
	c.Flags().StringVar(&o.Listen, "listen", o.Listen, "address to listen on; port 0: any")
	c.Flags().StringVar(&o.HTML, "html", "", "write the page to this file, and stop")
	return c
}
