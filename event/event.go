// Package event holds the typed events of a run and the listeners that show
// them: the progress bar, plain lines, JSON lines, the trace file.
//
// Code that computes emits events and does not know who listens. An event is a
// plain struct; a listener is called on the goroutine that emits, in order, and
// must be quick.
package event

import (
	"sync"
	"time"
)

// Event is one of the types below.
type Event interface{ event() }

// Listener receives every event of a run.
type Listener interface{ On(Event) }

// Func makes a function a Listener.
type Func func(Event)

func (f Func) On(e Event) { f(e) }

// All passes each event to several listeners, in order. Nil ones are left out.
func All(listeners ...Listener) Listener {
	return Func(func(e Event) {
		for _, l := range listeners {
			if l != nil {
				l.On(e)
			}
		}
	})
}

// Locked lets several goroutines emit to one listener, one at a time.
func Locked(l Listener) Listener {
	var mu sync.Mutex
	return Func(func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		l.On(e)
	})
}

// Started opens a run.
type Started struct {
	Dataset, Model, Strategy string
	Vertices, Edges          int64
	Parameters               int
	Learnt                   int // numbers of learnt rows, beside the parameters
	Workers                  int
	FirstEpoch, Epochs       int // FirstEpoch > 0 for a resumed run
	Metric                   string
}

// Epoch closes an epoch of training, counted from 0.
type Epoch struct {
	Epoch    int
	Loss     float64
	LR       float64
	Seconds  float64 // the training step: forward, backward, update
	Measured bool    // Train, Val and Test were measured after this epoch
	Train    float64
	Val      float64
	Test     float64
	Best     bool    // Val is the best so far
	Eval     float64 // seconds the measurement took
}

// Saved says that a checkpoint is safely on disk.
type Saved struct {
	Path  string
	Epoch int
	Batch int // steps of the epoch after that
	Bytes int64
}

// Note is a line of text for the user. --quiet leaves out minor
// ones.
type Note struct {
	Text  string
	Minor bool `json:",omitempty"`
	// Settings are what the run chose by measuring. A run that is given them chooses the
	// same.
	Settings map[string]string `json:",omitempty"`
	// Mark says what happened to a run that goes on: one of the marks below; "": nothing of note.
	Mark string `json:",omitempty"`
}

// What notes mark.
const (
	Lost    = "lost"    // a worker
	Back    = "back"    // training goes on after a loss
	Stalled = "stalled" // an epoch takes far longer than those before it
	Moving  = "moving"  // it has ended
	Link    = "link"    // a path between two workers was lost, or is back
)

// Span is a stretch of time on one worker: a step, a layer, a transfer.
type Span struct {
	Name   string
	Kind   string // step, forward, backward, update, evaluate, save, wait, transfer, sample
	Worker int
	Lane   int // concurrent spans of a worker are on different lanes: 0 computes, 1 transfers, others sample
	Start  time.Time
	Dur    time.Duration
}

// Progress is the state of a long task other than training.
type Progress struct {
	Task        string
	Done, Total int64 // Total 0: unknown
}

// Done closes a run.
type Done struct {
	Reason    string // finished, early stop, interrupted
	Epochs    int
	BestEpoch int
	Val, Test float64
	Seconds   float64
}

func (Opened) event()   {}
func (Planned) event()  {}
func (Worker) event()   {}
func (Result) event()   {}
func (Started) event()  {}
func (Epoch) event()    {}
func (Saved) event()    {}
func (Note) event()     {}
func (Span) event()     {}
func (Progress) event() {}
func (Done) event()     {}
