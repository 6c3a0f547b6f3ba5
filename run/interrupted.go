package run

import (
	"slices"

	"starling/cluster"
	"starling/spec"
)

// HowToContinue says how a run that was interrupted goes on: by which command, given the one that started it; or why
// it does not.
func HowToContinue(s *spec.Spec, args []string) string {
	list, err := cluster.Checkpoints(s.Checkpoints.Dir)
	switch {
	case s.Checkpoints.Dir == "":
		return "no state was saved to go on from: with --checkpoint-dir DIR a run can be resumed"
	case err != nil || len(list) == 0:
		return "no checkpoint is in " + s.Checkpoints.Dir + ": the run starts from the beginning"
	}
	return goingOn(s, args)
}

// HowToContinueSweep is the same of a sweep, whose runs have a folder each: those that had not ended go on.
func HowToContinueSweep(s *spec.Sweep, args []string) string {
	if s.Checkpoints.Dir == "" {
		return "no run was saved to go on from: with --checkpoint-dir DIR a sweep can be resumed"
	}
	return goingOn(&s.Spec, args)
}

// goingOn is the command that goes on, given the one that was interrupted.
func goingOn(s *spec.Spec, args []string) string {
	if !s.Checkpoints.ResumeIfAny && !slices.Contains(args, "--resume") {
		args = append(slices.Clone(args), "--resume")
	}
	return "to go on: " + commandOf(args)
}
