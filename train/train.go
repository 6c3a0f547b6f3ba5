// Package train is the training loop. A strategy decides what leaves a worker, and when;
// the loop is the same for all of them. Strategies live in train/full (a step goes over
// the whole graph) and train/mini (over a batch); each describes itself (Descriptor) and
// stands in its package's list.
package train

import (
	"slices"
	"strings"

	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Options are what the loop needs to know beyond the data and the device.
type Options struct {
	Strategy Choice // of several workers
	// Batches are the settings of mini-batches; nil: training goes over the whole graph.
	Batches *BatchSettings
	// Pairs, if set, is what several workers learn from instead of the labels of vertices.
	Pairs *PairOptions
	// Embeddings, if set, are learnt of every vertex beside the features.
	Embeddings *EmbeddingOptions
	Model      nn.Config // In and Out filled in
	Optim      nn.OptimConfig
	Schedule   nn.Schedule
	Epochs     int
	// EvalEvery measures the task's metric every given number of epochs; 0 only after the last.
	EvalEvery int
	// Patience stops after this number of epochs without a better validation metric; 0 never.
	Patience int
	Seed     uint64
	// Inductive trains on the subgraph of the training vertices and measures on the whole graph.
	Inductive bool
	// Rows is the storage type of features and activations.
	Rows tensor.DType
	// HostFeatures has dense features stay in the host's memory, where the device can read them there.
	HostFeatures bool
	// Disk has mini-batches read the rows of dense features ahead; nil: they are mapped.
	Disk *DiskOptions
	// CacheFirst keeps the first layer's sum over constant features.
	CacheFirst bool
	// RowNormalize scales each vertex's features to sum to one.
	RowNormalize bool
	// Metric is what epochs are compared by, one of nn.Metrics; "": the task's own.
	Metric string
	// Weights are what classes count in the loss, or Balanced weighs them by how rare they are; Focus is the gamma of
	// focal loss, 0: none.
	Weights  []float64
	Balanced bool
	Focus    float64
	// Threshold is the probability from which on the positive one of two classes, or each of several labels, is
	// predicted; NaN: the best on the validation vertices; 0: ½.
	Threshold float64

	// HostDevice makes a device of one thread for what runs beside training; nil: nothing does.
	HostDevice func() tensor.Device

	// Planned, if set, is called once with what the worker will send.
	Planned func(*wire.Plan)

	// Clock is what a single worker's epochs are timed by; nil: the host's. Several workers
	// read their endpoints'.
	Clock wire.Clock

	// Resume, if set, is where to go on from. Its Caches are forgotten as they are used, so
	// each worker has a State of its own.
	Resume *State
	// Save, if set, is called every SaveEvery epochs and, unless MidwayOnly is set, at the
	// end and when the run is interrupted.
	Save      func(*State) error
	SaveEvery int
	// SaveSteps saves also every given number of steps, where an epoch has several; 0: never.
	SaveSteps  int
	MidwayOnly bool
}

// DiskOptions say how rows of features that are larger than memory are read.
type DiskOptions struct {
	Memory  int64  // that rows, buffers and plans take
	Grow    bool   // they take more where they cannot do with it
	Scratch string // folder for rows that are packed by batch; "": that of the features
	Packed  int64  // bytes of these that a window of batches may take; 0: none is packed
}

// BatchSettings say how mini-batches are drawn.
type BatchSettings struct {
	Sampler string // one of sample.Names
	// Size is the number of training vertices in a batch; in a subgraph the number of vertices
	// drawn (saint-node), of edges (saint-edge), of walks begun (saint-walk), or about the
	// number of vertices in a batch's clusters (cluster).
	Size int
	// Fanouts of the layers, from the seed vertices' on; draws per layer for fastgcn and
	// ladies.
	Fanouts []int
	// RelationFanouts are by hop and relation, where a relation has a fanout of its own; 0: it has the hop's.
	RelationFanouts [][]int
	// Replace and Weighted are for the neighbour sampler.
	Replace, Weighted bool
	// Temporal has a seed vertex see what is from before its time: "uniform" any of it, "recent" the latest; "": all.
	Temporal string
	// Clusters is the number of clusters that the graph is cut into (cluster); 0: ten make
	// a batch, but each has at least 150 vertices.
	Clusters int
	// WalkLength is the length of saint-walk's walks; 0: the model's layers. Of pinsage's it is the most steps; 0: 3.
	WalkLength int
	// VertexWalks are pinsage's walks of each destination, 0: 16; each ends after a step with probability Restart.
	VertexWalks int
	Restart     float64
	// Threads is the number of threads that sample; 0: one per core.
	Threads int
	// DrawOn is where one worker's batches are drawn: "card", "auto" (there if it can) or "host"; "": host.
	DrawOn string
	// DryEpochs is the number of epochs of the run whose memory a dry run learns from a few batches; 0: no dry run.
	DryEpochs int
}

// EmbeddingOptions say how rows of vertices are learnt.
type EmbeddingOptions struct {
	Dim     int
	Adagrad bool // else Adam
	// Async: owners update rows when gradients arrive, in any order.
	Async bool
}

// State is everything that a run needs to go on exactly as if it had never
// stopped. Random draws are functions of the seed and the epoch, so no generator
// is part of it.
type State struct {
	Epoch int // epochs done
	// Batch is how many steps of the epoch that is under way are done, where an epoch has
	// several; Partial are its sums so far, of one worker after the other, and Seconds what
	// it has taken.
	Batch   int
	Partial []float64
	Seconds float64
	Model   []nn.Tensor
	Optim   []nn.Tensor
	Steps   int
	Best    []nn.Tensor // the weights of the best epoch
	History History
	// Caches are what this worker's strategy needs from the epochs before; nil: no worker
	// has any. They are read in place, while the state is being saved.
	Caches []nn.Tensor
}

// warmStart reports whether the state is the weights and learnt rows of another run, and nothing of this one.
func (s *State) warmStart() bool {
	return s.Steps == 0 && s.Epoch == 0 && s.Optim == nil && !slices.ContainsFunc(s.Caches, ofStrategy)
}

// ofStrategy reports whether a cache is another than learnt rows and their vertices.
func ofStrategy(t nn.Tensor) bool {
	return !strings.HasPrefix(t.Name, learntRows) && !strings.HasPrefix(t.Name, learntIDs)
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
	Reason      string // finished, early stop, interrupted, or Diverged
	TestMetric  float64
	ValMetric   float64
	PeakBytes   int64 // of matrices on the device
	Parameters  int
	Learnt      int // numbers of learnt rows, beside the parameters
	Best, Final []nn.Tensor
	// LearntRows are this worker's, where there are several: see nn.JoinRows. LearntFiles are of all workers.
	LearntRows  []nn.Tensor
	LearntFiles []LearntFile
	Plan        *wire.Plan // what this worker meant to send
	// Evaluation is of the best weights, on the test split, or on validation where there is none; nil: labels were not
	// learnt, nothing was measured, or the best epoch was before the run was resumed and has learnt rows.
	Evaluation *Evaluation
	// MeasuredAgain: the best weights, of before the run was resumed, were measured once more for that.
	MeasuredAgain bool
	Rows          RowCounts // that this worker's batches needed
	Explainer     ExplainerUse
	Launches      Launches
}
