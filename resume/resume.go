package resume

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/report"
	"starling/spec"
	"starling/tensor/cpu/simd"
	"starling/train"
)

// Start is a state to start from, with the caches of all workers.
type Start struct {
	*train.State
	OwnCaches   [][]byte // safetensors, by rank
	PartitionID string   // the id of the one that they are of
	Spec        *spec.Spec
	Folder      string // of the checkpoint; "": there is none
}

// Trained is the state itself; nil: there is none.
func (s *Start) Trained() *train.State {
	if s == nil {
		return nil
	}
	return s.State
}

// Saved is the spec as a checkpoint has it, with the identity of the data.
type Saved struct {
	spec.Spec
	Identity
}

// MarshalJSON is both in one object.
func (s Saved) MarshalJSON() ([]byte, error) {
	settings, err := json.Marshal(s.Spec)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(s.Identity)
	if err != nil {
		return nil, err
	}
	return append(append(settings[:len(settings)-1], ','), data[1:]...), nil
}

func (s *Saved) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &s.Identity); err != nil {
		return err
	}
	return json.Unmarshal(b, &s.Spec)
}

// History is train.History in JSON, where numbers may be unknown.
type History struct {
	Loss         []report.Number          `json:"loss"`
	EpochSeconds []report.Number          `json:"epoch_seconds"`
	Measured     []int                    `json:"measured"`
	Train        []report.Number          `json:"train"`
	Val          []report.Number          `json:"val"`
	Test         []report.Number          `json:"test"`
	BestEpoch    int                      `json:"best_epoch"`
	Measures     map[string]report.Number `json:"measures,omitempty"`
	// Of the epoch that is under way.
	Partial []report.Number `json:"partial,omitempty"`
	Seconds report.Number   `json:"seconds,omitempty"`
}

// positionOf is how far a state is.
func positionOf(st *train.State) cluster.Position {
	return cluster.Position{Epoch: st.Epoch, Batch: st.Batch}
}

// historyIn is what was measured until a state, also of the epoch that is under way.
func historyIn(st *train.State) History {
	h := NewHistory(&st.History)
	if st.Batch > 0 {
		h.Partial, h.Seconds = report.Numbers(st.Partial), report.Number(st.Seconds)
	}
	return h
}

// state is the inverse of historyIn.
func (h *History) state(at cluster.Position) *train.State {
	st := &train.State{Epoch: at.Epoch, Batch: at.Batch, History: h.Floats()}
	if at.Batch > 0 {
		st.Partial, st.Seconds = report.Floats(h.Partial), float64(h.Seconds)
	}
	return st
}

func NewHistory(h *train.History) History {
	return History{Loss: report.Numbers(h.Loss), EpochSeconds: report.Numbers(h.EpochSeconds), Measured: h.Measured,
		Train: report.Numbers(h.Train), Val: report.Numbers(h.Val), Test: report.Numbers(h.Test),
		BestEpoch: h.BestEpoch, Measures: report.Convert[float64, report.Number](h.Measures)}
}

func (h *History) Floats() train.History {
	return train.History{Loss: report.Floats(h.Loss), EpochSeconds: report.Floats(h.EpochSeconds), Measured: h.Measured,
		Train: report.Floats(h.Train), Val: report.Floats(h.Val), Test: report.Floats(h.Test),
		BestEpoch: h.BestEpoch, Measures: report.Convert[report.Number, float64](h.Measures)}
}

// ToCheckpoint is the state of a run as it is on disk.
func ToCheckpoint(s *spec.Spec, data Identity, st *train.State) (*cluster.Checkpoint, error) {
	settings, err := json.Marshal(Saved{*s, data})
	if err != nil {
		return nil, err
	}
	hist, err := json.Marshal(historyIn(st))
	if err != nil {
		return nil, err
	}
	c := &cluster.Checkpoint{Position: positionOf(st), Steps: st.Steps, Spec: settings, History: hist,
		Groups: map[string][]nn.Tensor{"model": st.Model, "optimiser": st.Optim}}
	if st.Best != nil {
		c.Groups["best"] = st.Best
	}
	return c, nil
}

