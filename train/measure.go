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
	var rows [3]Outputs
	for k := range rows {
		rows[k] = f.splitOutputs(logits, k)
	}
	f.Dev.Free(logits)
	if err := f.MeasureOn.Err(); err != nil {
		return err
	}
	values, err := f.valuesOf(e.Epoch, &rows)
	if err != nil {
		return err
	}
	e.Measured, e.Train, e.Val, e.Test = true, values[0], values[1], values[2]
	if f.Remember(e); e.Best {
		f.State.History.Measures = map[string]float64{f.metric.Name: e.Test}
	}
	return nil
}

// Outputs are the outputs of a model for the vertices of a split, on the host.
type Outputs struct {
	vertices []uint32
	width    int
	data     []float64
}

func (o *Outputs) of(i int) []float64 { return o.data[i*o.width : (i+1)*o.width] }

// splitOutputs reads those of a split.
func (f *Loop) splitOutputs(logits tensor.Matrix, split int) Outputs {
	list := f.Known.splits()[split]
	o := Outputs{vertices: list, width: logits.Cols, data: make([]float64, len(list)*logits.Cols)}
	if len(list) == 0 {
		return o
	}
	x := f.Dev.Scratch(logits.Type(), len(list), logits.Cols)
	f.Dev.GatherRows(x, logits, f.Splits[split])
	f.Dev.Download(o.data, x)
	f.Dev.Free(x)
	return o
}

// valuesOf are the metric on the splits.
func (f *Loop) valuesOf(epoch int, rows *[3]Outputs) (values [3]float64, err error) {
	if f.metric.Scores {
		for k := range rows {
			if values[k], err = f.scoreOf(epoch, k, &rows[k]); err != nil {
				return values, err
			}
		}
		return values, nil
	}
	var all []float64
	for k := range rows {
		all = append(all, f.countsOf(&rows[k])...)
	}
	if err := f.Peers.AllReduce(epoch, 0, all); err != nil {
		return values, err
	}
	each := len(all) / len(rows)
	for k := range rows {
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

// countsOf are the counts of what is predicted for a split's vertices of this worker.
func (f *Loop) countsOf(o *Outputs) []float64 {
	l := f.Known.Labels
	if l.Kind() == graph.Regression {
		counts := nn.NewErrorCounts(l.Classes)
		for i, v := range o.vertices {
			counts.Add(l.Numbers(int(v)), o.of(i))
		}
		return counts
	}
	counts := nn.NewClassCounts(l.Classes)
	for i, v := range o.vertices {
		row := o.of(i)
		if l.Multi == nil {
			counts.Add(int(l.Class[v]), largest(row))
			continue
		}
		known := l.Row(int(v))
		counts.AddMarks(func(c int) bool { return known[c] == 1 }, func(c int) bool { return row[c] > 0 })
	}
	return counts
}

// largest is the first place of the largest number.
func largest(row []float64) int {
	best := 0
	for c, x := range row {
		if x > row[best] {
			best = c
		}
	}
	return best
}

// scoredClasses are the classes whose scores are measured: the positive one of two, else all.
func (f *Loop) scoredClasses() []int {
	l := f.Known.Labels
	if l.Multi == nil && l.Classes == 2 {
		return []int{nn.Positive(f.known.counts)}
	}
	all := make([]int, l.Classes)
	for c := range all {
		all[c] = c
	}
	return all
}

// scoreOf is the metric of a split: the mean over the classes that are scored.
func (f *Loop) scoreOf(epoch, split int, o *Outputs) (float64, error) {
	var values []float64
	for _, c := range f.scoredClasses() {
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
	for i := range o.vertices {
		scores[i] = f.score(o.of(i), class)
		if f.isOf(o.vertices[i], class) {
			is[i] = 1
		}
	}
	if err := f.Peers.AllReduce(epoch, 0, all); err != nil {
		return nil, err
	}
	positive := make([]bool, n)
	for i, x := range all[n:] {
		positive[i] = x == 1
	}
	return nn.NewScored(all[:n], positive), nil
}

// score is higher where a class is more likely.
func (f *Loop) score(row []float64, class int) float64 {
	if f.Known.Labels.Multi != nil {
		return row[class]
	}
	return nn.LogOdds(row, class)
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
	told := classes
	if kind == "r2" {
		told = 0
	}
	s.planSums(p.Prepare, objectiveSums(told, s.End.Size()))
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
