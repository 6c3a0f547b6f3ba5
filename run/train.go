package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"starling/cluster"
	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/simd"
	"starling/train"
)

// prepared is a run that can start: its spec settled, its data open, its plan made.
type prepared struct {
	spec Spec
	data *graph.Dataset
	plan *Plan
	from *train.State // nil: from the beginning
}

// DryRun is the spec with all defaults filled in and what the run would need.
func DryRun(s Spec, events event.Listener) (Spec, *Plan, error) {
	if err := s.settleWorkers(); err != nil {
		return s, nil, err
	}
	if s.distributed() {
		return dryRunCluster(s, event.All(events))
	}
	p, err := prepare(s, event.All(events))
	if err != nil {
		return s, nil, err
	}
	defer p.data.Close()
	return p.spec, p.plan, nil
}

// check is all that can be checked before the data is open.
func (s *Spec) check() error {
	if err := s.Validate(); err != nil {
		return err
	}
	for _, f := range []struct{ flag, path string }{{"--json", s.JSON}, {"--events", s.Events}, {"--trace", s.Trace}} {
		if err := CheckFile(f.flag, f.path); err != nil {
			return err
		}
	}
	return checkRunFolder(s.Out)
}

// prepare checks all that can be checked before the first epoch.
func prepare(s Spec, events event.Listener) (*prepared, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	data, err := openForTraining(s.Dataset, s.ofVertices())
	if err != nil {
		return nil, err
	}
	p := &prepared{spec: s, data: data}
	if err = s.checkEdges(data); err == nil {
		err = p.settle(events)
	}
	if err != nil {
		data.Close()
		return nil, err
	}
	return p, nil
}

// checkEdges refuses what the edges do not have.
func (s *Spec) checkEdges(data *graph.Dataset) error {
	switch {
	case s.EdgeFeatures && data.Graph.EdgeDim == 0:
		return &graph.InputError{File: s.Dataset, Field: "--edge-features", Found: "a dataset whose edges have none", Want: "edge_features.npy, a row an edge",
			Fix: "leave it out, or add the file: see docs/data.md"}
	case s.ofPairs() && !hasPairs(data.Graph):
		return &graph.InputError{File: s.Dataset, Field: "--task", Found: s.Task + " with a graph that has no edge between two vertices", Want: "edges to learn from", Fix: "import the dataset with its edges"}
	case s.Weighted && data.Graph.Weights == nil:
		return &graph.InputError{File: s.Dataset, Field: "--weighted", Found: "a graph without edge weights", Want: "a dataset with weights.npy", Fix: "leave it out, or import the graph with weights"}
	}
	return nil
}

// settle compares the spec with the data, the checkpoints and the machine.
func (p *prepared) settle(events event.Listener) (err error) {
	s := &p.spec
	if s.Patience > 0 && s.ofVertices() && len(p.data.Splits.Val) == 0 {
		return mistake("--patience", fmt.Sprint(s.Patience), "0 for a dataset without a validation split", "")
	}
	if err := s.settleTask(&p.data.Meta); err != nil {
		return err
	}
	from, err := s.checkpoints(&p.data.Meta, events)
	if err != nil {
		return err
	}
	if from != nil {
		p.from = from.State
	}
	s.resolve(&p.data.Meta, simd.Best().String())
	if p.plan, err = plan(s, p.data); err != nil {
		return err
	}
	return s.fits(p.plan, p.data, tensor.MemoryFree())
}

// checkpoints reads the one to go on from, or makes sure that no other run's are there.
func (s *Spec) checkpoints(data *graph.Meta, events event.Listener) (from *start, err error) {
	if s.CheckpointDir == "" {
		return nil, nil
	}
	if err := checkWritable("--checkpoint-dir", s.CheckpointDir); err != nil {
		return nil, err
	}
	if s.Resume {
		return s.continueFrom(data, events)
	}
	there, err := cluster.Epochs(s.CheckpointDir)
	if err == nil && len(there) > 0 {
		if s.ResumeIfAny {
			return s.continueFrom(data, events)
		}
		return nil, mistake("--checkpoint-dir", fmt.Sprintf("%s with %d checkpoints of an earlier run", s.CheckpointDir, len(there)), "an empty folder", "go on from them with --resume, or choose another folder")
	}
	return nil, err
}

