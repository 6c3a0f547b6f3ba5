package generate

import (
	"math"

	"starling/graph"
	"starling/rng"
)

// Tasks of generated graphs, derived from the class that a vertex was drawn with:
//
//	classify    the class itself
//	multilabel  the class, and every other one with probability 1/Classes; the features
//	            are the sum of those of all its classes. Neighbours and features tell the
//	            first, features alone the others
//	regression  one number: the level of the class plus normal noise of deviation 0.3.
//	            Levels are evenly spaced with mean 0 and variance 1 or a little below,
//	            so that no model explains more than about 0.92 of the variance
const (
	Classify   = "classify"
	Multilabel = "multilabel"
	Regression = "regression"
)

// Tasks are the values of Params.Task.
func Tasks() []string { return []string{Classify, Multilabel, Regression} }

const regressionNoise = 0.3

// targets are the labels of the task, from the classes that vertices were drawn with.
func (p Params) targets(class *graph.Labels) *graph.Labels {
	switch p.Task {
	case Multilabel:
		return p.memberships(class)
	case Regression:
		return p.levels(class)
	}
	return class
}

func (p Params) memberships(class *graph.Labels) *graph.Labels {
	k := rng.New(p.Seed).Fold(taskStream)
	l := &graph.Labels{Classes: p.Classes, Multi: make([]uint8, p.Nodes*int64(p.Classes))}
	graph.Parallel(p.Nodes, 1<<12, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			row, draw := l.Row(int(v)), k.Fold(uint64(v))
			for c := range row {
				if int32(c) == class.Class[v] || draw.IntN(uint64(c), p.Classes) == 0 {
					row[c] = 1
				}
			}
		}
	})
	return l
}

func (p Params) levels(class *graph.Labels) *graph.Labels {
	k, t := rng.New(p.Seed).Fold(taskStream), normalTable()
	l := &graph.Labels{Classes: 1, Values: make([]float32, p.Nodes)}
	graph.Parallel(p.Nodes, 1<<14, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			noise := l.Values[v : v+1]
			addNormals(noise, k.Fold(uint64(v)), t)
			at := (float64(class.Class[v]) + 0.5) / float64(p.Classes)
			l.Values[v] = float32(math.Sqrt(12)*(at-0.5)) + regressionNoise*noise[0]
		}
	})
	return l
}

// centre writes the features of a vertex without their noise.
func (p Params) centre(class, target *graph.Labels) func(row []float32, v uint64) {
	centres := p.centres()
	switch {
	case class == nil:
		return func(row []float32, _ uint64) { clear(row) }
	case target.Multi == nil:
		return func(row []float32, v uint64) { copy(row, centres[class.Class[v]]) }
	}
	return func(row []float32, v uint64) {
		clear(row)
		for c, member := range target.Row(int(v)) {
			if member == 0 {
				continue
			}
			for j, x := range centres[c] {
				row[j] += x
			}
		}
	}
}
