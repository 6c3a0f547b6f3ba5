package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/tensor/simd"
	"starling/train"
)

// saved is the spec as a checkpoint keeps it, with marks of the data it was run on.
type saved struct {
	Spec
	Data dataMark `json:"data"`
	Cut  string   `json:"cut,omitempty"` // the partition's id, of several workers
}

// dataMark tells datasets apart.
type dataMark struct {
	Nodes    int64  `json:"nodes"`
	Edges    int64  `json:"edges"`
	Checksum string `json:"checksum"` // of meta.json, which holds those of the arrays
}

func markOf(d *graph.Meta) dataMark { return dataMark{d.Nodes, d.Edges, d.CRC32C} }

// differs tells datasets apart as far as is known: a partition does not know the
// checksum of the dataset it was made from.
func (m dataMark) differs(o dataMark) bool {
	return m.Nodes != o.Nodes || m.Edges != o.Edges || m.Checksum != o.Checksum && m.Checksum != "" && o.Checksum != ""
}

// history is train.History in JSON, where numbers may be unknown.
type history struct {
	Loss         []Number          `json:"loss"`
	EpochSeconds []Number          `json:"epoch_seconds"`
	Measured     []int             `json:"measured"`
	Train        []Number          `json:"train"`
	Val          []Number          `json:"val"`
	Test         []Number          `json:"test"`
	BestEpoch    int               `json:"best_epoch"`
	Measures     map[string]Number `json:"measures,omitempty"`
}

func historyOf(h *train.History) history {
	return history{Loss: numbers(h.Loss), EpochSeconds: numbers(h.EpochSeconds), Measured: h.Measured,
		Train: numbers(h.Train), Val: numbers(h.Val), Test: numbers(h.Test), BestEpoch: h.BestEpoch,
		Measures: convert[float64, Number](h.Measures)}
}

func (h *history) floats() train.History {
	return train.History{Loss: floats(h.Loss), EpochSeconds: floats(h.EpochSeconds), Measured: h.Measured,
		Train: floats(h.Train), Val: floats(h.Val), Test: floats(h.Test), BestEpoch: h.BestEpoch,
		Measures: convert[Number, float64](h.Measures)}
}

// convert has the same numbers in another type.
func convert[A, B float64 | Number](m map[string]A) map[string]B {
	out := make(map[string]B, len(m))
	for k, x := range m {
		out[k] = B(x)
	}
	return out
}

// toCheckpoint is the state of a run as the disk keeps it.
func toCheckpoint(s *Spec, mark dataMark, cut string, st *train.State) (*cluster.Checkpoint, error) {
	h := &st.History
	spec, err := json.Marshal(saved{*s, mark, cut})
	if err != nil {
		return nil, err
	}
	hist, err := json.Marshal(historyOf(h))
	if err != nil {
		return nil, err
	}
	c := &cluster.Checkpoint{Epoch: st.Epoch, Steps: st.Steps, Spec: spec, History: hist, Groups: map[string][]tensors{"model": st.Model, "optimiser": st.Optim}}
	if st.Best != nil {
		c.Groups["best"] = st.Best
	}
	return c, nil
}

// fromCheckpoint is the way back.
func fromCheckpoint(c *cluster.Checkpoint) (*train.State, *saved, error) {
	spec := saved{Spec: Default()}
	var h history
	if err := json.Unmarshal(c.Spec, &spec); err != nil {
		return nil, nil, fmt.Errorf("the checkpoint's spec: %w", err)
	}
	if err := json.Unmarshal(c.History, &h); err != nil {
		return nil, nil, fmt.Errorf("the checkpoint's history: %w", err)
	}
	if n := len(h.Measured); len(h.Loss) != c.Epoch || len(h.Train) != n || len(h.Val) != n || len(h.Test) != n {
		return nil, nil, fmt.Errorf("the checkpoint's history has %d losses and %d, %d, %d accuracies for %d epochs, %d of them measured",
			len(h.Loss), len(h.Train), len(h.Val), len(h.Test), c.Epoch, n)
	}
	return &train.State{Epoch: c.Epoch, Steps: c.Steps, Model: c.Groups["model"], Optim: c.Groups["optimiser"], Best: c.Groups["best"],
		History: h.floats()}, &spec, nil
}

// continueFrom reads the latest checkpoint and makes sure that it is of this run.
// It settles s.CacheFirst and s.SIMD as they were, so that the numbers go on the same.
func (s *Spec) continueFrom(data *graph.Meta, events event.Listener) (*start, error) {
	c, err := cluster.Latest(s.CheckpointDir, func(text string) { events.On(event.Note{Text: "warning: " + text}) })
	if errors.Is(err, cluster.ErrNoCheckpoint) {
		return nil, mistake("--resume", err.Error(), "a checkpoint of this run", "check --checkpoint-dir, or start without --resume")
	}
	if err != nil {
		return nil, err
	}
	st, before, err := fromCheckpoint(c)
	if err != nil {
		return nil, err
	}
	if before.Data.differs(markOf(data)) {
		return nil, mistake("--resume", fmt.Sprintf("a checkpoint of another dataset (%s, %s, checksum %s)", event.Counted(before.Data.Nodes, "vertex"), event.Counted(before.Data.Edges, "edge"), before.Data.Checksum),
			fmt.Sprintf("%s, %s, checksum %s", event.Counted(data.Nodes, "vertex"), event.Counted(data.Edges, "edge"), data.CRC32C), "give the dataset or the --checkpoint-dir of that run")
	}
	if before.Task == "auto" { // of a version that knew one task
		before.Task = nn.TaskClassify
	}
	if s.CacheFirst == "auto" {
		s.CacheFirst = before.CacheFirst
	}
	if s.SIMD == "auto" {
		s.SIMD = before.SIMD
		if level, err := simd.ParseLevel(before.SIMD); err == nil && level > simd.Supported() {
			s.SIMD = simd.Supported().String()
			before.SIMD = s.SIMD
			events.On(event.Note{Text: fmt.Sprintf("warning: the checkpoint was computed with %v, which this processor lacks: results will differ in the last digits", level)})
		}
	}
	if err := s.sameAs(&before.Spec); err != nil {
		return nil, err
	}
	if s.Epochs < st.Epoch {
		return nil, mistake("--epochs", fmt.Sprint(s.Epochs), fmt.Sprintf("at least the %d that the checkpoint has done", st.Epoch), "")
	}
	from := &start{State: st, cut: before.Cut, spec: &before.Spec}
	for r := 0; ; r++ {
		list, ok := c.Files[cachesOf(r)]
		if !ok {
			return from, nil
		}
		from.caches = append(from.caches, list)
	}
}

// sameAs names the first setting that would make the continuation another run. Another
// strategy may go on, with settings of its own.
func (s *Spec) sameAs(before *Spec) error {
	old, sameStrategy := before.fields(), s.strategyName() == before.strategyName()
	for i, f := range s.fields() {
		free := f.free || !sameStrategy && (settingsOf[f.name] != nil || f.name == "wire_dtype")
		if !free && !reflect.DeepEqual(f.value.Interface(), old[i].value.Interface()) {
			given := func(f field) string { return cmp.Or(fmt.Sprint(f.value), "none") }
			return mistake(f.flag(), given(f), given(old[i])+", as the checkpoint in --checkpoint-dir was trained with",
				"give the same setting, or another --checkpoint-dir without --resume")
		}
	}
	return nil
}
