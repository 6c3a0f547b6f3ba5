package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"starling/run"
)

func trainCommand() *cobra.Command {
	spec := run.Default()
	var config string
	var dry bool
	c := &cobra.Command{
		Use:   "train DIR",
		Short: "Train a model on a dataset folder",
		Long: `Train a model on a dataset folder, made by starling import or starling generate.

What is learnt follows from the labels: a class a vertex, several (by micro-averaged
F1), or numbers (by R²). --task link and unsupervised need no labels: docs/tasks.md.

Every setting can also stand in a file given with --config, under the flag's name
with underscores (--weight-decay is weight_decay); flags win over the file.
--dry-run prints such a file, completed with defaults, and what the run will need.

Ctrl-C finishes the epoch, saves a checkpoint if --checkpoint-dir is given, writes
what was asked for, and exits with status 130. --resume goes on from the latest
checkpoint to exactly the result of an undisturbed run.

Under srun, mpirun, mpiexec, torchrun or a Kubernetes indexed Job the same command
runs in every task, and each is a worker: docs/launchers.md.`,
		Example: `  # the GCN paper's setting
  starling train cora --layers 2 --hidden 16 --weight-decay 5e-4 --decay-first --row-normalize --input-dropout

  # GraphSAGE with checkpoints; run the second line after an interruption
  starling train graph --model sage --norm batch --checkpoint-dir ck --json result.json
  starling train graph --model sage --norm batch --checkpoint-dir ck --json result.json --resume

  # which vertices are linked, and embeddings without labels: docs/tasks.md
  starling train graph --task link --model sage --decoder mlp --mode mini --out links
  starling train graph --task unsupervised --model sage --mode mini --dropout 0 --out embed

  # on four hosts of a Slurm cluster, a worker each
  srun -N 4 starling train parts --json result.json

  # half the memory, a timeline, the best weights
  starling train graph --dtype bf16 --trace trace.json --out run`,
		Args: arguments(0, 1, "one dataset folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if config != "" {
				if err := spec.LoadFile(config, c.Flags()); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				spec.Dataset = args[0]
			}
			if dry {
				return dryRun(spec)
			}
			return train(c, spec)
		},
	}
	spec.Flags(c.Flags())
	c.Flags().StringVar(&config, "config", "", "read settings from this file (starling.yaml)")
	c.Flags().BoolVar(&dry, "dry-run", false, "print the settings and the plan, and stop")
	c.Flags().SortFlags = false
	return c
}

func dryRun(spec run.Spec) error {
	full, plan, err := run.DryRun(spec, run.Silent(os.Stderr))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(stdout, full.String()+plan.String())
	return err
}

// train runs spec and writes its report.
func train(c *cobra.Command, spec run.Spec) error {
	place, err := run.PlaceOf(&spec, os.Getenv)
	if err != nil {
		return err
	}
	ctx, done := whileRead(c.Context())
	defer done()
	v := view(spec.Quiet || place != nil && place.Rank > 0, spec.JSON)
	report, err := run.TrainAt(ctx, spec, place, v)
	v.Close()
	if report == nil {
		return err
	}
	if report.Strategy != "none" && !spec.Quiet {
		fmt.Fprint(words(spec.JSON), report.Traffic())
	}
	if spec.JSON != "" {
		err = errors.Join(err, report.Write(spec.JSON, stdout))
	}
	if err == nil && report.Reason == "interrupted" {
		return run.ErrInterrupted
	}
	return err
}
