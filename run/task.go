package run

import (
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
)

// checkTask checks the name of the task; whether the data is fit for it, settleTask.
func (s *Spec) checkTask() error {
	known := append([]string{"auto"}, nn.Tasks...)
	if !slices.Contains(known, s.Task) {
		return mistake("--task", fmt.Sprintf("%q", s.Task), "one of "+strings.Join(known, ", "), suggest(s.Task, known))
	}
	if s.ofPairs() {
		return s.oneWorker("--task", s.Task, "pairs")
	}
	return nil
}

// oneWorker refuses several workers for a setting that is of one, and names what made it
// several.
func (s *Spec) oneWorker(flag, value, what string) error {
	later := ": " + what + " on several workers are not available yet in this version"
	switch dir := s.partitionFolder(); {
	case !s.distributed():
		return nil
	case dir != "":
		return mistake(flag, fmt.Sprintf("%s with %s, a partition", value, dir), "one worker, and a dataset folder", "give the dataset that it was cut from"+later)
	case s.NoLaunch:
		return mistake(flag, fmt.Sprintf("%s with %d workers that are started elsewhere", value, s.Workers), "one worker", "start a single task, or give --launcher none"+later)
	case s.Workers > 1:
		return mistake(flag, fmt.Sprintf("%s with %d workers", value, s.Workers), "one worker", "leave out --workers, --hosts and --strategy"+later)
	}
	return mistake(flag, fmt.Sprintf("%s with --strategy %s", value, s.Strategy), "no strategy", "leave it out"+later)
}

// ofVertices tells whether vertices are predicted, from their labels.
func (s *Spec) ofVertices() bool {
	return s.Task != nn.TaskLink && s.Task != nn.TaskUnsupervised
}

// settleTask finds out what auto is, and refuses a task that the labels are not for.
func (s *Spec) settleTask(data *graph.Meta) error {
	if !s.ofVertices() {
		return nil
	}
	is := nn.TaskOf(data.Task)
	if s.Task == "auto" {
		s.Task = is
	}
	if s.Task != is {
		return mistake("--task", s.Task, fmt.Sprintf("%s, which the labels of %s are for (%s)", is, data.Name, data.Task), "leave out --task, or import the dataset with other labels")
	}
	return nil
}

// outputs is how many numbers the model gives for a vertex.
func (s *Spec) outputs(data *graph.Meta) int {
	if s.ofPairs() {
		return s.Embedding
	}
	return data.Classes
}

// taskOnPaper is the task without its labels, to plan with.
func (s *Spec) taskOnPaper(outputs int) nn.Task {
	switch s.Task {
	case nn.TaskMultiLabel:
		return nn.MultiLabel{}
	case nn.TaskRegression:
		return nn.Regress{Targets: outputs}
	}
	return nn.Classify{}
}

// Measures are a task's own measures of the test split after the best epoch. Those of
// other tasks are left out.
type Measures struct {
	MicroF1 *Number `json:"micro_f1,omitempty"` // multilabel
	R2      *Number `json:"r2,omitempty"`       // regression
	MSE     *Number `json:"mse,omitempty"`
	AUC     *Number `json:"auc,omitempty"` // link, unsupervised
	MRR     *Number `json:"mrr,omitempty"`
	// Hits are by k: how many of the ranks are at most that.
	Hits map[string]Number `json:"hits,omitempty"`
}

// measuresOf picks them by name.
func measuresOf(m map[string]float64) (out Measures) {
	for name, to := range map[string]**Number{"micro_f1": &out.MicroF1, "r2": &out.R2, "mse": &out.MSE, "auc": &out.AUC, "mrr": &out.MRR} {
		if x, ok := m[name]; ok {
			n := Number(x)
			*to = &n
		}
	}
	for name, x := range m {
		if k, ok := strings.CutPrefix(name, "hits@"); ok {
			if out.Hits == nil {
				out.Hits = map[string]Number{}
			}
			out.Hits[k] = Number(x)
		}
	}
	return out
}
