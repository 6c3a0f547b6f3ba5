package run

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"starling/disk"
	"starling/graph"
	"starling/tensor"
	"starling/train"
)

// Number is a float64 that may be unknown: NaN and infinity are null in JSON. All
// others read back as exactly the same bits.
type Number float64

// MarshalJSON writes the shortest digits that read back as the same number.
func (x Number) MarshalJSON() ([]byte, error) {
	if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

// UnmarshalJSON reads null as NaN.
func (x *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*x = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(x))
}

// numbers and floats convert lists; an empty list is [] in JSON, never null.
func numbers(f []float64) []Number {
	out := make([]Number, len(f))
	for i, x := range f {
		out[i] = Number(x)
	}
	return out
}

func floats(n []Number) []float64 {
	out := make([]float64, len(n))
	for i, x := range n {
		out[i] = float64(x)
	}
	return out
}

// Report is the one JSON object a run ends with. Epochs are counted from 0, so
// that loss[best_epoch] is the loss of the best epoch; val_accuracy[i] was
// measured after epoch measured[i].
type Report struct {
	Dataset      string   `json:"dataset"`
	Task         string   `json:"task"`
	Model        string   `json:"model"`
	Strategy     string   `json:"strategy"`
	Workers      int      `json:"workers"`
	Epochs       int      `json:"epochs"` // done
	Loss         []Number `json:"loss"`
	ValAccuracy  []Number `json:"val_accuracy"`
	TestAccuracy Number   `json:"test_accuracy"` // of the best epoch
	BestEpoch    int      `json:"best_epoch"`    // -1: none measured
	EpochSeconds []Number `json:"epoch_seconds"`
	PeakRSSBytes int64    `json:"peak_rss_bytes"`
	Bytes        Bytes    `json:"bytes"`

	// Metric is what the accuracies are of this task: accuracy, micro_f1, r2, ...
	Metric string `json:"metric"`
	Measures

	Reason             string   `json:"reason"` // finished, early stop, interrupted
	Measured           []int    `json:"measured"`
	TrainAccuracy      []Number `json:"train_accuracy"`
	TestAccuracies     []Number `json:"test_accuracies"`
	BestValAccuracy    Number   `json:"best_val_accuracy"`
	MedianEpochSeconds Number   `json:"median_epoch_seconds"`
	EpochSecondsSpread Spread   `json:"epoch_seconds_spread"`
	Seconds            float64  `json:"seconds"` // of this process
	Vertices           int64    `json:"vertices"`
	Edges              int64    `json:"edges"`
	Parameters         int      `json:"parameters"`
	DevicePeakBytes    int64    `json:"device_peak_bytes"`
	DevicePlannedBytes int64    `json:"device_planned_bytes"`
	MemoryPlannedBytes int64    `json:"memory_planned_bytes"` // of the run, mapped files left out
	DType              string   `json:"dtype"`
	SIMD               string   `json:"simd"`
	CacheFirst         string   `json:"cache_first"`
	Threads            int      `json:"threads"`
	Seed               uint64   `json:"seed"`

	// Of several workers:
	Servers            int            `json:"servers,omitempty"`
	Restarts           []Restart      `json:"restarts,omitempty"`
	StrategySettings   map[string]any `json:"strategy_settings,omitempty"`
	WaitShare          Number         `json:"wait_share,omitempty"`       // of the epochs' time, waiting for other workers
	TransferSeconds    Number         `json:"transfer_seconds,omitempty"` // of an epoch, rows were on their way to a worker
	HiddenShare        Number         `json:"hidden_share"`               // of that, the worker did not wait for them
	WorkerPeakRSSBytes []int64        `json:"worker_peak_rss_bytes,omitempty"`
}

// Restart is a loss of a worker that the run outlived.
type Restart struct {
	Epoch   int     `json:"epoch"`   // that the run went on from
	Seconds float64 `json:"seconds"` // from noticing the loss to training again
}

// Bytes is what workers sent each other.
type Bytes struct {
	Total   int64            `json:"total"`
	Planned int64            `json:"planned"`
	AtMost  bool             `json:"at_most,omitempty"` // planned is an upper bound
	ByKind  map[string]int64 `json:"by_kind"`
	ByLink  map[string]int64 `json:"by_link"`
	Detail  []Traffic        `json:"detail,omitempty"`
	// PerEpoch is the mean of the training passes, without what is sent once and what
	// measurements send.
	PerEpoch *EpochBytes `json:"per_epoch,omitempty"`
}

// EpochBytes is what workers sent each other in an epoch.
type EpochBytes struct {
	Total  int64            `json:"total"`
	ByKind map[string]int64 `json:"by_kind"`
	ByLink map[string]int64 `json:"by_link"`
}

// Spread is how far epochs' seconds lie apart; like the median it leaves out the
// first epoch, which maps memory.
type Spread struct {
	Min Number `json:"min"`
	Q1  Number `json:"q1"`
	Q3  Number `json:"q3"`
	Max Number `json:"max"`
}

