package dataset

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
)

// labelTable is a file of id,label lines.
type labelTable struct {
	path   string
	ids    []string
	labels []string
}

func (t *labelTable) add(id string, fields []string) *badCell {
	if len(t.ids) == 0 && namesColumn(id) {
		return isHeader
	}
	t.ids, t.labels = append(t.ids, id), append(t.labels, fields[0])
	return nil
}

// classes turns labels into class numbers: numbers stay, names are numbered in
// alphabetical order. Vertices without a line, and those labelled -1 or with
// nothing, have none.
func (t *labelTable) classes(ids *idMap) (*graph.Labels, error) {
	l := &graph.Labels{Class: make([]int32, ids.n)}
	for v := range l.Class {
		l.Class[v] = -1
	}
	class, names, err := t.numbering()
	if err != nil {
		return nil, err
	}
	l.Names = names
	for i, id := range t.ids {
		v, ok := ids.find(id)
		if !ok {
			return nil, badFile(t.path, "id", fmt.Sprintf("%q", id), "an id of the graph",
				"remove it or give a larger --nodes")
		}
		c := class[t.labels[i]]
		if l.Class[v] >= 0 && l.Class[v] != c {
			return nil, badFile(t.path, "id", fmt.Sprintf("%q with two labels", id), "one", "keep one of its lines")
		}
		l.Class[v] = c
		l.Classes = max(l.Classes, int(c)+1)
	}
	if l.Classes == 0 {
		return nil, badFile(t.path, "", "no label", "a label for some vertices", "check the file")
	}
	return l, nil
}

// wholeNumber reads also 3.0, as tables with missing values have it for 3.
func wholeNumber(s string) (int64, error) {
	whole, zeros, _ := strings.Cut(s, ".")
	if strings.Trim(zeros, "0") != "" {
		whole = s
	}
	return strconv.ParseInt(whole, 10, 64)
}

// numbering is the class of every label, and the names of the classes if they are no numbers.
func (t *labelTable) numbering() (class map[string]int32, names []string, err error) {
	class = map[string]int32{}
	numbers := true
	for _, s := range t.labels {
		if s == "" { // no label
			continue
		}
		x, err := wholeNumber(s)
		if numbers = numbers && err == nil; numbers && (x < -1 || x > maxClasses) {
			return nil, nil, badFile(t.path, "label", s, fmt.Sprintf("-1 to %d", maxClasses), "number classes from 0")
		}
		class[s] = int32(x)
	}
	if numbers {
		class[""] = -1
		return class, nil, nil
	}
	names = slices.Sorted(maps.Keys(class))
	for i, s := range names {
		class[s] = int32(i)
	}
	class[""] = -1
	return class, names, nil
}

// LabelsOf are the labels of vertices, given as places in a list of different words (-1: none), for a task: classify,
// regression, or "" to look. It says what it derived.
func LabelsOf(file string, words []string, of []int32, task string) (l *graph.Labels, notes []string, err error) {
	t := &labelTable{path: file, labels: slices.Clone(words)}
	t.blank()
	yes, err := t.regression(task, &notes)
	if err != nil {
		return nil, nil, err
	}
	if yes {
		x := t.numbers()
		l = &graph.Labels{Classes: 1, Values: make([]float32, len(of))}
		for v, k := range of {
			if l.Values[v] = float32(math.NaN()); k >= 0 {
				l.Values[v] = x[k]
			}
		}
		return l, notes, nil
	}
	class, names, err := t.numbering()
	if err != nil {
		return nil, nil, err
	}
	l = &graph.Labels{Class: make([]int32, len(of)), Names: names}
	for v, k := range of {
		if l.Class[v] = -1; k >= 0 {
			l.Class[v] = class[t.labels[k]]
		}
		l.Classes = max(l.Classes, int(l.Class[v])+1)
	}
	if l.Classes == 0 {
		return nil, nil, badFile(file, "label", "no label", "a label for some vertices", "check the column")
	}
	return l, notes, nil
}

// LabelsAs are labels whose classes are known: those of a preparation. Words that are none of them are no labels.
func LabelsAs(file string, list []string, of []int32, like *graph.PrepLabel) (l *graph.Labels, notes []string, err error) {
	if like.Task == graph.Regression {
		return LabelsOf(file, list, of, regression)
	}
	class, strange := make([]int32, len(list)), 0
	for i, s := range list {
		class[i] = -1
		if like.Classes != nil {
			class[i] = int32(slices.Index(like.Classes, s))
		} else if x, err := wholeNumber(s); err == nil && x >= 0 && x < int64(like.Count) {
			class[i] = int32(x)
		}
	}
	l = &graph.Labels{Class: make([]int32, len(of)), Names: like.Classes, Classes: like.Count}
	for v, k := range of {
		if l.Class[v] = -1; k >= 0 {
			if l.Class[v] = class[k]; class[k] < 0 {
				strange++
			}
		}
	}
	if strange > 0 {
		notes = append(notes, fmt.Sprintf("labels that are none of the classes of the preparation, and are left out: %d", strange))
	}
	return l, notes, nil
}
