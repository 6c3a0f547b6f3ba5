package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/report"
	"starling/spec"
)

// Partitions is several methods on one graph.
type Partitions struct {
	Dataset string         `json:"dataset"`
	Parts   int            `json:"parts"`
	Rows    []PartitionRow `json:"rows"`
}

// PartitionRow is one method; ratios are to the first that worked.
type PartitionRow struct {
	Method      string             `json:"method"`
	Seconds     float64            `json:"seconds"`
	EdgeCut     int64              `json:"edge_cut"`
	CommVolume  int64              `json:"comm_volume"`
	Balance     map[string]float64 `json:"balance,omitempty"`
	EpochBytes  int64              `json:"epoch_bytes"`
	TimeRatio   float64            `json:"time_ratio"`
	CutRatio    float64            `json:"cut_ratio"`
	VolumeRatio float64            `json:"volume_ratio"`
	Failed      string             `json:"failed,omitempty"` // why there are no figures
}

// TimePartitions partitions the dataset in dir by each method, without writing the parts, and
// writes a line per method to out. A method that needs a library that this host lacks (metis)
// has a line that says so.
func TimePartitions(ctx context.Context, dir string, s spec.Partition, methods []string, out io.Writer) (
	*Partitions, error) {
	for _, s.Method = range methods {
		if _, err := s.Options(); err != nil {
			return nil, err
		}
	}
	b := &Partitions{}
	for _, s.Method = range methods {
		r, err := runPartition(ctx, dir, &s)
		var in *graph.InputError
		switch {
		case errors.Is(err, report.ErrInterrupted):
			return b, err
		case err != nil && s.Method == "metis" && errors.As(err, &in), errors.Is(err, partition.ErrNoEngine):
			b.Rows = append(b.Rows, PartitionRow{Method: s.Method, Failed: err.Error()})
			fmt.Fprintf(out, "%-11s %v\n", s.Method, err)
			continue
		case err != nil:
			return nil, err
		}
		if b.Parts == 0 {
			fmt.Fprintf(out, "%-11s %10s %8s %14s %8s %14s %8s %9s %14s\n", "method", "seconds", "ratio", "edge cut",
				"ratio", "volume", "ratio", "balance", "epoch sends")
		}
		b.Dataset, b.Parts = r.Dataset, r.Parts
		fmt.Fprint(out, b.add(r))
	}
	return b, nil
}

func runPartition(ctx context.Context, dir string, s *spec.Partition) (*partition.Report, error) {
	opt, err := s.Options()
	if err != nil {
		return nil, err
	}
	r, err := partition.Run(ctx, dir, opt)
	if errors.Is(err, context.Canceled) {
		return nil, report.ErrInterrupted
	}
	return r, spec.PartitionMistake(err)
}

// add adds a method's figures, and their ratios to the first's.
func (b *Partitions) add(r *partition.Report) PartitionRow {
	row := PartitionRow{Method: r.Method, Seconds: r.Seconds, EdgeCut: r.EdgeCut, CommVolume: r.CommVolume,
		Balance: r.Balance, EpochBytes: r.Plan.EpochBytes}
	first := row
	if i := slices.IndexFunc(b.Rows, func(r PartitionRow) bool { return r.Failed == "" }); i >= 0 {
		first = b.Rows[i]
	}
	row.TimeRatio = row.Seconds / first.Seconds
	row.CutRatio = ratio(row.EdgeCut, first.EdgeCut)
	row.VolumeRatio = ratio(row.CommVolume, first.CommVolume)
	b.Rows = append(b.Rows, row)
	return row
}

// ratio of counts is 1 where both are 0.
func ratio(a, b int64) float64 {
	if a == b {
		return 1
	}
	return float64(a) / float64(max(b, 1))
}

// String is the row of a table.
func (r PartitionRow) String() string {
	worst := 1.0
	for _, x := range r.Balance {
		worst = max(worst, x)
	}
	return fmt.Sprintf("%-11s %10.3f %7.2fx %14s %7.2fx %14s %7.2fx %9.3f %14s\n", r.Method, r.Seconds, r.TimeRatio,
		event.Count(r.EdgeCut), r.CutRatio, event.Count(r.CommVolume), r.VolumeRatio, worst,
		event.Bytes(r.EpochBytes))
}

// JSON writes the figures as one object, to a file or for "-" to stdout.
func (b *Partitions) JSON(path string, stdout io.Writer) error {
	return report.WriteJSON(b, path, stdout)
}
