package graph

import (
	"fmt"
	"math"
	"strconv"

	"starling/event"
)

// Labels are what is known of each vertex, in one of three kinds:
//
//	Class   one class in 0..Classes-1, or -1 for none
//	Multi   a row of Classes marks: 1 for every class it belongs to, 0 for the
//	        others, and NoLabel throughout for a vertex without any
//	Values  a row of Classes numbers to be predicted, NaN throughout for a vertex without
//
// The kind is Meta.Task.
type Labels struct {
	Classes int // of Values the numbers per vertex
	Class   []int32
	Multi   []uint8   // [vertices, Classes], instead of Class
	Values  []float32 // [vertices, Classes], instead of Class
	Names   []string  // of the classes; none: they are numbers
}

// ClassName is the name of class c, or its number where classes have no names.
func ClassName(names []string, c int) string {
	if c >= 0 && c < len(names) {
		return names[c]
	}
	return strconv.Itoa(c)
}

// NoLabel marks, in Labels.Multi, that nothing is known.
const NoLabel = 255

// Kind is SingleLabel, MultiLabel or Regression.
func (l *Labels) Kind() string {
	switch {
	case l.Multi != nil:
		return MultiLabel
	case l.Values != nil:
		return Regression
	}
	return SingleLabel
}

// Has reports whether vertex v is labelled.
func (l *Labels) Has(v int) bool {
	switch {
	case l.Multi != nil:
		return l.Multi[v*l.Classes] != NoLabel
	case l.Values != nil:
		x := l.Values[v*l.Classes]
		return x == x
	}
	return l.Class[v] >= 0
}

// Row is the marks of vertex v, when there are several labels per vertex.
func (l *Labels) Row(v int) []uint8 { return l.Multi[v*l.Classes : (v+1)*l.Classes] }

// Numbers returns the values of vertex v to be predicted, when labels are numbers.
func (l *Labels) Numbers(v int) []float32 { return l.Values[v*l.Classes : (v+1)*l.Classes] }

// Len is the number of vertices.
func (l *Labels) Len() int {
	switch {
	case l.Multi != nil:
		return len(l.Multi) / l.Classes
	case l.Values != nil:
		return len(l.Values) / l.Classes
	}
	return len(l.Class)
}

func (l *Labels) validateValues(n int) error {
	if l.Classes < 1 || len(l.Values)/l.Classes != n || len(l.Values)%l.Classes != 0 {
		return &InputError{Field: "labels", Found: event.Tally(len(l.Values), "number"),
			Want: fmt.Sprintf("%d a vertex (%d)", l.Classes, n), Fix: "use a row of NaN for a vertex without"}
	}
	return parallelErr(int64(n), 1<<14, func(lo, hi int64) error {
		for v := lo; v < hi; v++ {
			row := l.Numbers(int(v))
			for c, x := range row {
				if math.IsInf(float64(x), 0) || (x == x) != (row[0] == row[0]) {
					return &InputError{Field: "labels", Found: fmt.Sprintf("%g for vertex %d and target %d", x, v, c),
						Want: "a finite number, or NaN in the whole row",
						Fix:  "leave out vertices of which not all targets are known"}
				}
			}
		}
		return nil
	})
}

func (l *Labels) validateMulti(n int) error {
	if l.Classes < 1 || len(l.Multi)/l.Classes != n || len(l.Multi)%l.Classes != 0 {
		return &InputError{Field: "labels", Found: event.Tally(len(l.Multi), "mark"),
			Want: fmt.Sprintf("%d a vertex (%d)", l.Classes, n), Fix: "use a row of 255 for a vertex without labels"}
	}
	return parallelErr(int64(n), 1<<14, func(lo, hi int64) error {
		for v := lo; v < hi; v++ {
			row := l.Row(int(v))
			for c, x := range row {
				if x > 1 && (x != NoLabel || row[0] != NoLabel) || x != NoLabel && row[0] == NoLabel {
					return &InputError{Field: "labels", Found: fmt.Sprintf("%d for vertex %d and class %d", x, v, c),
						Want: "0 or 1, or 255 in the whole row", Fix: "mark classes with 0 and 1"}
				}
			}
		}
		return nil
	})
}

