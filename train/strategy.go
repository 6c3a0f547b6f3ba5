package train

import (
	"context"
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// Strategy is an aggregator with the lifetime of a run: what a worker does to get the
// rows, or the sums, of vertices that other workers own. A strategy may also be one of
// the optional interfaces below, or an event.Listener of the run, or have Unwrap()
// Strategy, of one that is.
type Strategy interface {
	nn.Aggregator
	// Begin opens a pass through the model.
	Begin(epoch, batch int, training bool)
	// Err is the failure that has made rows since then meaningless.
	Err() error
	// Caches are what the next epoch needs from this one, beside the weights; nil: no
	// worker has any.
	Caches() []nn.Tensor
	// Plan is what this worker will send for the strategy's sake. What the loop sends,
	// sums and gradients of parameters, is not part of it.
	Plan(m *nn.Model) *wire.Plan
	// Finish ends the run: nothing is in flight after it.
	Finish() error
}

// Replicating is a strategy whose worker also computes replicas of other workers'
// vertices. They follow its own rows in all matrices of a pass.
type Replicating interface {
	// Replicas are the ids and the features of own vertices and replicas together; in a typed graph those of each type.
	Replicas() (ids []uint32, features *graph.Features, byType []*graph.Features)
}

// Driving is a strategy that runs training passes through the model itself, in an order
// of its own.
type Driving interface {
	Forward(m *nn.Model, p *nn.Pass, x nn.Input) tensor.Matrix
	Backward(m *nn.Model, p *nn.Pass, dlogits tensor.Matrix)
}

// Masking is a strategy whose gradients of rows travel only where the rows are not zero:
// see nn.Pass.Masked.
type Masking interface {
	Masks() bool
}

// Measuring is a strategy that measures another way than it trains.
type Measuring interface {
	Measuring() Strategy
}

// Batching is a strategy that trains on mini-batches: an epoch is a step for each.
type Batching interface {
	// Steps is how many an epoch has.
	Steps() int
	// Train is what trains for an epoch of a loop and returns the mean loss.
	Train(f *Loop) func(epoch int, lr float64) (float64, error)
}

// Shortened is a strategy of mini-batches whose dry run takes fewer steps than an epoch has.
type Shortened interface{ AllSteps() int }

// Skipping is a strategy of mini-batches that has no step for some batches.
type Skipping interface {
	// Taken is the number of steps of an epoch, from a batch on.
	Taken(epoch, from int) int
}

// Owning is a strategy with parameters whose gradients are whole on one worker and are not all-reduced.
type Owning interface {
	// Owned are these, and what is sent to give all workers their values when an epoch ends and before a state is
	// saved.
	Owned(m *nn.Model) ([]*nn.Param, wire.Bytes)
}

// Buffering is a strategy of mini-batches that has buffers of batches which its dry run does not fill.
type Buffering interface{ Unfilled() int64 }

// allSteps is how many steps an epoch has, be this a dry run.
func allSteps(on Strategy, b Batching) int {
	if s, ok := as[Shortened](on); ok {
		return s.AllSteps()
	}
	return b.Steps()
}

// Ranking is a strategy that measures more of the result's best weights when a run has ended.
type Ranking interface {
	Rank(f *Loop, r *Result) error
}

// RowCounts are rows of features that the batches of a worker needed.
type RowCounts struct {
	Needed int64 `json:"needed"`
	Remote int64 `json:"remote"` // of these, rows that other hosts own
	Cached int64 `json:"cached"` // of these, rows that were in a cache
	// Requests is how many requests for rows were sent to other hosts.
	Requests int64 `json:"requests,omitempty"`
	// Redundancy is the rows that the workers' shares of a batch need over the distinct ones among them;
	// 0: unknown.
	Redundancy float64 `json:"redundancy,omitempty"`
}

// Counting is a strategy that counts the rows its batches need.
type Counting interface {
	RowCounts() RowCounts
}

// Launches are why batches were launched whose sampling is scheduled, and how many there were at a time.
type Launches struct {
	NoneUnderWay int64 `json:"none_under_way"` // and none waited for training
	NoneWaits    int64 `json:"none_waits"`     // for training, with processors that have time
	Score        int64 `json:"score"`          // at least the threshold
	Window       int64 `json:"window"`         // is drawn before rows of its first batch are fetched
	Most         int64 `json:"most"`           // batches at a time, the one that is trained on included
	Allowed      int64 `json:"allowed"`        // by memory
}

// Launching is a strategy that may schedule the sampling of batches.
type Launching interface {
	Launches() Launches
}

// ExplainerUse is what the explainer of a worker took, which runs beside training.
type ExplainerUse struct {
	Explanations int64   `json:"explanations"`
	Epochs       int64   `json:"epochs"`      // of all explanations
	Vertices     int64   `json:"vertices"`    // remote ones that have masks
	CPUSeconds   float64 `json:"cpu_seconds"` // of its threads
	Bytes        int64   `json:"bytes"`       // memory, at most
	// Quartiles of the masks that rank 0 learnt last, of vertices and of columns.
	Nodes   [3]float64 `json:"nodes"`
	Columns [3]float64 `json:"columns"`
}

// Explaining is a strategy that may explain the model while it is trained.
type Explaining interface {
	Explained() ExplainerUse
}

// Keeping is a strategy that says how many bytes Caches will have.
type Keeping interface {
	Kept() int64
}

// Site is what a worker's strategy is built on.
type Site struct {
	Ctx    context.Context
	Dev    tensor.Device
	Part   *partition.Part
	End    wire.Endpoint
	Peers  Peers
	Opt    Options
	Events event.Listener
	// Alone: there are no peers (a dry run). What would need them is wire.ErrUnplanned.
	Alone bool
	// MemoryOnly: the device counts memory and computes nothing, and rows never travel.
	MemoryOnly bool

	links *RelationLinks // pairs of relations; nil: none
}

// Waiting reports the time that do takes as time in which the worker waits for others.
func (s *Site) Waiting(name string, do func() error) error {
	return waiting(s.End.Clock(), s.Events, name, do)
}

// as is the strategy itself, or one that it wraps, as an optional interface.
func as[T any](s Strategy) (t T, ok bool) {
	for s != nil {
		if t, ok = s.(T); ok {
			return t, true
		}
		w, wraps := s.(interface{ Unwrap() Strategy })
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return t, false
}

// Unplanned is wire.ErrUnplanned with what was asked for.
func Unplanned(what string) error { return fmt.Errorf("%s: %w", what, wire.ErrUnplanned) }

// Mistake is a choice of the user's that cannot be: what it is and what to do.
func Mistake(text string, values ...any) error {
	return &graph.InputError{Field: fmt.Sprintf(text, values...)}
}

// newStrategy is the strategy that the options choose.
func newStrategy(s *Site) (Strategy, error) {
	if s.Opt.Strategy.Descriptor == nil {
		c, err := Choose(Default().Name, nil)
		if err != nil {
			return nil, err
		}
		s.Opt.Strategy = c
	}
	if err := Check(&s.Opt, FactsOf(s.Part.Book)); err != nil {
		return nil, err
	}
	return s.Opt.Strategy.Descriptor.New(s)
}
