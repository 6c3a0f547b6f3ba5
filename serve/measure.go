package serve

import (
	"starling/graph"
	"starling/nn"
)

// measure compares predicted labels with the dataset's, where those are of the same
// kind, and sets Metric and Measured.
func (p *Predictions) measure(d *graph.Dataset, task string) {
	if d.Labels == nil || nn.TaskOf(d.Labels.Kind()) != task || task != nn.TaskClassify && d.Labels.Classes != p.Width {
		return
	}
	of, counts := p.measurer(d.Labels, task)
	p.Metric, p.Measured = of.Name(), map[string]float64{}
	for name, ids := range map[string][]uint32{"train": d.Splits.Train, "val": d.Splits.Val, "test": d.Splits.Test} {
		if len(ids) > 0 {
			p.Measured[name] = of.Metric(counts(ids))
		}
	}
}

// measurer is the task, and a function for the counts that its metric is computed from.
func (p *Predictions) measurer(l *graph.Labels, task string) (nn.Task, func(ids []uint32) []float64) {
	switch task {
	case nn.TaskMultiLabel:
		return nn.MultiLabel{}, func(ids []uint32) []float64 { return p.marked(l, ids) }
	case nn.TaskRegression:
		of := nn.Regress{Targets: p.Width}
		return of, func(ids []uint32) []float64 { return p.squares(l, ids, of.Width()) }
	}
	same := sameClasses(p.ClassNames, l)
	return nn.Classify{}, func(ids []uint32) []float64 {
		right := 0.0
		for _, v := range ids {
			if p.Class[v] == same(l.Class[v]) {
				right++
			}
		}
		return []float64{right, float64(len(ids))}
	}
}

// sameClasses is the model's class for one of the dataset: the one of the same name where both
// have names, as another dataset may number them otherwise; -1 if the model has none.
func sameClasses(names []string, l *graph.Labels) func(class int32) int32 {
	if len(names) == 0 || len(l.Names) == 0 {
		return func(class int32) int32 { return class }
	}
	of := map[string]int32{}
	for c, name := range names {
		of[name] = int32(c)
	}
	to := make([]int32, len(l.Names))
	for c, name := range l.Names {
		to[c] = -1
		if at, ok := of[name]; ok {
			to[c] = at
		}
	}
	return func(class int32) int32 { return to[class] }
}

func (p *Predictions) marked(l *graph.Labels, ids []uint32) []float64 {
	predicted, known, both := 0, 0, 0
	for _, v := range ids {
		for c, k := range l.Row(int(v)) {
			m := p.Marks[int(v)*p.Width+c]
			predicted, known, both = predicted+int(m), known+int(k), both+int(m&k)
		}
	}
	return []float64{float64(len(ids)), float64(predicted), float64(known), float64(both)}
}

func (p *Predictions) squares(l *graph.Labels, ids []uint32, width int) []float64 {
	counts := make([]float64, width)
	counts[0] = float64(len(ids))
	for _, v := range ids {
		for i, y := range l.Numbers(int(v)) {
			apart := float64(y) - float64(p.Values[int(v)*p.Width+i])
			counts[1] += apart * apart
			counts[2] += float64(y) * float64(y)
			counts[3+i] += float64(y)
		}
	}
	return counts
}
