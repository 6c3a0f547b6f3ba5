package run

import (
	"context"
	"fmt"
	"io"
	"strings"

	"starling/event"
)

// EpochBench is the time of epochs of several models, each in several storage types.
type EpochBench struct {
	Dataset string          `json:"dataset"`
	Rows    []EpochBenchRow `json:"rows"`
}

// EpochBenchRow is one model in one storage type.
type EpochBenchRow struct {
	Model           string  `json:"model"`
	DType           string  `json:"dtype"`
	Seconds         Number  `json:"seconds"` // the median epoch
	Ratio           Number  `json:"ratio"`   // of the model's first type's time to this one's
	EdgesPerSecond  float64 `json:"edges_per_second"`
	DevicePeakBytes int64   `json:"device_peak_bytes"`
}

// BenchEpochs times a few epochs of each model and type, without measurements of
// accuracy. Types of one model run right after each other, so that their ratio
// means something on a noisy machine.
func BenchEpochs(ctx context.Context, s Spec, models, dtypes []string, events event.Listener) (*EpochBench, error) {
	out := &EpochBench{}
	s.EvalEvery = 0
	for _, model := range models {
		var first Number
		for _, dtype := range dtypes {
			s.Model, s.DType = model, dtype
			r, err := Train(ctx, s, event.Func(func(e event.Event) {
				if n, ok := e.(event.Note); ok && events != nil {
					events.On(n)
				}
			}))
			if err != nil {
				return nil, err
			}
			if r.Reason == "interrupted" {
				return out, ErrInterrupted
			}
			if dtype == dtypes[0] {
				first = r.MedianEpochSeconds
			}
			out.Dataset = r.Dataset
			out.Rows = append(out.Rows, EpochBenchRow{Model: model, DType: dtype, Seconds: r.MedianEpochSeconds, Ratio: first / r.MedianEpochSeconds,
				EdgesPerSecond: float64(r.Edges) / float64(r.MedianEpochSeconds), DevicePeakBytes: r.DevicePeakBytes})
		}
	}
	return out, nil
}

// JSON writes the times as one object, to a file or with "-" to stdout.
func (b *EpochBench) JSON(path string, stdout io.Writer) error { return writeJSON(b, path, stdout) }

// String is a table for people.
func (b *EpochBench) String() string {
	var t strings.Builder
	fmt.Fprintf(&t, "%-10s %-6s %12s %8s %14s %12s\n", "model", "dtype", "seconds", "ratio", "edges/s", "memory")
	for _, r := range b.Rows {
		fmt.Fprintf(&t, "%-10s %-6s %12.4f %7.2fx %14s %12s\n", r.Model, r.DType, float64(r.Seconds), float64(r.Ratio),
			event.Count(int64(r.EdgesPerSecond)), event.Bytes(r.DevicePeakBytes))
	}
	return t.String()
}
