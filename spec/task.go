package spec

import (
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/train"
)

// LearnsPairs reports whether the run learns from pairs of vertices (link, unsupervised)
// instead of the labels of vertices.
func (s *Spec) LearnsPairs() bool { return s.Task == nn.TaskLink || s.Task == nn.TaskUnsupervised }

// checkTask checks the task's workers; whether the labels are for the task, ForLabels.
func (s *Spec) checkTask() error {
	if s.learnsRelations() {
		return nil // train.Check knows which strategies have pairs of relations
	}
	if s.LearnsPairs() && s.Mode == "full" {
		return s.oneWorker("--task", s.Task+" with --mode full", "pairs of the whole graph", "use --mode mini")
	}
	if c, err := s.Choice(); s.LearnsPairs() && err == nil && c.Descriptor != nil && !c.Descriptor.Pairs {
		return apart(c.Name(), "--task "+s.Task, "it learns from labels of vertices, not from pairs",
			train.NamesOfPairs())
	}
	return nil
}

// oneWorker refuses several workers for a setting that works with one, and names the flag
// that made it several.
func (s *Spec) oneWorker(flag, value, what, instead string) error {
	const one = "one worker"
	later := ": " + what + " are for one worker"
	if instead != "" {
		later += "; " + instead + " with several"
	}
	switch dir := s.PartitionFolder(); {
	case !s.Distributed():
		return nil
	case dir != "":
		return Mistake(flag, fmt.Sprintf("%s with %s, a partition", value, dir), "one worker, and a dataset folder",
			"give the dataset that it was cut from"+later)
	case s.Launch.NoLaunch:
		return Mistake(flag, fmt.Sprintf("%s with %s that are started elsewhere", value,
			event.Tally(s.Cluster.Workers, "worker")),
			one, "start a single task, or give --launcher none"+later)
	case s.Cluster.Workers > 1:
		return Mistake(flag, fmt.Sprintf("%s with %s", value, event.Tally(s.Cluster.Workers, "worker")), one,
			"leave out --workers, --hosts and --strategy"+later)
	}
	return Mistake(flag, fmt.Sprintf("%s with --strategy %s", value, s.Strategy), "no strategy", "leave it out"+later)
}

// ForLabels sets a task of auto as the dataset's labels say, and refuses a task that they are
// not for.
func (s *Spec) ForLabels(data *graph.Meta) error {
	if s.LearnsPairs() {
		return s.forLabels(data)
	}
	is := nn.TaskOf(data.Task)
	if s.Task == "auto" {
		s.Task = is
	}
	if s.Task != is {
		want := fmt.Sprintf("%s, which the labels of %s are for (%s)", is, data.Name, data.Task)
		return Mistake("--task", s.Task, want, "leave out --task, or import the dataset with other labels")
	}
	return s.forLabels(data)
}

// outputs is how many numbers the model computes per vertex.
func (s *Spec) outputs(data *graph.Meta) int {
	if s.LearnsPairs() {
		return s.Pairs.Embedding
	}
	return data.Classes
}