// Validate checks that there are n labels, each a class or -1 (or n rows of marks, or
// of numbers).
func (l *Labels) Validate(n int) error {
	switch {
	case l.Multi != nil:
		return l.validateMulti(n)
	case l.Values != nil:
		return l.validateValues(n)
	}
	if len(l.Class) != n {
		return &InputError{Field: "labels", Found: event.Tally(len(l.Class), "label"),
			Want: fmt.Sprintf("one per vertex (%d)", n), Fix: "use -1 for a vertex without a label"}
	}
	return parallelErr(int64(n), 1<<18, func(lo, hi int64) error {
		for i, c := range l.Class[lo:hi] {
			if c < -1 || int(c) >= l.Classes {
				return &InputError{Field: "labels", Found: fmt.Sprintf("class %d at vertex %d", c, lo+int64(i)),
					Want: fmt.Sprintf("0 to %d, or -1 for none", l.Classes-1),
					Fix:  "number classes from 0 and set classes to their count"}
			}
		}
		return nil
	})
}

// Splits names the vertices to learn from, to choose by and to report on, each
// in ascending order, no vertex in two.
type Splits struct {
	Train, Val, Test []uint32
}

// Empty reports whether there are no splits at all.
func (s *Splits) Empty() bool { return len(s.Train)+len(s.Val)+len(s.Test) == 0 }

// named lists the splits in the order they are written and checked.
func (s *Splits) named() []namedSplit {
	return []namedSplit{{"train", s.Train}, {"val", s.Val}, {"test", s.Test}}
}

type namedSplit struct {
	name string
	ids  []uint32
}

// Validate checks order, range, overlap, and that every vertex in a split has a
// label (labels may be nil: then that is not checked).
func (s *Splits) Validate(n int, labels *Labels) error {
	if s.Empty() {
		return nil
	}
	if len(s.Train) == 0 {
		return &InputError{Field: "train", Found: "an empty split next to others", Want: "at least one vertex",
			Fix: "give a larger training fraction"}
	}
	for _, sp := range s.named() {
		if err := sp.validate(n, labels); err != nil {
			return err
		}
	}
	for _, pair := range [][2]namedSplit{
		{{"train", s.Train}, {"val", s.Val}}, {{"train", s.Train}, {"test", s.Test}}, {{"val", s.Val},
			{"test", s.Test}},
	} {
		if v, both := common(pair[0].ids, pair[1].ids); both {
			return &InputError{Field: pair[1].name,
				Found: fmt.Sprintf("vertex %d, which is also in %s", v, pair[0].name),
				Want:  "splits without common vertices", Fix: "remove it from one of the two"}
		}
	}
	return nil
}

func (sp namedSplit) validate(n int, labels *Labels) error {
	for i, v := range sp.ids {
		if int64(v) >= int64(n) {
			return &InputError{Field: sp.name, Found: fmt.Sprintf("vertex %d", v),
				Want: fmt.Sprintf("ids from 0 to %d", n-1),
				Fix:  "the split names an absent vertex: it belongs to another graph"}
		}
		if i > 0 && sp.ids[i-1] >= v {
			return &InputError{Field: sp.name, Found: fmt.Sprintf("vertex %d after %d", v, sp.ids[i-1]),
				Want: "ascending ids, each once", Fix: "sort the ids and drop repeats"}
		}
		if labels != nil && !labels.Has(int(v)) {
			return &InputError{Field: sp.name, Found: fmt.Sprintf("vertex %d, which has no label", v),
				Want: "labelled vertices",
				Fix:  "leave unlabelled vertices out of the splits"}
		}
	}
	return nil
}

// common finds the first id in both ascending lists.
func common(a, b []uint32) (id uint32, found bool) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return a[0], true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return 0, false
}
