package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/report"
	"starling/spec"
)

// Sweep trains every combination of settings with every seed, one run after the other on the
// same parts. With --checkpoint-dir each run has a folder there for its checkpoints and, once it
// has ended, a file with its result, so that --resume continues where the sweep was stopped. A
// combination that fails is a row with its error; when ctx ends, the result is what has run, with
// ErrInterrupted.
func Sweep(ctx context.Context, s spec.Sweep, events event.Listener) (*report.Sweep, error) {
	events = event.Locked(minorNotesOnce(event.All(events)))
	runs, err := plannedRuns(&s)
	if err != nil {
		return nil, err
	}
	share, err := sharedParts(ctx, &s, runs, events)
	if err != nil {
		return nil, err
	}
	defer share()
	return trainSweep(ctx, &s, runs, events)
}

// plannedRuns are the combinations, each checked before the first run.
func plannedRuns(s *spec.Sweep) ([]spec.Combination, error) {
	if err := cmp.Or(spec.CheckFile("--json", s.Output.JSON), countSlots(&s.Spec)); err != nil {
		return nil, err
	}
	runs, err := s.Combinations()
	for i := range runs {
		one := runs[i].Spec
		if err == nil {
			err = one.Complete()
		}
		if err == nil {
			err = checkSpec(&one)
		}
		if err != nil {
			return nil, sweepMistake(err, &runs[i])
		}
	}
	return runs, err
}

// sweepMistake says which combination a mistake is in.
func sweepMistake(err error, c *spec.Combination) error {
	if c.Label() == "" {
		return err
	}
	return fmt.Errorf("--sweep %s: %w", c.Label(), err)
}

// sharedParts cuts the dataset once for all runs of several workers that cut it alike.
func sharedParts(ctx context.Context, s *spec.Sweep, runs []spec.Combination, events event.Listener) (func(), error) {
	first := runs[0].Spec
	if err := first.Complete(); err != nil {
		return nil, err
	}
	if !first.Distributed() || first.PartitionFolder() != "" || !cutAlike(runs) {
		return func() {}, nil
	}
	found, err := findParts(ctx, &first, events)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		one := &runs[i].Spec
		// it is partitioned now
		one.Cluster.Partition, one.Cluster.Partitioner = found.dir, spec.Default().Cluster.Partitioner
		if partition.IsPartition(one.Dataset) {
			one.Dataset = ""
		}
	}
	return found.remove, nil
}

// cutAlike reports whether all runs train on the same parts.
func cutAlike(runs []spec.Combination) bool {
	a := &runs[0].Spec
	for i := range runs {
		b := &runs[i].Spec
		if a.Cluster.Workers != b.Cluster.Workers || a.Cluster.Parts != b.Cluster.Parts ||
			a.Cluster.Servers != b.Cluster.Servers || a.Cluster.Partitioner != b.Cluster.Partitioner ||
			a.Cluster.Partition != b.Cluster.Partition {
			return false
		}
	}
	return true
}

func trainSweep(ctx context.Context, s *spec.Sweep, runs []spec.Combination, events event.Listener) (
	*report.Sweep, error) {
	out := &report.Sweep{}
	for i := range runs {
		row := report.SweepRow{Settings: runs[i].Values}
		err := trainSeeds(ctx, s, &runs[i], &row, func(seed uint64, n int) {
			if !s.Output.Quiet {
				text := fmt.Sprintf("%s seed %d (%d of %d)", runs[i].Label(), seed, i*s.Seeds+n+1, len(runs)*s.Seeds)
				events.On(event.Note{Text: strings.TrimSpace(text)})
			}
		}, events)
		if out.Add(row); err != nil {
			return out, err
		}
	}
	return out, nil
}

// trainSeeds adds the runs of a combination to its row. Its failure is kept there; the error is
// that of an interruption.
func trainSeeds(ctx context.Context, s *spec.Sweep, c *spec.Combination, row *report.SweepRow,
	say func(seed uint64, n int), events event.Listener) error {
	for n := range s.Seeds {
		if ctx.Err() != nil {
			return report.ErrInterrupted
		}
		one := c.Spec
		one.Seed += uint64(n)
		say(one.Seed, n)
		r, err := sweepRun(ctx, one, nameOfRun(c, one.Seed), events)
		switch {
		case errors.Is(err, report.ErrInterrupted) || err == nil && r.Reason == "interrupted":
			return report.ErrInterrupted
		case err != nil:
			row.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
			events.On(event.Note{Text: fmt.Sprintf("%s failed: %v", row.Label(), err)})
			return nil
		}
		row.Runs = append(row.Runs, r)
	}
	return nil
}

