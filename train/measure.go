package train

import (
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Metrics other than a task's own are of what is decided for the vertices of the splits, or of their scores. Counts of
// decisions add up over workers. Scores are shared, class by class, so that every worker computes a metric of all
// vertices and all find the same:
//
//	[scores of the split's vertices, in the order of ranks | which of them are of the class]
//
// A worker then holds 16 bytes for each vertex of the split, besides the scores of its own.

// measureBy takes the metric of the options on the three splits.
func (f *Loop) measureBy(e *event.Epoch) error {
	end := f.Span("step")("evaluate")
	defer end()
	logits, err := f.outputs(e.Epoch)
	if err != nil {
		return err
	}
	defer f.Dev.Free(logits)
	if err := f.MeasureOn.Err(); err != nil {
		return err
	}
	values, err := f.valuesOf(e.Epoch, logits)
	if err != nil {
		return err
	}
	e.Measured, e.Train, e.Val, e.Test = true, values[0], values[1], values[2]
	if f.remember(e, logits) {
		f.State.History.Measures = map[string]float64{f.metric.Name: e.Test}
	}
	return nil
}

// Outputs are the outputs of a model for the vertices of a split that are this worker's.
type Outputs struct {
	dev      tensor.Device
	vertices []uint32
	rows     tensor.Matrix // on the device
	whole    []float64     // all of them on the host, if they are few
}

// splitOutputs gathers those of a split.
func (f *Loop) splitOutputs(logits tensor.Matrix, split int) *Outputs {
	list := f.Known.splits()[split]
	o := &Outputs{dev: f.Dev, vertices: list}
	if len(list) > 0 {
		o.rows = f.Dev.Scratch(logits.Type(), len(list), logits.Cols)
		f.Dev.GatherRows(o.rows, logits, f.Splits[split])
	}
	return o
}

// free gives the memory on the device back.
func (o *Outputs) free() {
	if o != nil && !o.rows.IsZero() {
		o.dev.Free(o.rows)
	}
}

// readOnce is how many outputs are read at a time; more than mostWhole are read again whenever they are needed.
const readOnce, mostWhole = 1 << 18, 1 << 23

// each calls do with the outputs of every vertex; of none where there are none.
func (o *Outputs) each(do func(i int, v uint32, outputs []float64)) {
	if o == nil || o.rows.IsZero() {
		return
	}
	width, n := o.rows.Cols, o.rows.Rows
	if o.whole == nil && n*width <= mostWhole {
		o.whole = make([]float64, n*width)
		o.dev.Download(o.whole, o.rows)
	}
	step := max(1, readOnce/max(1, width))
	host := o.whole
	if host == nil {
		host = make([]float64, step*width)
	}
	for lo := 0; lo < n; lo += step {
		hi := min(lo+step, n)
		part := host
		if o.whole != nil {
			part = host[lo*width:]
		} else {
			o.dev.Download(part[:(hi-lo)*width], o.rows.Slice(lo, hi))
		}
		for i := lo; i < hi; i++ {
			do(i, o.vertices[i], part[(i-lo)*width:(i-lo+1)*width])
		}
	}
}

// valuesOf are the metric on the splits.
func (f *Loop) valuesOf(epoch int, logits tensor.Matrix) (values [3]float64, err error) {
	var all []float64
	for k := range values {
		o := f.splitOutputs(logits, k)
		if f.metric.Scores {
			values[k], err = f.scoreOf(epoch, k, o)
		} else {
			all = append(all, f.countsOf(o)...)
		}
		o.free()
		if err != nil {
			return values, err
		}
	}
	if f.metric.Scores {
		return values, nil
	}
	if err := f.Peers.AllReduce(epoch, 0, all); err != nil {
		return values, err
	}
	each := len(all) / len(values)
	for k := range values {
		values[k] = f.countsMetric(all[k*each : (k+1)*each])
	}
	return values, nil
}

func (f *Loop) countsMetric(counts []float64) float64 {
	if f.Known.Labels.Kind() == graph.Regression {
		return nn.ErrorCounts(counts).Metric(f.metric.Name)
	}
	return nn.ClassCounts(counts).Metric(f.metric.Name, nn.TaskOf(f.Known.Labels.Kind()))
}

// judge is what decides what is predicted during training: the most likely class, or from ½ on.
func (f *Loop) judge() *nn.Judge {
	l := f.Known.Labels
	return &nn.Judge{Task: nn.TaskOf(l.Kind()), Classes: l.Classes, Positive: nn.Positive(f.known.counts)}
}

// countsOf are the counts of what is predicted for a split's vertices of this worker.
func (f *Loop) countsOf(o *Outputs) []float64 {
	l, j := f.Known.Labels, f.judge()
	if l.Kind() == graph.Regression {
		counts := nn.NewErrorCounts(l.Classes)
		o.each(func(_ int, v uint32, outputs []float64) { counts.Add(l.Numbers(int(v)), outputs) })
		return counts
	}
	counts := nn.NewClassCounts(l.Classes)
	o.each(func(_ int, v uint32, outputs []float64) {
		if l.Multi == nil {
			counts.Add(int(l.Class[v]), j.Class(outputs))
			return
		}
		known := l.Row(int(v))
		counts.AddMarks(func(c int) bool { return known[c] == 1 }, func(c int) bool { return j.Has(outputs, c) })
	})
	return counts
}

// scoreOf is the metric of a split: the mean over the classes that are scored.
func (f *Loop) scoreOf(epoch, split int, o *Outputs) (float64, error) {
	var values []float64
	for _, c := range f.judge().Scored() {
		s, err := f.scoresOf(epoch, split, c, o)
		if err != nil {
			return 0, err
		}
		values = append(values, s.Metric(f.metric.Name))
	}
	return nn.MeanOf(values), nil
}

// scoresOf are the scores of a split's vertices for a class, of all workers.
func (f *Loop) scoresOf(epoch, split, class int, o *Outputs) (*nn.Scored, error) {
	n := f.known.sizes[split]
	all := make([]float64, 2*n)
	scores, is := all[:n][f.known.first[split]:], all[n:][f.known.first[split]:]
	j := f.judge()
	o.each(func(i int, v uint32, outputs []float64) {
		scores[i] = j.Score(outputs, class)
		if f.isOf(v, class) {
			is[i] = 1
		}
	})
	if err := f.Peers.AllReduce(epoch, 0, all); err != nil {
		return nil, err
	}
	positive := make([]bool, n)
	for i, x := range all[n:] {
		positive[i] = x == 1
	}
	return nn.NewScored(all[:n], positive), nil
}

// isOf reports whether a vertex of this worker has a class.
func (f *Loop) isOf(v uint32, class int) bool {
	if l := f.Known.Labels; l.Multi != nil {
		return l.Row(int(v))[class] == 1
	}
	return int(f.Known.Labels.Class[v]) == class
}

// planObjective plans what workers tell each other of labels, and what measuring sends.
func (s *Site) planObjective(p *wire.Plan, task nn.Task) {
	if s.Opt.Pairs != nil {
		return
	}
	book, classes, kind := s.Part.Book, s.Opt.Model.Out, task.Name()
	counted, targets := classes, 0
	if kind == "r2" {
		counted = 0
	}
	if s.Opt.Model.StandardizeTargets {
		targets = classes
	}
	s.planSums(p.Prepare, objectiveSums(counted, s.End.Size(), targets))
	metric, err := nn.FindMetric(s.Opt.Metric)
	switch {
	case err != nil || metric.Name == kind:
		s.planSums(p.Measure, 3*task.Width())
	case metric.Scores:
		if kind == "accuracy" && classes == 2 {
			classes = 1
		}
		for _, n := range []int64{book.Train, book.Val, book.Test} {
			for range classes {
				s.planSums(p.Measure, 2*int(n))
			}
		}
	case kind == "r2":
		s.planSums(p.Measure, 3*len(nn.NewErrorCounts(classes)))
	default:
		s.planSums(p.Measure, 3*len(nn.NewClassCounts(classes)))
	}
}
