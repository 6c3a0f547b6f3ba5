package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"starling/cluster"
	"starling/nn"
	"starling/report"
	"starling/resume"
	"starling/spec"
	"starling/tensor"
	"starling/train"
	"starling/watch"
	"starling/wire"
)

// cpuUse is the processor time of a worker's training, and how much there was.
type cpuUse struct {
	Seconds float64 `json:"seconds"` // user and system
	Wall    float64 `json:"wall"`
	Cores   float64 `json:"cores"` // of its host, divided by the workers there
}

// measureCPU begins to measure; end returns what this process has used until then. Its host has here processes of
// the run.
func measureCPU(here int) (end func() cpuUse) {
	start, before := time.Now(), tensor.CPUSeconds()
	return func() cpuUse {
		return cpuUse{Seconds: tensor.CPUSeconds() - before, Wall: time.Since(start).Seconds(),
			Cores: float64(processors) / float64(max(here, 1))}
	}
}

// UnpackShares reads what the workers ended with; the first sends weights too, and some may send learnt rows.
func UnpackShares(results []cluster.Result) (shares []*Share, err error) {
	for _, r := range results {
		s := &Share{}
		if err := json.Unmarshal(r.Body, s); err != nil {
			return nil, fmt.Errorf("rank %d: its result: %w", r.Rank, err)
		}
		if len(r.Blob) > 0 {
			if err = s.unpack(r.Blob); err != nil {
				return nil, fmt.Errorf("rank %d: its weights: %w", r.Rank, err)
			}
		}
		shares = append(shares, s)
	}
	return shares, nil
}

// Share is what one worker ended with.
type Share struct {
	History    resume.History        `json:"history"`
	Metric     string                `json:"metric"`
	Reason     string                `json:"reason"`
	Val        report.Number         `json:"val"`
	Test       report.Number         `json:"test"`
	Parameters int                   `json:"parameters"`
	Learnt     int                   `json:"learnt,omitempty"`
	PeakBytes  int64                 `json:"peak_bytes"`
	PeakRSS    int64                 `json:"peak_rss"`
	Threads    int                   `json:"threads"`
	Metered    watch.Metered         `json:"metered"`
	Traffic    []report.Traffic      `json:"traffic"`
	Beside     map[string]wire.Count `json:"beside,omitempty"`
	AtMost     bool                  `json:"at_most,omitempty"` // the plan is an upper bound
	Deviation  float64               `json:"deviation,omitempty"`
	Rows       train.RowCounts       `json:"rows"`
	CPU        cpuUse                `json:"cpu"`

	Explainer train.ExplainerUse `json:"explainer"`
	Launches  train.Launches     `json:"launches"`

	Evaluation *train.Evaluation `json:"evaluation,omitempty"`

	// Shard is the file that the worker wrote its learnt rows to; nil: it has none, or they are sent.
	Shard *cluster.Shard `json:"shard,omitempty"`

	Best, LearntRows []nn.Tensor `json:"-"` // sent beside it
}

// rowsPrefix begins the names of learnt rows that are sent.
const rowsPrefix = "rows/"

// keepRows writes learnt rows to the folder for them, or else keeps them to be sent, if the run's model is saved.
func (s *Share) keepRows(rows []nn.Tensor, of *spec.Spec, folder string) error {
	if len(rows) == 0 || of.Output.Dir == "" {
		return nil
	}
	file, err := resume.PackTensors(rows, nil)
	if err != nil {
		return err
	}
	if s.Shard = resume.WriteShard(folder, "learnt", file); s.Shard == nil {
		s.LearntRows = rows
	}
	return nil
}

// blob are the weights of rank 0, and learnt rows that are sent; nil: there are none.
func (s *Share) blob(rank int) ([]byte, error) {
	var list []nn.Tensor
	if rank == 0 {
		list = slices.Clip(s.Best)
	}
	for _, t := range s.LearntRows {
		t.Name = rowsPrefix + t.Name
		list = append(list, t)
	}
	if rank > 0 && list == nil {
		return nil, nil
	}
	packed, err := resume.PackTensors(list, nil)
	if err != nil {
		return nil, err
	}
	return packed.Bytes()
}

// unpack is the inverse of blob.
func (s *Share) unpack(blob []byte) error {
	list, err := resume.UnpackTensors(blob)
	for _, t := range list {
		if name, ok := strings.CutPrefix(t.Name, rowsPrefix); ok {
			t.Name = name
			s.LearntRows = append(s.LearntRows, t)
		} else {
			s.Best = append(s.Best, t)
		}
	}
	return err
}