// lastBreath is how long a run that was killed may still hold its folder: the system takes
// its memory back first.
const lastBreath = 3 * time.Second

// claimCheckpoints keeps other runs out of the folder: each would remove what the other
// has written.
func (s *Spec) claimCheckpoints() (release func(), err error) {
	if s.CheckpointDir == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(s.CheckpointDir, 0o755); err != nil {
		return nil, mistake("--checkpoint-dir", err.Error(), "a folder, or where one can be made", "")
	}
	release, free, err := disk.Claim(s.CheckpointDir)
	for start := time.Now(); err == nil && !free && time.Since(start) < lastBreath; {
		time.Sleep(100 * time.Millisecond)
		release, free, err = disk.Claim(s.CheckpointDir)
	}
	if err == nil && !free {
		err = mistake("--checkpoint-dir", s.CheckpointDir+", where another run keeps its checkpoints now", "a folder of its own", "choose another, or wait until that run has ended")
	}
	return release, err
}

// openForTraining maps a dataset and checks what training will rely on. A pass over
// everything costs less than an epoch, which reads it all anyway. Tasks of pairs need
// no labels.
func openForTraining(dir string, labelled bool) (*graph.Dataset, error) {
	if dir == "" {
		return nil, &graph.InputError{Field: "DIR", Found: "no dataset", Want: "a dataset folder", Fix: "make one with starling generate or starling import"}
	}
	d, err := graph.OpenWith(dir, graph.OpenOptions{CheckFeatures: true})
	if err != nil {
		return nil, err
	}
	if 4*d.Graph.Edges() > graph.SmallArray {
		err = graph.InFile(dir, d.Graph.Validate())
	}
	lack := func(what string) error {
		return &graph.InputError{File: dir, Found: "no " + what, Want: "a dataset with features, labels and a training split", Fix: "import or generate it with " + what}
	}
	switch {
	case err != nil:
	case d.Features == nil:
		err = lack("features")
	case !labelled:
	case d.Labels == nil:
		err = lack("labels")
	case len(d.Splits.Train) == 0:
		err = lack("a training split")
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// threads is the number of cores the run uses.
func (s *Spec) threads() int {
	switch {
	case s.DType == "f64":
		return 1
	case s.Threads > 0:
		return s.Threads
	}
	return processors
}

// Train runs s. When ctx ends it finishes the epoch, saves, and returns a report
// with reason "interrupted". What s asks to write is written before it returns,
// except the report itself, which is the caller's. There is a report beside the error
// if the run came to its end and only something of it could not be written.
func Train(ctx context.Context, s Spec, events event.Listener) (*Report, error) {
	return trainAs(ctx, s, nil, events)
}

// trainAs is Train, with the workers that come to a meeting.
func trainAs(ctx context.Context, s Spec, m *meeting, events event.Listener) (*Report, error) {
	start := time.Now()
	defer tidyHeap()()
	events = event.All(events)
	if err := s.settleWorkers(); err != nil {
		return nil, err
	}
	if s.distributed() {
		return trainCluster(ctx, s, m, events)
	}
	p, err := prepare(s, events)
	if err != nil {
		return nil, err
	}
	defer p.data.Close()
	release, err := p.spec.claimCheckpoints()
	if err != nil {
		return nil, err
	}
	defer release()
	events, finish, err := p.spec.listeners(ctx, events)
	if err != nil {
		return nil, err
	}
	events, shown, err := p.watched(events)
	if err != nil {
		return nil, errors.Join(err, finish())
	}
	defer shown()
	result, err := p.train(ctx, events)
	if result == nil {
		return nil, errors.Join(err, finish())
	}
	err = errors.Join(err, p.spec.conclude(&p.data.Meta, p.data.Graph.Weights != nil, result, start, events, p.writeHeldOut), finish())
	report := newReport(&p.spec, &p.data.Meta, p.plan, result)
	report.Seconds = time.Since(start).Seconds()
	return report, err
}

// conclude writes --out and says that the run has come to its end. What cannot be written
// keeps nothing else from that.
func (s *Spec) conclude(data *graph.Meta, weighted bool, r *train.Result, start time.Time, events event.Listener, more ...func(dir string) error) (err error) {
	if s.Out != "" {
		err = writeRunFolder(s, data, weighted, r, more...)
	}
	events.On(event.Done{Reason: r.Reason, Epochs: len(r.Loss), BestEpoch: r.BestEpoch, Val: r.ValMetric, Test: r.TestMetric, Seconds: time.Since(start).Seconds()})
	return err
}

// train runs the loop, with checkpoints if they are asked for.
func (p *prepared) train(ctx context.Context, events event.Listener) (*train.Result, error) {
	s := &p.spec
	dev := s.device()
	defer dev.Close()
	opt, err := s.options(&p.data.Meta)
	if err != nil {
		return nil, err
	}
	opt.Resume = p.from
	saved := s.saving(&opt, &p.data.Meta, events)
	result, err := s.trainOn(ctx, dev, p.data, opt, events)
	return result, errors.Join(err, saved())
}

// saving has the loop write checkpoints, if they are asked for. saved returns when
// all are on disk.
func (s *Spec) saving(opt *train.Options, data *graph.Meta, events event.Listener) (saved func() error) {
	if s.CheckpointDir == "" {
		return func() error { return nil }
	}
	last := -1
	if opt.Resume != nil {
		last = opt.Resume.Epoch
	}
	saver := cluster.NewSaver(s.CheckpointDir, s.KeepCheckpoints, last, func(path string, epoch int, bytes int64) {
		events.On(event.Saved{Path: path, Epoch: epoch, Bytes: bytes})
	})
	mark := markOf(data)
	opt.SaveEvery = s.CheckpointEvery
	opt.Save = func(st *train.State) error {
		c, err := toCheckpoint(s, mark, "", st)
		if err != nil {
			return err
		}
		return unsaved(saver.Save(c))
	}
	return func() error { return unsaved(saver.Wait()) }
}

// unsaved says what it is that could not be written.
func unsaved(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("checkpoint: %w", err)
}

// options are s as the loop wants them.
func (s *Spec) options(data *graph.Meta) (train.Options, error) {
	schedule, err := nn.ParseSchedule(s.Schedule)
	if err != nil {
		return train.Options{}, mistake("--schedule", err.Error(), "", "")
	}
	opt := train.Options{Model: s.modelConfig(data), Optim: s.optimConfig(), Schedule: schedule, Epochs: s.Epochs, EvalEvery: s.EvalEvery,
		Patience: s.Patience, Seed: s.Seed, Inductive: s.Inductive, Rows: s.rows(), CacheFirst: s.CacheFirst == "on", RowNormalise: s.RowNormalize}
	if opt.Strategy, err = s.choice(); err != nil {
		return opt, err
	}
	for _, err := range []error{opt.Model.Validate(), opt.Optim.Validate()} {
		if err != nil {
			return opt, &graph.InputError{Found: err.Error()}
		}
	}
	return opt, nil
}

// listeners adds the files that s asks for; finish completes them.
func (s *Spec) listeners(ctx context.Context, events event.Listener) (all event.Listener, finish func() error, err error) {
	list := []event.Listener{events}
	var ends []func() error
	finish = func() (err error) {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
		return err
	}
	if s.Trace != "" {
		trace, err := event.NewTrace(s.Trace)
		if err != nil {
			return nil, nil, err
		}
		list, ends = append(list, trace), append(ends, trace.Close)
	}
	if s.Events != "" {
		f, err := createEvents(ctx, s.Events, events)
		if err != nil {
			return nil, nil, errors.Join(err, finish())
		}
		lines := event.NewJSONLines(f)
		list, ends = append(list, lines), append(ends, func() error { return errors.Join(lines.Err(), f.Close()) })
	}
	return event.Locked(event.All(list...)), finish, nil
}

// createEvents opens the file of --events, for writing only: a pipe that is also open for
// reading would never tell that its reader has gone, and stop the run when it is full.
func createEvents(ctx context.Context, path string, events event.Listener) (*os.File, error) {
	for waits := false; ; waits = true {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o666)
		if info, e := os.Stat(path); !errors.Is(err, syscall.ENXIO) || e != nil || info.Mode()&os.ModeNamedPipe == 0 {
			return f, err
		}
		if !waits {
			events.On(event.Note{Text: "waiting until somebody reads from " + path + " (--events)"})
		}
		select {
		case <-ctx.Done():
			return nil, ErrInterrupted
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var _ tensor.Device = (*dry)(nil)
