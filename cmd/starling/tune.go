package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

const tuneLong = `Search for the settings with the best validation metric: --trials choices at random, of
which most are stopped early (ASHA: asynchronous successive halving). All trials are
trained for a ninth of --epochs, the best third of them for a third, and the best third of
these to the end; none computes an epoch twice.

--over names what is searched: values (hidden=32,64) or a range (lr=1e-4..1e-1, by its
logarithm where it spans a factor of ten). Without it model, lr, hidden, dropout,
weight-decay and layers are, but for those that are given as flags, which all trials have.

--parallel is trials side by side; --workers is the workers of each. The folder
--checkpoint-dir (DATA-tune) keeps trials: the same command goes on where it was stopped.
The same --seed and --parallel make the same choices.`

const tuneExample = `  starling tune cora --trials 30
  starling tune cora --model gat --over lr=1e-3..1e-1 heads=2,4,8 --trials 20 --parallel 2
  starling tune cora --space space.yaml --epochs 100 --html tuned.html --json tuned.json`

// notTuned are the settings of training that belong to a single run, or that the search decides.
var notTuned = []string{"resume", "resume-if-any", "init-from", "launcher", "rendezvous", "hosts", "ssh-command", "listen",
	"no-launch", "token-file", "tls", "insecure", "metrics-listen", "web", "tensorboard", "out", "overwrite", "events", "trace"}

func tuneCommand() *cobra.Command {
	s := spec.Tune{Spec: spec.Default(), Trials: 30, Parallel: 1, Reduction: 3}
	c := &cobra.Command{
		Use:     "tune DIR",
		Short:   "Search for the best settings of training, stopping bad trials early",
		Long:    tuneLong,
		Example: tuneExample,
		Args:    cobra.ArbitraryArgs, // the values of --over, and one folder
		RunE: func(c *cobra.Command, args []string) error {
			args = s.TakeValues(args)
			if err := arguments(1, 1, "one dataset folder")(c, args); err != nil {
				return err
			}
			s.Dataset = args[0]
			return tune(c, s)
		},
	}
	f := c.Flags()
	f.IntVar(&s.Trials, "trials", s.Trials, "choices of settings that are tried")
	f.IntVar(&s.Parallel, "parallel", s.Parallel, "trials side by side; each has --workers workers")
	f.IntVar(&s.Reduction, "reduction", s.Reduction, "one of this many trials goes on at each halving; 1: all are trained "+
		"to the end")
	f.StringArrayVar(&s.Over, "over", nil, "settings to search, as in --over lr=1e-4..1e-1 hidden=32,64,128")
	f.StringVar(&s.Space, "space", "", "a YAML file of settings to search, as lr: 1e-4..1e-1")
	f.StringVar(&s.HTML, "html", "", "write a page with the trials to this file")
	addTrainingFlags(f, s.Flags, notTuned)
	completeValues(c, settingValues())
	return c
}

func tune(c *cobra.Command, s spec.Tune) error {
	ctx, done := whileRead(c.Context())
	defer done()
	v := run.Silent(os.Stderr)
	if !s.Output.Quiet {
		v = run.NewSparseView(screen(s.Output.JSON), words(s.Output.JSON))
	}
	result, err := run.Tune(ctx, s, c.Flags().Changed, v)
	v.Close()
	if result == nil {
		return err
	}
	if s.Output.JSON != "-" || !s.Output.Quiet {
		fmt.Fprint(words(s.Output.JSON), "\n", result)
	}
	if s.HTML != "" {
		err = errors.Join(err, result.WriteHTML(s.HTML))
	}
	if s.Output.JSON != "" {
		err = errors.Join(err, result.Write(s.Output.JSON, stdout))
	}
	if errors.Is(err, run.ErrInterrupted) && !s.Output.Quiet {
		fmt.Fprintln(words(s.Output.JSON), "the same command goes on")
	}
	return err
}
