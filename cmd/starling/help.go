package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commonFlags are the flags of starling train that most people need; --help-all shows the others too.
var commonFlags = []string{
	"task", "model", "mode", "layers", "hidden", "heads", "dropout", "norm",
	"epochs", "lr", "optimizer", "weight-decay", "patience", "seed",
	"batch-size", "fanout", "sampler",
	"out", "overwrite", "json", "quiet",
	"checkpoint-dir", "resume",
	"device", "dtype", "threads",
	"workers", "strategy", "partition", "hosts",
	"config", "dry-run", "help", "help-all",
}

// shortHelp has --help show the common flags of a command, and --help-all every flag.
func shortHelp(c *cobra.Command) {
	all := c.Flags().Bool("help-all", false, "show every flag")
	inner := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if *all {
			c.Parent().HelpFunc()(c, args)
			return nil
		}
		return inner(c, args)
	}
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		left := hideUncommon(c.Flags())
		defer func() {
			for _, f := range left {
				f.Hidden = false
			}
		}()
		c.Parent().HelpFunc()(c, args)
		fmt.Fprintf(c.OutOrStdout(), "\n%d more flags: %s --help-all\n", len(left), c.CommandPath())
	})
}

// hideUncommon hides the flags that few need, and returns them.
func hideUncommon(flags *pflag.FlagSet) (hidden []*pflag.Flag) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !slices.Contains(commonFlags, f.Name) {
			f.Hidden = true
			hidden = append(hidden, f)
		}
	})
	return hidden
}
