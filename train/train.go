// Package train is the training loop. A strategy decides what leaves a worker and
// when; the loop is the same for all of them.
package train

import (
	"slices"

	"starling/nn"
	"starling/tensor"
)

// Options are what the loop needs to know beyond the data and the device.
type Options struct {
	Strategy Choice    // of several workers
	Model    nn.Config // In and Out filled in
	Optim    nn.OptimConfig
	Schedule nn.Schedule
	Epochs   int
	// EvalEvery measures the task's metric every so many epochs; 0 only after the last.
	EvalEvery int
	// Patience stops after so many epochs without a better validation metric; 0 never.
	Patience int
	Seed     uint64
	// Inductive trains on the subgraph of the training vertices and measures on the whole graph.
	Inductive bool
	// Rows is the storage type of features and activations.
	Rows tensor.DType
	// CacheFirst keeps the first layer's sum over constant features.
	CacheFirst bool
	// RowNormalise scales each vertex's features to sum to one.
	RowNormalise bool

	// Resume, if set, is where to go on from. Its Caches are forgotten as they are used, so
	// each worker has a State of its own.
	Resume *State
	// Save, if set, is called every SaveEvery epochs and, unless MidwayOnly is set, at the
	// end and when the run is interrupted.
	Save       func(*State) error
	SaveEvery  int
	MidwayOnly bool
}

// State is everything that a run needs to go on exactly as if it had never
// stopped. Random draws are functions of the seed and the epoch, so no generator
// is part of it.
type State struct {
	Epoch   int // epochs done
	Model   []nn.Tensor
	Optim   []nn.Tensor
	Steps   int
	Best    []nn.Tensor // the weights of the best epoch
	History History
	// Caches are what this worker's strategy needs from the epochs before; nil: no worker
	// has any. They are read from where they lie, while the state is being saved.
	Caches []nn.Tensor
}

// History is what was measured so far.
type History struct {
	Loss         []float64 `json:"loss"`
	EpochSeconds []float64 `json:"epoch_seconds"`
	// Measured are the epochs after which the metrics below were taken.
	Measured  []int     `json:"measured"`
	Train     []float64 `json:"train"`
	Val       []float64 `json:"val"`
	Test      []float64 `json:"test"`
	BestEpoch int       `json:"best_epoch"` // -1: none measured
	// Measures are all that the task measures, by name, of the test split after the
	// best epoch.
	Measures map[string]float64 `json:"measures"`
}

// apart has lists that are copied when they grow: other workers of the process may go on
// from the same history.
func (h History) apart() History {
	for _, list := range []*[]float64{&h.Loss, &h.EpochSeconds, &h.Train, &h.Val, &h.Test} {
		*list = slices.Clip(*list)
	}
	h.Measured = slices.Clip(h.Measured)
	return h
}

// Result is what a run ends with.
type Result struct {
	History
	Metric      string // its name
	Reason      string // finished, early stop, interrupted
	TestMetric  float64
	ValMetric   float64
	PeakBytes   int64 // of matrices on the device
	Parameters  int
	Best, Final []nn.Tensor
	Plan        *Plan // what this worker meant to send
}