func newReport(s *Spec, data *graph.Meta, p *Plan, r *train.Result) *Report {
	return &Report{
		Dataset: data.Name, Task: s.Task, Metric: r.Metric, Measures: measuresOf(r.Measures), Model: s.Model, Strategy: s.Strategy, Workers: s.Workers,
		Epochs: len(r.Loss), Loss: numbers(r.Loss), ValAccuracy: numbers(r.Val), TestAccuracy: Number(r.TestMetric),
		BestEpoch: r.BestEpoch, EpochSeconds: numbers(r.EpochSeconds), PeakRSSBytes: tensor.PeakRSS(),
		Bytes:  Bytes{ByKind: map[string]int64{}, ByLink: map[string]int64{}},
		Reason: r.Reason, Measured: append([]int{}, r.Measured...), TrainAccuracy: numbers(r.Train), TestAccuracies: numbers(r.Test),
		BestValAccuracy: Number(r.ValMetric), MedianEpochSeconds: Number(median(r.EpochSeconds)), EpochSecondsSpread: spread(r.EpochSeconds),
		Vertices: data.Nodes, Edges: data.Edges, Parameters: r.Parameters,
		DevicePeakBytes: r.PeakBytes, DevicePlannedBytes: p.Peak, MemoryPlannedBytes: p.Needed(),
		DType: s.DType, SIMD: s.SIMD, CacheFirst: s.CacheFirst, Threads: s.threads(), Seed: s.Seed,
		StrategySettings: s.strategySettings(), HiddenShare: Number(math.NaN()),
	}
}

// settled are the epochs' seconds without the first, which maps memory, in order.
func settled(v []float64) []float64 {
	if len(v) > 2 {
		v = v[1:]
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v
}

// median is NaN of nothing.
func median(v []float64) float64 { return quantile(settled(v), 0.5) }

func spread(v []float64) Spread {
	v = settled(v)
	return Spread{Number(quantile(v, 0)), Number(quantile(v, 0.25)), Number(quantile(v, 0.75)), Number(quantile(v, 1))}
}

// quantile of sorted numbers lies between the two nearest; it is NaN of nothing.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	at := q * float64(len(v)-1)
	i := int(at)
	if i == len(v)-1 {
		return v[i]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

// Write puts the report as one line of JSON into a file, whole or not at all, or
// with "-" onto stdout.
func (r *Report) Write(path string, stdout io.Writer) error { return writeJSON(r, path, stdout) }

func writeJSON(v any, path string, stdout io.Writer) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if path == "-" {
		_, err := stdout.Write(b)
		return err
	}
	return disk.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// CheckFile makes sure before a long run that a file can be written after it.
func CheckFile(flag, path string) error {
	if path == "" || path == "-" {
		return nil
	}
	path = disk.Target(path)
	dir := "."
	if i := strings.LastIndexByte(path, os.PathSeparator); i >= 0 {
		dir = path[:i+1]
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return mistake(flag, path, "a file in a folder that exists", "make the folder "+dir+" first")
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return mistake(flag, path, "a file", "this is a folder: name a file in it")
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() { // it is written through
		return nil
	}
	if of := belongsTo(dir, filepath.Base(path)); of != "" {
		return mistake(flag, path+", which is part of "+of, "a file that may be replaced", "choose another name")
	}
	return checkWritable(flag, dir)
}

// belongsTo is the dataset, partition or run that would be lost with one of its files; "": none.
func belongsTo(dir, name string) string {
	if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
		return ""
	}
	switch _, err := os.Stat(filepath.Join(dir, weightsFile)); {
	case name == "meta.json" && graph.IsDataset(dir):
		return "a dataset"
	case name == "book.json":
		return "a partition"
	case name == weightsFile || name == configFile && err == nil:
		return "a trained model"
	}
	if m, err := graph.ReadMeta(dir); err == nil {
		if _, ok := m.Arrays[name]; ok {
			return "a dataset"
		}
	}
	return ""
}

// checkNotDash refuses the name that elsewhere is standard output: a folder cannot go there.
func checkNotDash(flag, dir string) error {
	if dir == "-" {
		return mistake(flag, dir, "a folder to write", "a folder does not fit into standard output; one of that name is ./-")
	}
	return nil
}

// MakeNewFolder makes a folder, or takes one that is empty: what somebody has in it is not
// to be replaced.
func MakeNewFolder(flag, dir string) error {
	if err := checkWritable(flag, dir); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return mistake(flag, dir+", which holds "+entries[0].Name(), "a new folder", "choose another name, or remove this one yourself")
	}
	return os.MkdirAll(dir, 0o755)
}

// checkWritable makes sure that files can be made in a folder, or in that in which it is
// to be made.
func checkWritable(flag, dir string) error {
	f, err := os.CreateTemp(dir, ".starling-*")
	switch above := filepath.Dir(dir); {
	case errors.Is(err, fs.ErrNotExist) && above != dir:
		return checkWritable(flag, above)
	case err != nil:
		return mistake(flag, dir+": "+errors.Unwrap(err).Error(), "a folder to write to", "choose another")
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
