package bench

import (
	"context"
	"fmt"
	"io"
	"strings"

	"starling/event"
	"starling/report"
	"starling/spec"
)

// Epochs is the time of epochs of several models, each in several storage types.
type Epochs struct {
	Dataset string     `json:"dataset"`
	Rows    []EpochRow `json:"rows"`
}

// EpochRow is one model in one storage type.
type EpochRow struct {
	Model           string        `json:"model"`
	DType           string        `json:"dtype"`
	Seconds         report.Number `json:"seconds"` // the median epoch
	Ratio           report.Number `json:"ratio"`   // of the time of the model's first type to this one's
	EdgesPerSecond  float64       `json:"edges_per_second"`
	DevicePeakBytes int64         `json:"device_peak_bytes"`
}

// Train trains as a spec says.
type Train func(context.Context, spec.Spec, event.Listener) (*report.Run, error)

// TimeEpochs times a few epochs per model and type, without evaluations. The types of one
// model run right after each other.
func TimeEpochs(ctx context.Context, s spec.Spec, models, dtypes []string, train Train, events event.Listener) (
	*Epochs, error) {
	out := &Epochs{}
	s.Training.EvalEvery = 0
	for _, model := range models {
		var first report.Number
		for _, dtype := range dtypes {
			s.Model.Name, s.Machine.DType = model, dtype
			r, err := train(ctx, s, onlyNotes(events))
			if err != nil {
				return nil, err
			}
			if r.Reason == "interrupted" {
				return out, report.ErrInterrupted
			}
			if dtype == dtypes[0] {
				first = r.MedianEpochSeconds
			}
			out.Dataset = r.Dataset
			out.Rows = append(out.Rows, newEpochRow(model, dtype, first, r))
		}
	}
	return out, nil
}

func newEpochRow(model, dtype string, first report.Number, r *report.Run) EpochRow {
	return EpochRow{Model: model, DType: dtype, Seconds: r.MedianEpochSeconds, Ratio: first / r.MedianEpochSeconds,
		EdgesPerSecond: float64(r.Edges) / float64(r.MedianEpochSeconds), DevicePeakBytes: r.DevicePeakBytes}
}

// onlyNotes leaves out all other events; l may be nil.
func onlyNotes(l event.Listener) event.Listener {
	return event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && l != nil {
			l.On(n)
		}
	})
}

// JSON writes the times as one object, to a file or for "-" to stdout.
func (b *Epochs) JSON(path string, stdout io.Writer) error { return report.WriteJSON(b, path, stdout) }

// String is the times as a table.
func (b *Epochs) String() string {
	var t strings.Builder
	fmt.Fprintf(&t, "%-10s %-6s %12s %8s %14s %12s\n", "model", "dtype", "seconds", "ratio", "edges/s", "memory")
	for _, r := range b.Rows {
		fmt.Fprintf(&t, "%-10s %-6s %12.4f %7.2fx %14s %12s\n", r.Model, r.DType, float64(r.Seconds),
			float64(r.Ratio), event.Count(int64(r.EdgesPerSecond)), event.Bytes(r.DevicePeakBytes))
	}
	return t.String()
}
