package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

const trainLong = `Train a model on a dataset folder, made by starling import or starling generate.

The labels decide what is learnt: one class per vertex, several (measured by
micro-averaged F1), or numbers (by R²). --task link and unsupervised need no labels:
docs/tasks.md.

Every setting can also be in a file given with --config, under the flag's name with
underscores (--weight-decay is weight_decay); flags win over the file. --dry-run prints
such a file, completed with defaults, and the plan: memory, and bytes that will be sent.

Ctrl-C finishes the epoch, saves a checkpoint if there is a --checkpoint-dir, writes the
requested output, and exits with status 130. --resume continues from the newest
checkpoint to exactly the result of an uninterrupted run.

Under srun, mpirun, mpiexec, torchrun or a Kubernetes indexed Job the same command runs in
every task, and each task is a worker: docs/launchers.md.`

const trainExample = `  # the settings of the GCN paper
  starling train cora --layers 2 --hidden 16 --weight-decay 5e-4 --decay-first --row-normalize --input-dropout

  # GraphSAGE with checkpoints; run the second line after an interruption
  starling train graph --model sage --norm batch --checkpoint-dir ck --json result.json
  starling train graph --model sage --norm batch --checkpoint-dir ck --json result.json --resume

  # link prediction, and embeddings without labels: docs/tasks.md
  starling train graph --task link --model sage --decoder mlp --mode mini --out links
  starling train graph --task unsupervised --model sage --mode mini --dropout 0 --out embed

  # ten seeds: mean ± deviation; a grid of settings, which --resume continues
  starling train cora --model gat --seeds 10
  starling train cora --sweep lr=0.1,0.01 hidden=64,256 --seeds 3 --checkpoint-dir sweep

  # continue from the weights of another run with other rates
  starling train graph --model sage --out first
  starling train graph --model sage --init-from first --lr 0.001 --out second

  # on four hosts of a Slurm cluster, one worker per host
  srun -N 4 starling train parts --json result.json

  # on a page while it goes on; the same page as a file, and curves for TensorBoard
  starling train graph --workers 4 --web
  starling train graph --workers 4 --html run.html --tensorboard curves/run

  # half the memory, a timeline, the report by class on a page, the best weights
  starling train graph --dtype bf16 --trace trace.json --html run.html --out run`

func trainCommand() *cobra.Command {
	several := spec.Sweep{Spec: spec.Default(), Seeds: 1}
	s := &several.Spec
	var config string
	var dry bool
	c := &cobra.Command{
		Use:     "train DIR",
		Short:   "Train a model on a dataset folder",
		Long:    trainLong,
		Example: trainExample,
		Args:    cobra.ArbitraryArgs, // the values of --sweep, and one folder
		RunE: func(c *cobra.Command, args []string) error {
			args = takeWebAddr(c, several.TakeValues(args))
			if err := arguments(0, 1, "one dataset folder")(c, args); err != nil {
				return err
			}
			if config != "" {
				if err := s.LoadFile(config, c.Flags()); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				s.Dataset = args[0]
			}
			switch {
			case dry && several.Several():
				return spec.Mistake("--dry-run", "it beside --sweep or --seeds", "the settings of one run",
					"leave out one of them")
			case several.Several() && s.Output.OneRun() != "":
				return spec.Mistake(s.Output.OneRun(), "it beside --sweep or --seeds", "one run to show", "leave it out")
			case dry:
				return dryRun(*s)
			case several.Several():
				return sweep(c, several)
			}
			return train(c, *s)
		},
	}
	s.Flags(c.Flags())
	c.Flags().StringVar(&config, "config", "", "read settings from this file (starling.yaml)")
	c.Flags().IntVar(&several.Seeds, "seeds", 1, "train with this many seeds, from --seed on: mean ± deviation")
	c.Flags().StringArrayVar(&several.Over, "sweep", nil, "train with each value of settings, as in --sweep "+
		"lr=0.1,0.01 hidden=64,256; with --checkpoint-dir, --resume continues")
	c.Flags().BoolVar(&dry, "dry-run", false, "print the settings and the plan, and stop")
	c.Flags().SortFlags = false
	shortHelp(c)
	completeValues(c, settingValues())
	return c
}

// takeWebAddr takes the address of --web from the arguments, where it stands alone before one: the flag may go without.
func takeWebAddr(c *cobra.Command, args []string) []string {
	f := c.Flags().Lookup("web")
	if !f.Changed || f.Value.String() != f.NoOptDefVal {
		return args
	}
	i := slices.IndexFunc(args, func(a string) bool {
		_, port, err := net.SplitHostPort(a)
		_, number := strconv.ParseUint(port, 10, 16)
		return err == nil && number == nil
	})
	if i < 0 {
		return args
	}
	f.Value.Set(args[i])
	return slices.Delete(slices.Clone(args), i, i+1)
}

func dryRun(s spec.Spec) error {
	full, plan, err := run.DryRun(s, run.Silent(os.Stderr))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(stdout, full.String()+plan.String())
	return err
}

// sweep trains with several seeds or settings, and writes the table, be it interrupted.
func sweep(c *cobra.Command, s spec.Sweep) error {
	place, err := run.PlaceOf(&s.Spec, os.Getenv)
	if err != nil {
		return err
	}
	if place != nil {
		return spec.Mistake("--sweep", "a run that a launcher starts", "one process that starts all runs",
			"start starling train without the launcher, or give it --launcher none")
	}
	ctx, done := whileRead(c.Context())
	defer done()
	v := run.Silent(os.Stderr)
	if !s.Output.Quiet {
		v = run.NewSparseView(screen(s.Output.JSON), words(s.Output.JSON))
	}
	result, err := run.Sweep(ctx, s, v)
	v.Close()
	if result == nil {
		return err
	}
	if s.Output.JSON != "-" || !s.Output.Quiet {
		fmt.Fprint(words(s.Output.JSON), "\n", result)
	}
	if s.Output.JSON != "" {
		err = errors.Join(err, result.Write(s.Output.JSON, stdout))
	}
	if errors.Is(err, run.ErrInterrupted) && !s.Output.Quiet {
		fmt.Fprintln(words(s.Output.JSON), run.HowToContinueSweep(&s, os.Args))
	}
	return errors.Join(err, result.Err())
}

// train runs s and writes its report.
func train(c *cobra.Command, s spec.Spec) error {
	place, err := run.PlaceOf(&s, os.Getenv)
	if err != nil {
		return err
	}
	ctx, done := whileRead(c.Context())
	defer done()
	v := view(s.Output.Quiet || place != nil && place.Rank > 0, s.Output.JSON)
	report, err := run.TrainAt(ctx, s, place, v)
	v.Close()
	if report == nil {
		return err
	}
	if report.Strategy != "none" && !s.Output.Quiet {
		fmt.Fprint(words(s.Output.JSON), report.Traffic())
	}
	if !s.Output.Quiet {
		fmt.Fprint(words(s.Output.JSON), report.Classes())
	}
	if s.Output.JSON != "" {
		err = errors.Join(err, report.Write(s.Output.JSON, stdout))
	}
	if s.Output.HTML != "" {
		err = errors.Join(err, report.WriteHTML(s.Output.HTML))
	}
	if err == nil && report.Reason == "interrupted" {
		if !s.Output.Quiet {
			fmt.Fprintln(words(s.Output.JSON), run.HowToContinue(&s, os.Args))
		}
		return run.ErrInterrupted
	}
	return err
}
