package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/run"
)

// notCompared are the settings of training that belong to a single run.
var notCompared = []string{"strategy", "mode", "batch-size", "fanout", "sampler", "replace", "weighted", "clusters", "walk-length",
	"decoder", "embedding", "val-edges", "test-edges", "negatives", "negatives-each", "avoid-edges", "rank-negatives", "walks",
	"launcher", "rendezvous", "hosts", "ssh-command", "listen", "no-launch", "token-file", "tls", "insecure", "metrics-listen",
	"checkpoint-dir", "checkpoint-every", "keep-checkpoints", "resume", "resume-if-any", "json", "events", "trace", "out"}

func compareCommand() *cobra.Command {
	s := run.DefaultCompare()
	var strategies string
	c := &cobra.Command{
		Use:   "compare DIR --strategies A,B,… --workers N",
		Short: "Train with several strategies in turn: a row of seconds, bytes and accuracy each",
		Long: `Train with several strategies on the same parts of a dataset, one after the other, and
set their epochs, bytes, memory and accuracy beside each other. Strategies:

  ` + strings.Join(run.Strategies(), ", ") + `

each with its setting as in bns:0.1, sancus:epoch:2, g3:inter, granndis:2 or granndis:eas1,15,
and, as in halo+bf16 or g3+relay+bf16, the type its rows travel in, +relay to send them once a server,
+sparse to leave out their zeros, and +means to put late or old ones right on average.
Speed-ups are over halo, or the first. A strategy that fails is a row with its error.

--from takes results that starling train --json wrote instead, from whichever cluster;
several of one strategy are rounds of it.`,
		Example: `  starling compare graph --strategies halo,bns:0.1 --workers 4
  starling compare parts --strategies halo,bns:0.1,bns:0.5 --rounds 3 --html compare.html
  starling compare --from halo.json --from bns.json --json -`,
		Args: arguments(0, 1, "one dataset or partition folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := compareArguments(c, &s, args); err != nil {
				return err
			}
			if c.Flags().Changed("strategies") {
				s.Strategies = run.SplitStrategies(strategies)
			}
			return compare(c, s)
		},
	}
	f := c.Flags()
	f.StringVar(&strategies, "strategies", strings.Join(s.Strategies, ","), "what to compare, separated by commas")
	f.IntVar(&s.Rounds, "rounds", s.Rounds, "times that each runs, in turn with the others")
	f.BoolVar(&s.VarySeed, "vary-seed", s.VarySeed, "start each round from the next seed; accuracies are means then")
	f.StringArrayVar(&s.From, "from", nil, "compare this result of starling train --json instead of running; again for each")
	f.StringVar(&s.JSON, "json", "", "write the comparison to this file, - for standard output")
	f.StringVar(&s.HTML, "html", "", "write a page with bars and curves to this file")
	f.BoolVar(&s.Papers, "papers", s.Papers, "set the papers' figures beside ours")
	training := pflag.NewFlagSet("", pflag.ContinueOnError)
	training.SortFlags = false
	s.Flags(training)
	training.VisitAll(func(t *pflag.Flag) {
		if !slices.Contains(notCompared, t.Name) {
			f.AddFlag(t)
		}
	})
	f.SortFlags = false
	return c
}

// compareArguments takes either a folder to train on or results.
func compareArguments(c *cobra.Command, s *run.CompareSpec, args []string) error {
	if len(s.From) == 0 {
		if len(args) == 1 {
			s.Dataset = args[0]
		}
		return nil
	}
	if len(args) > 0 || c.Flags().Changed("strategies") {
		return run.UserError("--from", "results together with something to run", "one of the two", "leave out DIR and --strategies, or --from")
	}
	return nil
}

// compare runs s and writes what came of it, be it interrupted.
func compare(c *cobra.Command, s run.CompareSpec) error {
	v := run.Silent(os.Stderr)
	if !s.Quiet {
		v = run.NewSparseView(screen(s.JSON), words(s.JSON))
	}
	result, err := run.Compare(c.Context(), s, v)
	v.Close()
	if result == nil {
		return err
	}
	fmt.Fprint(words(s.JSON), "\n", result)
	if s.Papers {
		if text := result.Papers(); text != "" {
			fmt.Fprint(words(s.JSON), "\n", text)
		}
	}
	if s.JSON != "" {
		if err := result.Write(s.JSON, stdout); err != nil {
			return err
		}
	}
	if s.HTML != "" {
		if err := result.WriteHTML(s.HTML); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return result.Err()
}
