package main

import (
	"github.com/spf13/cobra"

	"starling/spec"
)

// completeValues has a shell complete the values of flags that have one of a few.
func completeValues(c *cobra.Command, values map[string][]string) {
	for name, list := range values {
		if c.Flags().Lookup(name) != nil {
			c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// settingValues are the values of the settings of a run.
func settingValues() map[string][]string {
	s := spec.Default()
	values := s.Values()
	for list, one := range map[string]string{"strategies": "strategy", "method": "partitioner", "models": "model",
		"modes": "mode", "samplers": "sampler", "partitioners": "partitioner"} {
		values[list] = values[one]
	}
	return values
}

// completeArgument has a shell complete the first argument of a command.
func completeArgument(c *cobra.Command, words []string) {
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
