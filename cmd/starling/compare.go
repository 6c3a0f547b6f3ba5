package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/run"
	"starling/spec"
)

// notCompared are the settings of training that belong to a single run.
var notCompared = []string{
	"strategy", "init-from", "clusters", "walk-length",
	"decoder", "embedding", "val-edges", "test-edges", "negatives", "negatives-each", "avoid-edges",
	"rank-negatives", "walks",
	"launcher", "rendezvous", "hosts", "ssh-command", "listen", "no-launch", "token-file", "tls", "insecure",
	"metrics-listen", "web", "tensorboard", "checkpoint-dir", "checkpoint-every", "keep-checkpoints", "resume", "resume-if-any",
	"json", "events", "trace", "out", "overwrite",
}

// The strategies that others are rated over.
var fullReference, miniReference = spec.StrategyNamesOf("full")[0], spec.StrategyNamesOf("mini")[0]

var compareLong = `Train with several strategies on the same parts of a dataset, and compare the time of
their epochs, the bytes sent, memory and accuracy, one row per strategy. Strategies:

  ` + strings.Join(spec.StrategyNames(), ", ") + `

some with an option, as in

  ` + strings.Join(spec.StrategyExamples(), ", ") + `

and with suffixes, as in ` + fullReference + `+bf16 or ` + fullReference + `+relay+bf16: the type in which rows
are sent, +relay to send them once per server, +sparse to leave out their zeros, and +means
to correct the mean of stale ones. Speed-ups are relative to ` + fullReference + `, or ` + miniReference + ` with
--mode mini, or to the first strategy. A strategy that fails is a row with its error.

Models, samplers, partitioners and full-graph against mini-batch training are compared
likewise; of several lists, every choice is a row. Without any list, --workers compares
typical strategies, and a single worker the models gcn, sage, gat and gin.

--from compares results that starling train --json wrote instead, from any cluster;
several results of one strategy are rounds of it.`

var compareExample = `  starling compare graph
  starling compare graph --models gcn,sage --modes full,mini --html models.html
  starling compare graph --samplers cluster,ladies,saint-walk --model sage
  starling compare graph --workers 4 --partitioners multilevel,fennel,hash
  starling compare graph --strategies ` + fullReference + "," + spec.StrategyExamples()[0] + ` --workers 4
  starling compare parts --strategies ` + strings.Join(spec.TypicalStrategies("full"), ",") + ` \
      --rounds 3 --html compare.html
  starling compare parts --mode mini --strategies ` + strings.Join(spec.TypicalStrategies("mini"), ",") + `
  starling compare --from one.json --from other.json --json -`

// addTrainingFlags adds the settings of training to a command's flags, but for some, and for those it has already.
func addTrainingFlags(f *pflag.FlagSet, settings func(*pflag.FlagSet), without []string) {
	training := pflag.NewFlagSet("", pflag.ContinueOnError)
	training.SortFlags, f.SortFlags = false, false
	settings(training)
	training.VisitAll(func(t *pflag.Flag) {
		if !slices.Contains(without, t.Name) && f.Lookup(t.Name) == nil {
			f.AddFlag(t)
		}
	})
}

func compareCommand() *cobra.Command {
	s := spec.DefaultCompare()
	var strategies string
	c := &cobra.Command{
		Use:     "compare DIR [--strategies A,B,… --workers N]",
		Short:   "Train with several strategies, models or samplers and compare seconds, bytes and accuracy",
		Long:    compareLong,
		Example: compareExample,
		Args:    arguments(0, 1, "one dataset or partition folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := compareArguments(c, &s, args); err != nil {
				return err
			}
			s.Strategies = spec.SplitStrategies(strategies)
			if c.Flags().Changed("strategies") && len(s.Strategies) == 0 {
				return spec.Mistake("--strategies", "none", "at least one of "+strings.Join(spec.StrategyNames(), ", "), "")
			}
			if c.Flags().Changed("model") && s.ChoosesModels() {
				return spec.Mistake("--model", s.Model.Name+" and one worker, where models are compared",
					"several models, strategies or workers", "list models with --models, or give --workers")
			}
			return compare(c, s)
		},
	}
	f := c.Flags()
	f.StringVar(&strategies, "strategies", "", "strategies to compare, separated by commas")
	f.StringSliceVar(&s.Models, "models", nil, "models to compare")
	f.StringSliceVar(&s.Modes, "modes", nil, "modes to compare: full,mini, each with its strategies")
	f.StringSliceVar(&s.Samplers, "samplers", nil, "samplers of mini-batches to compare")
	f.StringSliceVar(&s.Partitioners, "partitioners", nil, "methods to cut the graph with to compare")
	f.IntVar(&s.Rounds, "rounds", s.Rounds, "runs per strategy, interleaved with those of the others")
	f.BoolVar(&s.VarySeed, "vary-seed", s.VarySeed, "use the next seed in each round; accuracies are then means")
	f.StringArrayVar(&s.From, "from", nil, "compare this result of starling train --json instead of running; may be "+
		"repeated")
	f.StringVar(&s.Output.JSON, "json", "", "write the comparison to this file, - for standard output")
	f.StringVar(&s.HTML, "html", "", "write a page with charts to this file")
	f.BoolVar(&s.Papers, "papers", s.Papers, "show the papers' figures beside ours")
	addTrainingFlags(f, s.Flags, notCompared)
	completeValues(c, settingValues())
	return c
}

// compareArguments takes either a folder to train on or results.
func compareArguments(c *cobra.Command, s *spec.Compare, args []string) error {
	if len(s.From) == 0 {
		if len(args) == 1 {
			s.Dataset = args[0]
		}
		return nil
	}
	if len(args) > 0 || c.Flags().Changed("strategies") {
		return spec.Mistake("--from", "results together with something to run", "one of the two",
			"leave out DIR and --strategies, or --from")
	}
	return nil
}

// compare runs s and writes what came of it, be it interrupted.
func compare(c *cobra.Command, s spec.Compare) error {
	v := sparseView(&s.Output)
	result, err := run.Compare(c.Context(), s, v)
	v.Close()
	if result == nil {
		return err
	}
	fmt.Fprint(words(s.Output.JSON), "\n", result)
	if s.Papers {
		if text := result.Papers(); text != "" {
			fmt.Fprint(words(s.Output.JSON), "\n", text)
		}
	}
	if s.Output.JSON != "" {
		if err := result.Write(s.Output.JSON, stdout); err != nil {
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