// FromCheckpoint is the inverse of ToCheckpoint.
func FromCheckpoint(c *cluster.Checkpoint) (*train.State, *Saved, error) {
	before := Saved{Spec: spec.Default()}
	var h History
	if err := json.Unmarshal(c.Spec, &before); err != nil {
		return nil, nil, fmt.Errorf("the checkpoint's spec: %w", err)
	}
	if err := json.Unmarshal(c.History, &h); err != nil {
		return nil, nil, fmt.Errorf("the checkpoint's history: %w", err)
	}
	if n := len(h.Measured); len(h.Loss) != c.Epoch || len(h.Train) != n || len(h.Val) != n || len(h.Test) != n {
		return nil, nil, fmt.Errorf("the checkpoint's history has %d losses and %d, %d, %d accuracies for %d epochs, "+
			"%d of them evaluated", len(h.Loss), len(h.Train), len(h.Val), len(h.Test), c.Epoch, n)
	}
	st := h.state(c.Position)
	st.Steps, st.Model, st.Optim, st.Best = c.Steps, c.Groups["model"], c.Groups["optimiser"], c.Groups["best"]
	return st, &before, nil
}

// resumeFrom reads the newest checkpoint and makes sure that it is of this run. It sets what is
// auto in s as it was then, so that the continuation computes the same numbers.
func resumeFrom(s *spec.Spec, data Identity, events event.Listener) (*Start, error) {
	warn := func(text string) { events.On(event.Note{Text: "warning: " + text}) }
	c, err := Latest(s.Checkpoints.Dir, warn)
	if errors.Is(err, cluster.ErrNoCheckpoint) {
		return nil, spec.Mistake("--resume", graph.Sentence(err.Error()), "a checkpoint of this run",
			"check --checkpoint-dir, or start without --resume")
	}
	if err != nil {
		return nil, err
	}
	st, before, err := FromCheckpoint(c)
	if err != nil {
		return nil, err
	}
	if err := before.Identity.SameAs(data); err != nil {
		return nil, err
	}
	SetAutoAsBefore(s, &before.Spec, warn)
	if err := s.SameRun(&before.Spec); err != nil {
		return nil, err
	}
	if s.Training.Epochs < st.Epoch {
		return nil, spec.Mistake("--epochs", fmt.Sprint(s.Training.Epochs),
			fmt.Sprintf("at least the %d that the checkpoint has trained", st.Epoch), "")
	}
	from := &Start{State: st, PartitionID: before.PartitionID, Spec: &before.Spec,
		Folder: c.Folder(s.Checkpoints.Dir)}
	for r := 0; ; r++ {
		list, ok := c.Files[CachesFile(r)]
		if !ok {
			return from, nil
		}
		from.OwnCaches = append(from.OwnCaches, list)
	}
}

// SetAutoAsBefore sets what is auto as in the run before, as far as this processor can.
func SetAutoAsBefore(s, before *spec.Spec, warn func(string)) {
	if before.Task == "auto" { // of a version with one task only
		before.Task = nn.TaskClassify
	}
	if before.Objective.Metric == "auto" && s.Objective.Metric != "auto" { // of a version that had the task's alone
		before.Objective.Metric = nn.MetricNames(before.Task)[0]
	}
	if before.Objective.StandardizeTargets == spec.ToggleAuto { // of a version that did not
		before.Objective.StandardizeTargets = spec.Off
	}
	if s.Machine.CacheFirst == "auto" {
		s.Machine.CacheFirst = before.Machine.CacheFirst
	}
	if s.Machine.SIMD != "auto" {
		return
	}
	if level, err := simd.ParseLevel(before.Machine.SIMD); err == nil && level > simd.Supported() {
		before.Machine.SIMD = simd.Supported().String()
		warn(fmt.Sprintf("the checkpoint was computed with %v, which this processor lacks: results will differ in the "+
			"last digits", level))
	}
	s.Machine.SIMD = before.Machine.SIMD
}

// Shards are the files of OwnCaches, by rank.
func (s *Start) Shards() (paths []string) {
	for r := range s.OwnCaches {
		paths = append(paths, filepath.Join(s.Folder, CachesFile(r)+".safetensors"))
	}
	return paths
}

// CachesFile names the caches of a rank on disk.
func CachesFile(rank int) string { return fmt.Sprintf("caches-%d", rank) }