// nameOfRun is that of a run's files.
func nameOfRun(c *spec.Combination, seed uint64) string {
	name := fmt.Sprintf("seed=%d", seed)
	if c.Label() != "" {
		name = c.Label() + "," + name
	}
	return strings.ReplaceAll(name, string(os.PathSeparator), "_")
}

// sweepRun trains one run, or reads its result if it has ended before.
func sweepRun(ctx context.Context, s spec.Spec, name string, events event.Listener) (*report.Run, error) {
	s.Output.JSON = ""
	if s.Output.Dir != "" {
		s.Output.Dir = filepath.Join(s.Output.Dir, name)
	}
	if s.Checkpoints.Dir == "" {
		return Train(ctx, s, events)
	}
	ended := endedRun{file: filepath.Join(s.Checkpoints.Dir, name+".json")}
	s.Checkpoints.Dir = filepath.Join(s.Checkpoints.Dir, name)
	s.Checkpoints.ResumeIfAny, s.Checkpoints.Resume = s.Checkpoints.Resume || s.Checkpoints.ResumeIfAny, false
	if err := ended.identify(s); err != nil {
		return nil, err
	}
	if s.Checkpoints.ResumeIfAny {
		if r, err := ended.read(); r != nil || err != nil {
			return r, err
		}
	}
	r, err := Train(ctx, s, events)
	if err == nil && r.Reason != "interrupted" {
		err = ended.write(r)
	}
	return r, err
}

// endedRun is the file of a run of a sweep that has ended.
type endedRun struct {
	file string
	saved
	Epochs int
}

// identify completes the settings and reads what identifies the data, without reading it.
func (e *endedRun) identify(s spec.Spec) error {
	if err := s.Complete(); err != nil {
		return err
	}
	var meta *graph.Meta
	if dir := s.PartitionFolder(); dir != "" {
		p, err := openParts(dir, &s)
		if err != nil {
			return err
		}
		meta, e.savedData = &p.meta, p.identity()
	} else {
		m, err := graph.ReadMeta(s.Dataset)
		if err != nil {
			return err
		}
		meta, e.savedData = m, savedData{Data: dataMark{Nodes: m.Nodes, Edges: m.Edges, Checksum: m.CRC32C}}
	}
	err := s.ForLabels(meta)
	e.Spec, e.Epochs = s, s.Training.Epochs
	return err
}

// sweepFile is the contents of the file.
type sweepFile struct {
	Run    saved       `json:"run"`
	Epochs int         `json:"epochs"`
	Result *report.Run `json:"result"`
}

func (e *endedRun) write(r *report.Run) error {
	b, err := json.Marshal(sweepFile{Run: e.saved, Epochs: e.Epochs, Result: r})
	if err != nil {
		return err
	}
	return disk.Write(e.file, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// read is the result; nil: the run has not ended. A result of other settings or data is refused.
func (e *endedRun) read() (*report.Run, error) {
	b, err := os.ReadFile(e.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	before := sweepFile{Run: saved{Spec: spec.Default()}}
	if err == nil {
		err = json.Unmarshal(b, &before)
	}
	if err != nil || before.Result == nil {
		return nil, spec.Mistake("--resume", fmt.Sprintf("%s: %v", e.file, err), "the result of a run of this sweep",
			"remove the file to train that run again")
	}
	setAutoAsBefore(&e.Spec, &before.Run.Spec, func(string) {})
	if err := e.Spec.SameRun(&before.Run.Spec); err != nil {
		return nil, err
	}
	if before.Epochs != e.Epochs {
		return nil, spec.Mistake("--epochs", fmt.Sprint(e.Epochs), fmt.Sprintf("%d, as %s was trained with", before.Epochs,
			e.file), "give the same setting, or another --checkpoint-dir")
	}
	return before.Result, before.Run.savedData.sameAs(e.savedData)
}
