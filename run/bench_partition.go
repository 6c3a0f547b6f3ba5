package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/partition"
)

// PartitionBench is several methods on one graph.
type PartitionBench struct {
	Dataset string              `json:"dataset"`
	Parts   int                 `json:"parts"`
	Rows    []PartitionBenchRow `json:"rows"`
}

// PartitionBenchRow is one method; ratios are to the first that worked.
type PartitionBenchRow struct {
	Method      string             `json:"method"`
	Seconds     float64            `json:"seconds"`
	EdgeCut     int64              `json:"edge_cut"`
	CommVolume  int64              `json:"comm_volume"`
	Balance     map[string]float64 `json:"balance,omitempty"`
	EpochBytes  int64              `json:"epoch_bytes"`
	TimeRatio   float64            `json:"time_ratio"`
	CutRatio    float64            `json:"cut_ratio"`
	VolumeRatio float64            `json:"volume_ratio"`
	Failed      string             `json:"failed,omitempty"` // why there is no figure
}

// BenchPartition cuts the dataset in dir by each method in turn, writes no partition,
// and gives each a line of out. A method that cannot work here (metis without its
// library) has a line that says why.
func BenchPartition(ctx context.Context, dir string, s PartitionSpec, methods []string, out io.Writer) (*PartitionBench, error) {
	for _, s.Method = range methods {
		if _, err := s.options(); err != nil {
			return nil, err
		}
	}
	b := &PartitionBench{}
	for _, s.Method = range methods {
		r, err := Partition(ctx, dir, s, nil)
		var in *graph.InputError
		switch {
		case errors.Is(err, ErrInterrupted):
			return b, err
		case err != nil && s.Method == "metis" && errors.As(err, &in):
			b.Rows = append(b.Rows, PartitionBenchRow{Method: s.Method, Failed: err.Error()})
			fmt.Fprintf(out, "%-11s %v\n", s.Method, err)
			continue
		case err != nil:
			return nil, err
		}
		if b.Parts == 0 {
			fmt.Fprintf(out, "%-11s %10s %8s %14s %8s %14s %8s %9s %14s\n", "method", "seconds", "ratio", "edge cut", "ratio", "volume", "ratio", "balance", "epoch sends")
		}
		b.Dataset, b.Parts = r.Dataset, r.Parts
		fmt.Fprint(out, b.add(r.Report))
	}
	return b, nil
}

// add puts a method's figures beside the first's.
func (b *PartitionBench) add(r *partition.Report) PartitionBenchRow {
	row := PartitionBenchRow{Method: r.Method, Seconds: r.Seconds, EdgeCut: r.EdgeCut, CommVolume: r.CommVolume, Balance: r.Balance, EpochBytes: r.Plan.EpochBytes}
	first := row
	if i := slices.IndexFunc(b.Rows, func(r PartitionBenchRow) bool { return r.Failed == "" }); i >= 0 {
		first = b.Rows[i]
	}
	row.TimeRatio = row.Seconds / first.Seconds
	row.CutRatio = over(row.EdgeCut, first.EdgeCut)
	row.VolumeRatio = over(row.CommVolume, first.CommVolume)
	b.Rows = append(b.Rows, row)
	return row
}

// over is a ratio of counts, 1 where both are none.
func over(a, b int64) float64 {
	if a == b {
		return 1
	}
	return float64(a) / float64(max(b, 1))
}

// String is the row of a table.
func (r PartitionBenchRow) String() string {
	worst := 1.0
	for _, x := range r.Balance {
		worst = max(worst, x)
	}
	return fmt.Sprintf("%-11s %10.3f %7.2fx %14s %7.2fx %14s %7.2fx %9.3f %14s\n", r.Method, r.Seconds, r.TimeRatio, event.Count(r.EdgeCut), r.CutRatio,
		event.Count(r.CommVolume), r.VolumeRatio, worst, event.Bytes(r.EpochBytes))
}

// JSON writes the figures as one object, to a file or with "-" to stdout.
func (b *PartitionBench) JSON(path string, stdout io.Writer) error { return writeJSON(b, path, stdout) }
