package report

import (
	"io"
	"strings"

	"starling/spec"
	"starling/train"
)

// Run is the result of a training run, one JSON object. Epochs are counted from 0, so that
// loss[best_epoch] is the loss of the best epoch; val_accuracy[i] was measured after epoch
// measured[i].
type Run struct {
	Dataset      string   `json:"dataset"`
	Task         string   `json:"task"`
	Model        string   `json:"model"`
	Strategy     string   `json:"strategy"`
	Workers      int      `json:"workers"`
	Epochs       int      `json:"epochs"` // trained
	Loss         []Number `json:"loss"`
	ValAccuracy  []Number `json:"val_accuracy"`
	TestAccuracy Number   `json:"test_accuracy"` // of the best epoch
	BestEpoch    int      `json:"best_epoch"`    // -1: none was evaluated
	EpochSeconds []Number `json:"epoch_seconds"`
	PeakRSSBytes int64    `json:"peak_rss_bytes"`
	Bytes        Bytes    `json:"bytes"`

	// Metric names the accuracies of this task: accuracy, micro_f1, r2, ...
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
	LearntParameters   int      `json:"learnt_parameters,omitempty"` // numbers of the rows of types without features
	DevicePeakBytes    int64    `json:"device_peak_bytes"`
	DevicePlannedBytes int64    `json:"device_planned_bytes"`
	MemoryPlannedBytes int64    `json:"memory_planned_bytes"` // of the run, without mapped files
	Device             string   `json:"device"`
	DType              string   `json:"dtype"`
	SIMD               string   `json:"simd"`
	CacheFirst         string   `json:"cache_first"`
	Threads            int      `json:"threads"`
	Seed               uint64   `json:"seed"`

	// Evaluation is the report by class of the best weights; Warnings say what their metric may hide.
	Evaluation *train.Evaluation `json:"evaluation,omitempty"`
	Warnings   []string          `json:"warnings,omitempty"`

	// Spec has every setting, defaults too.
	Spec *spec.Spec `json:"spec,omitempty"`
	Made *Made      `json:"made,omitempty"`
	// Page draws the page of the run; nil: none was asked for.
	Page func() []byte `json:"-"`

	// Of several workers:
	Servers          int            `json:"servers,omitempty"`
	Restarts         []Restart      `json:"restarts,omitempty"`
	StrategySettings map[string]any `json:"strategy_settings,omitempty"`
	// Chosen are the settings that the run's own choices follow from, as what it measured: a run
	// that is given them chooses the same.
	Chosen map[string]string `json:"chosen,omitempty"`
	// Predicted is what --strategy auto chose by.
	Predicted *Predicted `json:"predicted,omitempty"`
	// WaitShare is the share of the epochs' time that workers waited for each other; NaN: it was not measured.
	WaitShare Number `json:"wait_share,omitempty"`
	// TransferSeconds is how long, per epoch, rows were on their way to a worker.
	TransferSeconds Number `json:"transfer_seconds,omitempty"`
	// HiddenShare is the share of that in which the worker did not wait for them.
	HiddenShare Number `json:"hidden_share"`
	// Rows are the rows of features that mini-batches of all workers needed, and SamplesPerSecond
	// how many training vertices a second of training took in.
	Rows               *train.RowCounts `json:"rows,omitempty"`
	SamplesPerSecond   Number           `json:"samples_per_second,omitempty"`
	WorkerPeakRSSBytes []int64          `json:"worker_peak_rss_bytes,omitempty"`
	// CPUShare is the share of the processors' time that workers used, evaluation included.
	CPUShare Number `json:"cpu_share,omitempty"`
	// Explainer is what the explainers of all workers took (--dgs).
	Explainer *Explainer `json:"explainer,omitempty"`
	// Launches are why all workers launched batches (--launch-score); Most and Allowed of the worker with most of each.
	Launches *train.Launches `json:"launches,omitempty"`
}

// Explainer is what explainers took together; Bytes of the largest.
type Explainer struct {
	train.ExplainerUse
	// CPUShare is their share of the workers' processor time.
	CPUShare Number `json:"cpu_share"`
}

// Predicted is what was predicted of a run that chose its strategy itself, beside what was measured.
type Predicted struct {
	Choice          string `json:"choice"`
	Why             string `json:"why"`
	EpochSeconds    Number `json:"epoch_seconds"`
	ComputeSeconds  Number `json:"compute_seconds"`
	ExposedSeconds  Number `json:"exposed_seconds"`
	WaitingSeconds  Number `json:"waiting_seconds"`
	EpochBytes      int64  `json:"epoch_bytes"`
	MemoryBytes     int64  `json:"memory_bytes"` // of the largest worker
	MeasuredSeconds Number `json:"measured_seconds"`
	Stale           string `json:"stale,omitempty"` // why the two cannot be compared
}

// Restart is the loss of a worker that the run recovered from.
type Restart struct {
	Epoch   int     `json:"epoch"`          // that the run continued from
	Step    int     `json:"step,omitempty"` // of that epoch
	Seconds float64 `json:"seconds"`        // from noticing the loss to training again
}

// Write writes the result to a file, or for "-" to stdout.
func (r *Run) Write(path string, stdout io.Writer) error { return WriteJSON(r, path, stdout) }

// Measures are the measures that belong to a task, of the test split at the best epoch. Those
// of other tasks are left out.
type Measures struct {
	MicroF1 *Number `json:"micro_f1,omitempty"` // multilabel
	R2      *Number `json:"r2,omitempty"`       // regression
	MSE     *Number `json:"mse,omitempty"`
	AUC     *Number `json:"auc,omitempty"` // link, unsupervised
	MRR     *Number `json:"mrr,omitempty"`
	// Hits[k] is the share of ranks that are at most k.
	Hits map[string]Number `json:"hits,omitempty"`
	// Relations are the measures of each relation, where several are predicted; the others are their means.
	Relations map[string]*Measures `json:"relations,omitempty"`
}

// MeasuresOf takes the measures by the names that tasks give them.
func MeasuresOf(m map[string]float64) (out Measures) {
	for name, to := range map[string]**Number{
		"micro_f1": &out.MicroF1, "r2": &out.R2, "mse": &out.MSE, "auc": &out.AUC, "mrr": &out.MRR,
	} {
		if x, ok := m[name]; ok {
			n := Number(x)
			*to = &n
		}
	}
	of := map[string]map[string]float64{}
	for name, x := range m {
		if measure, relation, ok := strings.Cut(name, " of "); ok {
			if of[relation] == nil {
				of[relation] = map[string]float64{}
			}
			of[relation][measure] = x
			continue
		}
		if k, ok := strings.CutPrefix(name, "hits@"); ok {
			if out.Hits == nil {
				out.Hits = map[string]Number{}
			}
			out.Hits[k] = Number(x)
		}
	}
	for relation, measures := range of {
		if out.Relations == nil {
			out.Relations = map[string]*Measures{}
		}
		one := MeasuresOf(measures)
		out.Relations[relation] = &one
	}
	return out
}
