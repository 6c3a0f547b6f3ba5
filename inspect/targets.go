package inspect

import (
	"fmt"
	"math"

	"starling/graph"
)

// targets describes labels that are numbers.
func (i *Info) targets(l *graph.Labels) {
	i.Classes, i.Targets = l.Classes, make([]Target, l.Classes)
	labelled := 0.0
	for v := range l.Len() {
		if !l.Has(v) {
			i.Unlabelled++
			continue
		}
		labelled++
		for k, x := range l.Numbers(v) {
			t, y := &i.Targets[k], float64(x)
			if labelled == 1 {
				t.Min, t.Max = y, y
			}
			t.Min, t.Max = min(t.Min, y), max(t.Max, y)
			// Welford's update: Deviation is the sum of squares until the end.
			before := y - t.Mean
			t.Mean += before / labelled
			t.Deviation += before * (y - t.Mean)
		}
	}
	for k := range i.Targets {
		i.Targets[k].Deviation = math.Sqrt(i.Targets[k].Deviation / max(labelled, 1))
	}
}

func (t Target) String() string {
	return fmt.Sprintf("mean %.4g, deviation %.4g, %.4g to %.4g", t.Mean, t.Deviation, t.Min, t.Max)
}