// JoinShares joins what the workers ended with. They must agree on all that was all-reduced.
func JoinShares(shares []*Share) (*train.Result, error) {
	first := shares[0]
	for r, s := range shares {
		if !s.agrees(first) {
			return nil, fmt.Errorf("rank %d ended with %d epochs (%s) and best epoch %d, rank 0 with %d (%s) and %d: "+
				"they have diverged, which is a bug", r, len(s.History.Loss), s.Reason, s.History.BestEpoch,
				len(first.History.Loss), first.Reason, first.History.BestEpoch)
		}
	}
	out := &train.Result{History: first.History.Floats(), Metric: first.Metric, Reason: first.Reason,
		ValMetric: float64(first.Val), TestMetric: float64(first.Test), Parameters: first.Parameters, Learnt: first.Learnt,
		Best: first.Best, Evaluation: first.Evaluation}
	for _, s := range shares {
		out.PeakBytes = max(out.PeakBytes, s.PeakBytes)
		switch {
		case s.Shard != nil:
			out.LearntFiles = append(out.LearntFiles, train.LearntFile{Path: s.Shard.Path, Bytes: s.Shard.Bytes,
				CRC32C: s.Shard.CRC32C})
		case len(s.LearntRows) > 0:
			out.LearntFiles = append(out.LearntFiles, train.LearntFile{Rows: s.LearntRows})
		}
	}
	return out, nil
}

func (s *Share) agrees(o *Share) bool {
	same := func(a, b report.Number) bool { return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) }
	return s.Reason == o.Reason && s.History.BestEpoch == o.History.BestEpoch &&
		slices.EqualFunc(s.History.Loss, o.History.Loss, same)
}

// NewShare is the share of a worker whose training gave r, from a state (nil: from the beginning).
func NewShare(r *train.Result, from *train.State, m *watch.Meter, end wire.Endpoint) *Share {
	return &Share{History: resume.NewHistory(&r.History), Metric: r.Metric, Reason: r.Reason,
		Val: report.Number(r.ValMetric), Test: report.Number(r.TestMetric), Parameters: r.Parameters, Learnt: r.Learnt,
		PeakBytes: r.PeakBytes, Metered: m.Total(), AtMost: r.Plan.AtMost, Deviation: r.Plan.Deviation, Rows: r.Rows,
		Traffic: report.NewTraffic(plannedBytes(from, r), end.Ledger().SentBytes()), Beside: end.Ledger().Beside(),
		Best: r.Best, Evaluation: r.Evaluation}
}

// Together runs a worker at each endpoint, in a goroutine. When one fails, so do the others.
func Together(ends []wire.Endpoint, work func(end wire.Endpoint) (*Share, error)) ([]*Share, error) {
	shares, errs := make([]*Share, len(ends)), make([]error, len(ends))
	var wg sync.WaitGroup
	for r, end := range ends {
		wg.Go(func() {
			if shares[r], errs[r] = work(end); errs[r] != nil {
				end.Fail(errs[r])
			}
		})
	}
	wg.Wait()
	return shares, FirstError(errs)
}

// FirstError is the error that caused the other ranks' errors.
func FirstError(errs []error) error {
	var any error
	for r, err := range errs {
		switch f, echo := errors.AsType[*wire.Failure](err); {
		case err == nil:
		case !echo || f.Rank == r:
			return fmt.Errorf("rank %d: %w", r, err)
		case any == nil:
			any = fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return any
}

// CPUShare is the share of all processors' time that workers used.
func CPUShare(shares []*Share) report.Number {
	var used, cores, wall float64
	for _, s := range shares {
		used, cores, wall = used+s.CPU.Seconds, cores+s.CPU.Cores, max(wall, s.CPU.Wall)
	}
	if wall == 0 {
		return 0
	}
	return report.Number(used / (wall * cores))
}

// plannedBytes is what the plan says that a run sends which went as r did.
func plannedBytes(from *train.State, r *train.Result) wire.Bytes {
	first, epochs, evaluated := 0, len(r.Loss), len(r.Measured)
	if from != nil {
		first, epochs, evaluated = from.Epoch, epochs-from.Epoch, evaluated-len(from.History.Measured)
	}
	if r.MeasuredAgain {
		evaluated++
	}
	begun := epochs
	if r.Reason == "interrupted" {
		begun++
	}
	p := *r.Plan
	if r.Reason == "interrupted" { // it goes on
		p.End = nil
	}
	return p.Total(first, epochs, evaluated, begun)
}
