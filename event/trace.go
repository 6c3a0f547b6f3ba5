package event

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"starling/disk"
)

// Trace writes the spans of a run as Chrome trace events, which ui.perfetto.dev
// and chrome://tracing show: one process per worker, one thread per lane, loss and
// accuracy as counters. Events are written to a hidden file beside path at once, so
// memory does not grow with the run; Close makes the file appear under its name.
type Trace struct {
	path  string
	f     *disk.File
	w     *bufio.Writer
	start time.Time
	lanes map[[2]int]bool
	comma bool
	err   error
}

// traceEvent is one entry of the format.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    float64        `json:"ts"` // microseconds
	Dur   float64        `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// NewTrace starts a trace that will appear at path.
func NewTrace(path string) (*Trace, error) {
	f, err := disk.Create(path)
	if err != nil {
		return nil, err
	}
	t := &Trace{path: path, f: f, w: bufio.NewWriterSize(f, 1<<16), start: time.Now(), lanes: map[[2]int]bool{}}
	t.w.WriteString(`{"displayTimeUnit":"ms","traceEvents":[` + "\n")
	return t, nil
}

// On writes an event.
func (t *Trace) On(e Event) {
	switch e := e.(type) {
	case Span:
		t.name(e.Worker, e.Lane)
		t.put(traceEvent{Name: e.Name, Cat: e.Kind, Phase: "X", TS: t.at(e.Start), Dur: max(micros(e.Dur), 0.001),
			PID: e.Worker, TID: e.Lane})
	case Epoch:
		t.counter("loss", e.Loss)
		if e.Measured && !math.IsNaN(e.Val) {
			t.counter("validation", e.Val)
		}
	case Saved:
		t.put(traceEvent{Name: "checkpoint", Cat: "save", Phase: "i", TS: t.at(time.Now()), Scope: "p",
			Args: map[string]any{"path": e.Path, "epoch": e.Epoch}})
	}
}

// name names a worker and a lane for the viewer, once.
func (t *Trace) name(worker, lane int) {
	if t.lanes[[2]int{worker, lane}] {
		return
	}
	t.lanes[[2]int{worker, lane}] = true
	call := func(what, name string) {
		t.put(traceEvent{Name: what, Phase: "M", PID: worker, TID: lane, Args: map[string]any{"name": name}})
	}
	call("process_name", fmt.Sprintf("worker %d", worker))
	called := fmt.Sprintf("lane %d", lane)
	if lane >= 0 && lane < len(laneNames) {
		called = laneNames[lane]
	}
	call("thread_name", called)
}

// laneNames are the uses of the first lanes.
var laneNames = []string{"compute", "transfers"}

func (t *Trace) counter(name string, value float64) {
	t.put(traceEvent{Name: name, Phase: "C", TS: t.at(time.Now()), Args: map[string]any{name: value}})
}

func (t *Trace) at(x time.Time) float64 { return micros(x.Sub(t.start)) }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// put keeps the first error for Close.
func (t *Trace) put(e traceEvent) {
	if t.err != nil {
		return
	}
	b, err := json.Marshal(e)
	if err == nil {
		if t.comma {
			t.w.WriteString(",\n")
		}
		t.comma = true
		_, err = t.w.Write(b)
	}
	t.err = err
}

// Close ends the file and gives it its name. On an error nothing is left behind.
func (t *Trace) Close() (err error) {
	if t.f == nil {
		return nil
	}
	f := t.f
	t.f = nil
	defer func() {
		if err != nil {
			f.Abort()
			err = fmt.Errorf("trace %s: %w", t.path, err)
		}
	}()
	if t.err != nil {
		return t.err
	}
	t.w.WriteString("\n]}\n")
	if err := t.w.Flush(); err != nil {
		return err
	}
	return f.Commit()
}
