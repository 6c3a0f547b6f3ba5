package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/rng"
	"starling/setup"
	"starling/spec"
)

// Tune searches over settings by asynchronous successive halving (Li et al., "A System for Massively Parallel
// Hyperparameter Tuning", MLSys 2020, algorithm 2): every trial is trained for a few epochs, and one in --reduction of
// those that were goes on, from its checkpoint, for as many times more. --checkpoint-dir has the results that there are,
// so that the same command goes on where it was stopped. When ctx ends, the result is what has run, with ErrInterrupted.
func Tune(ctx context.Context, s spec.Tune, given func(flag string) bool, events event.Listener) (*report.Tune, error) {
	events = event.Locked(event.All(events))
	t, err := newTuning(&s, given)
	if err != nil {
		return nil, err
	}
	err = t.search(ctx, events)
	return t.result(), err
}

type tuning struct {
	*spec.Tune
	space []spec.Dimension
	runs  []spec.Combination
	rungs []int // epochs
	asha  asha
	found []report.Trial
	meta  *graph.Meta
	name  string // of the metric
}

func newTuning(s *spec.Tune, given func(string) bool) (*tuning, error) {
	if err := cmp.Or(spec.CheckFile("--json", s.Output.JSON), s.CheckSearch(), s.CheckValues(),
		setup.CountSlots(&s.Spec)); err != nil {
		return nil, err
	}
	meta, err := graph.ReadMeta(s.Dataset)
	if err != nil {
		return nil, err
	}
	t := &tuning{Tune: s, meta: meta, found: make([]report.Trial, s.Trials)}
	if t.space, err = s.Dimensions(meta.Schema != nil, given); err != nil {
		return nil, err
	}
	if s.Checkpoints.Dir == "" {
		s.Checkpoints.Dir = filepath.Base(filepath.Clean(s.Dataset)) + "-tune"
	}
	first, err := drawTrial(s, t.space, 0)
	if err == nil {
		err = first.Spec.Complete()
	}
	if err != nil {
		return nil, err
	}
	for epochs := first.Spec.Training.Epochs; ; epochs /= s.Reduction {
		t.rungs = append([]int{epochs}, t.rungs...)
		if s.Reduction == 1 || len(t.rungs) == 3 || epochs/s.Reduction < 1 {
			break
		}
	}
	t.asha = asha{reduction: s.Reduction, trials: s.Trials, rungs: len(t.rungs), scores: make([][]float64, s.Trials)}
	if err := t.drawTrials(); err != nil {
		return nil, err
	}
	return t, t.keepSearch()
}

// drawTrials draws the settings of all trials. It refuses a search of which every trial would be refused.
func (t *tuning) drawTrials() (refused error) {
	possible := 0
	for n := range t.Trials {
		c, err := drawTrial(t.Tune, t.space, n)
		t.runs = append(t.runs, c)
		t.found[n] = report.Trial{Number: n, Settings: c.Values}
		if err != nil {
			t.found[n].Error = err.Error()
		} else {
			of := c.Spec
			err = cmp.Or(of.Complete(), of.Validate())
		}
		if err == nil {
			possible++
		} else if refused == nil {
			refused = err
		}
	}
	if possible > 0 {
		return nil
	}
	return refused
}

// drawTrial is a choice of settings: a function of the seed, the trial and the settings' names alone.
func drawTrial(s *spec.Tune, space []spec.Dimension, trial int) (spec.Combination, error) {
	key := rng.New(s.Seed).Fold(tuneStream).Fold(uint64(trial))
	return s.Trial(space, func(setting string) float64 {
		h := fnv.New64a()
		h.Write([]byte(setting))
		return key.Fold(h.Sum64()).Float64(0)
	})
}

// tuneStream keeps draws of trials apart from others of the seed.
const tuneStream = 0x74756e65

// searchFile says what is searched in a folder.
type searchFile struct {
	Seed      uint64           `json:"seed"`
	Parallel  int              `json:"parallel"`
	Reduction int              `json:"reduction"`
	Trials    int              `json:"trials"`
	Rungs     []int            `json:"epochs"`
	Space     []spec.Dimension `json:"space"`
	Settings  string           `json:"settings"` // of all trials
	Data      string           `json:"data"`
}

