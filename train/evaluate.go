package train

import (
	"maps"
	"math"

	"starling/event"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Evaluation is what is found of the best weights when a run ends.
type Evaluation = nn.Evaluation

// ClassReport is a class in it.
type ClassReport = nn.ClassReport

// The outputs of the best epoch stay on the device, those for the validation and test vertices, so that a run ends with
// a report of them without another pass: threshold, metrics, counts by class, calibration. Workers add up tallies, and
// share scores as for metrics of them. A resumed run whose best epoch was before measures the best weights once more.

// remember adds a measurement to the history, and keeps the outputs if it is the best.
func (f *Loop) remember(e *event.Epoch, logits tensor.Matrix) (best bool) {
	kept := f.kept
	for k := range kept { // of every measurement, so that its time does not depend on what was measured
		kept[k] = f.splitOutputs(logits, k+1)
	}
	if !f.again {
		f.Remember(e)
	}
	if best = f.again || e.Best; best {
		kept, f.kept = f.kept, kept
	}
	for k := range kept {
		kept[k].free()
	}
	return best && !f.again
}

// evaluate adds to a result what is found of its best weights.
func (f *Loop) evaluate(r *Result) error {
	if f.Known.Labels == nil {
		return nil
	}
	if err := f.measureAgain(r); err != nil {
		return err
	}
	defer func() {
		for k := range f.kept {
			f.kept[k].free()
		}
	}()
	j, epoch := f.judge(), f.State.Epoch
	if err := f.setThreshold(j, epoch); err != nil {
		return err
	}
	width := j.Width()
	all := make([]float64, 2*width)
	for k := range f.kept {
		f.tally(j, all[k*width:(k+1)*width], f.kept[k])
	}
	if err := f.Peers.AllReduce(epoch, 0, all); err != nil {
		return err
	}
	at, split := 1, "test"
	if f.known.sizes[2] == 0 {
		at, split = 0, "val"
	}
	found := j.Evaluation(all[at*width:(at+1)*width], split)
	scored, err := f.endScores(j, epoch, at)
	if err != nil || found == nil {
		return err
	}
	if r.Evaluation = found; scored != nil {
		found.AddScores(scored)
	}
	f.addMeasures(r)
	return nil
}

// addMeasures adds the measures that belong to the task where the run was judged by another metric.
func (f *Loop) addMeasures(r *Result) {
	r.Measures = maps.Clone(r.Measures)
	for _, name := range []string{"micro_f1", "r2", "mse"} {
		x, ok := r.Evaluation.Metrics[name]
		_, has := r.Measures[name]
		if ok && !has && r.Measures != nil && f.Task.Name() != "accuracy" {
			r.Measures[name] = x
		}
	}
}

// measureAgain measures the best weights of a run that was resumed after them. Rows that are learnt are not kept with
// them: there is then nothing to measure.
func (f *Loop) measureAgain(r *Result) error {
	from := f.Opt.Resume
	if from == nil || r.BestEpoch < 0 || r.BestEpoch >= from.Epoch || r.Best == nil || f.Learnt != nil ||
		f.Opt.Embeddings != nil {
		return nil
	}
	if err := f.Model.Load(f.Dev, r.Best); err != nil {
		return err
	}
	f.again, r.MeasuredAgain = true, true
	defer func() { f.again = false }()
	if err := f.Measure(&event.Epoch{Epoch: f.State.Epoch}); err != nil {
		return err
	}
	return f.Model.Load(f.Dev, r.Final)
}

// tally adds a split's vertices of this worker.
func (f *Loop) tally(j *nn.Judge, t nn.Tally, o *Outputs) {
	l := f.Known.Labels
	o.each(func(_ int, v uint32, outputs []float64) {
		switch {
		case l.Values != nil:
			nn.ErrorCounts(t).Add(l.Numbers(int(v)), outputs)
		case l.Multi != nil:
			known := l.Row(int(v))
			j.AddMarks(t, outputs, func(c int) bool { return known[c] == 1 })
		default:
			j.AddClass(t, outputs, int(l.Class[v]))
		}
	})
}

// chooses reports whether a judge has thresholds.
func chooses(j *nn.Judge) bool { return j.Two() || j.Task == nn.TaskMultiLabel }

// setThreshold sets the one that is asked for, or chooses the best on the validation vertices.
func (f *Loop) setThreshold(j *nn.Judge, epoch int) error {
	given := f.Opt.Threshold
	if !chooses(j) || given == 0 {
		return nil
	}
	list := make([]float64, len(j.Scored()))
	for i, c := range j.Scored() {
		if list[i] = given; !math.IsNaN(given) {
			continue
		}
		s, err := f.scoresOf(epoch, 1, c, f.kept[0])
		if err != nil {
			return err
		}
		list[i] = s.Best(f.metric.Name)
	}
	j.Threshold = list
	return nil
}

// scoresAtEnd reports whether scores are shared when a run ends: of two classes, or where it is judged by them.
func scoresAtEnd(j *nn.Judge, metric string) bool {
	m, _ := nn.FindMetric(metric)
	return j.Task != nn.TaskRegression && (j.Two() || m.Scores)
}

// endScores are the scores of a split by class; nil: they are not shared.
func (f *Loop) endScores(j *nn.Judge, epoch, kept int) (all []*nn.Scored, err error) {
	if !scoresAtEnd(j, f.metric.Name) {
		return nil, nil
	}
	for _, c := range j.Scored() {
		s, err := f.scoresOf(epoch, kept+1, c, f.kept[kept])
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// planEvaluation plans what evaluate sends.
func (s *Site) planEvaluation(p *wire.Plan, task nn.Task) {
	if s.Opt.Pairs != nil {
		return
	}
	p.End = wire.Bytes{}
	j := &nn.Judge{Task: map[string]string{"accuracy": nn.TaskClassify, "micro_f1": nn.TaskMultiLabel,
		"r2": nn.TaskRegression}[task.Name()], Classes: s.Opt.Model.Out}
	book := s.Part.Book
	scores := func(n int64) {
		for range j.Scored() {
			s.planSums(p.End, 2*int(n))
		}
	}
	if chooses(j) && math.IsNaN(s.Opt.Threshold) {
		scores(book.Val)
	}
	s.planSums(p.End, 2*j.Width())
	if !scoresAtEnd(j, s.Opt.Metric) {
		return
	}
	if book.Test > 0 {
		scores(book.Test)
	} else {
		scores(book.Val)
	}
}