// keepSearch writes what is searched, or refuses a folder that has another search.
func (t *tuning) keepSearch() error {
	same, unset := t.Spec, spec.Default()
	same.Output, same.Checkpoints, same.Dataset = unset.Output, unset.Checkpoints, ""
	b, err := json.MarshalIndent(searchFile{t.Seed, t.Parallel, t.Reduction, t.Trials, t.rungs, t.space, same.String(),
		fmt.Sprint(t.meta.Nodes, t.meta.Edges, t.meta.CRC32C)}, "", "\t")
	if err != nil {
		return err
	}
	path := filepath.Join(t.Checkpoints.Dir, "search.json")
	before, err := os.ReadFile(path)
	switch {
	case err == nil && string(before) != string(b):
		return spec.Mistake("--checkpoint-dir", t.Checkpoints.Dir+", which has another search",
			"the same data, settings, space, --seed, --trials, --parallel and --reduction", "give those, or another folder")
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(t.Checkpoints.Dir, 0o755); err != nil {
		return err
	}
	return disk.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// job is a trial that is trained up to a rung, and what came of it.
type job struct {
	trial, rung int
	run         *report.Run
	err         error
}

// search gives out jobs. The job with number k is chosen from the results of those before k - parallel + 1, and of no
// others, whichever end first: the choice depends on nothing but the settings.
func (t *tuning) search(ctx context.Context, events event.Listener) error {
	var running []chan job
	take := func() error {
		j := <-running[0]
		running = running[1:]
		return t.take(j, events)
	}
	var failure error
	for failure == nil {
		if len(running) == t.Parallel {
			failure = take()
			continue
		}
		trial, rung, ok := t.asha.next()
		switch {
		case ok && ctx.Err() == nil:
			done := make(chan job, 1)
			running = append(running, done)
			go func() {
				r, err := t.train(ctx, trial, rung)
				done <- job{trial, rung, r, err}
			}()
		case len(running) > 0:
			failure = take()
		case ctx.Err() != nil:
			return report.ErrInterrupted
		default:
			return nil
		}
	}
	for len(running) > 0 { // what they have done is kept
		take()
	}
	return failure
}

// train takes a trial up to a rung, from the checkpoint of the rung before.
func (t *tuning) train(ctx context.Context, trial, rung int) (*report.Run, error) {
	if text := t.found[trial].Error; text != "" {
		return nil, errors.New(text)
	}
	s := t.runs[trial].Spec
	s.Output.JSON, s.Output.Dir, s.Training.Epochs = "", "", t.rungs[rung]
	name := fmt.Sprintf("trial-%d", trial)
	ended := endedRun{file: filepath.Join(t.Checkpoints.Dir, fmt.Sprintf("%s-%d.json", name, t.rungs[rung]))}
	s.Checkpoints.Dir, s.Checkpoints.Resume, s.Checkpoints.ResumeIfAny = filepath.Join(t.Checkpoints.Dir, name), false, true
	if err := ended.identify(s); err != nil {
		return nil, err
	}
	if r, err := ended.read(); r != nil || err != nil {
		return r, err
	}
	r, err := Train(ctx, s, nil)
	if err == nil && r.Reason == "interrupted" {
		return nil, report.ErrInterrupted
	}
	if err == nil {
		err = ended.write(r)
	}
	return r, err
}

// take notes a job's result. A trial that fails is a row; an interruption is an error.
func (t *tuning) take(j job, events event.Listener) error {
	if errors.Is(j.err, report.ErrInterrupted) {
		return report.ErrInterrupted
	}
	x, score := &t.found[j.trial], math.Inf(-1)
	if j.err != nil {
		x.Error = strings.ReplaceAll(j.err.Error(), "\n", "; ")
	} else {
		x.Epochs, x.Val, x.Test = j.run.Epochs, j.run.BestValAccuracy, j.run.TestAccuracy
		x.Seconds += j.run.Seconds
		t.name = j.run.Metric
		if v := float64(x.Val); v == v {
			score = v
		}
	}
	t.asha.scores[j.trial] = append(t.asha.scores[j.trial], score)
	if !t.Output.Quiet {
		text := fmt.Sprintf("trial %d, %s: %.4f after %s", j.trial, strings.Join(x.Settings, " "), score,
			event.Tally(t.rungs[j.rung], "epoch"))
		if x.Error != "" {
			text = fmt.Sprintf("trial %d, %s failed: %s", j.trial, strings.Join(x.Settings, " "), x.Error)
		}
		events.On(event.Note{Text: text})
	}
	return nil
}

func (t *tuning) result() *report.Tune {
	out := &report.Tune{Dataset: cmp.Or(t.meta.Name, filepath.Base(t.Dataset)), Seed: t.Seed,
		Epochs: t.rungs[len(t.rungs)-1], Metric: t.name}
	for _, x := range t.found {
		if x.Epochs > 0 || x.Error != "" {
			out.Trials = append(out.Trials, x)
		}
	}
	out.Sort()
	return out
}

// asha chooses the next job from the results there are (algorithm 2 of the paper).
type asha struct {
	reduction, trials, rungs int
	scores                   [][]float64 // by trial and rung
	begun                    []int       // how many rungs of each trial have been given out
}

// next is the best trial of a rung that may go on, from the highest rung, or a new one. At the end the best trial is
// trained to the last rung, if none was.
func (a *asha) next() (trial, rung int, ok bool) {
	for k := a.rungs - 2; k >= 0; k-- {
		best := a.best(k)
		for _, n := range best[:len(best)/a.reduction] {
			if a.begun[n] == k+1 && !math.IsInf(a.scores[n][k], -1) {
				return a.give(n)
			}
		}
	}
	if len(a.begun) < a.trials {
		a.begun = append(a.begun, 0)
		return a.give(len(a.begun) - 1)
	}
	for k := a.rungs - 1; k >= 0; k-- {
		best := a.best(k)
		for n, begun := range a.begun {
			if begun > len(a.scores[n]) {
				return 0, 0, false // a job is on its way
			}
		}
		if len(best) > 0 {
			if n := best[0]; k < a.rungs-1 && !math.IsInf(a.scores[n][k], -1) {
				return a.give(n)
			}
			return 0, 0, false
		}
	}
	return 0, 0, false
}

func (a *asha) give(trial int) (int, int, bool) {
	a.begun[trial]++
	return trial, a.begun[trial] - 1, true
}

// best are the trials with a result at a rung, the best first.
func (a *asha) best(rung int) (list []int) {
	for n := range a.scores {
		if len(a.scores[n]) > rung {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(a.scores[y][rung], a.scores[x][rung]) })
	return list
}
