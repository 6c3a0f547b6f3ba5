package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/graph"
)

// The values of ImportOptions.Task, beside nothing: derived from the labels. Numbers
// with fractions are numbers to predict, all others classes.
const (
	classify   = "classify"
	regression = "regression"
)

// targetFormats lists the formats whose labels may be numbers to predict.
var targetFormats = []string{"npz", "parquet", "edgelist", "table"}

func (o ImportOptions) checkTask(format string) error {
	switch {
	case o.Task != "" && o.Task != classify && o.Task != regression:
		return badParam("task", fmt.Sprintf("%q", o.Task), "classify, regression, or nothing: as the labels look")
	case o.Task == regression && !slices.Contains(targetFormats, format):
		return badParam("task", "regression of "+format,
			strings.Join(targetFormats, ", ")+", whose labels may be numbers to predict")
	}
	return nil
}

// fraction tells whether a number is neither whole nor unknown.
func fraction(x float64) bool { return x == x && x != math.Trunc(x) }

// targets are numbers to predict, cols per vertex and NaN for unknown, as labels. A
// vertex with an unknown one has none.
func targets(x []float32, cols int) *graph.Labels {
	l := &graph.Labels{Classes: cols, Values: x}
	for v := range l.Len() {
		row := l.Numbers(v)
		if slices.ContainsFunc(row, func(x float32) bool { return x != x }) {
			for i := range row {
				row[i] = float32(math.NaN())
			}
		}
	}
	return l
}

// fractions is the note for a derived task.
const fractions = "labels with fractions are numbers to predict (regression); --task classify takes them for names of classes"

// regression tells whether a table's labels are numbers to predict.
func (t *labelTable) regression(task string, notes *[]string) (bool, error) {
	if task == classify {
		return false, nil
	}
	some := false
	for i, s := range t.labels {
		x, err := strconv.ParseFloat(s, 32)
		switch {
		case s == "" || err == nil:
			some = some || s != "" && fraction(x)
		case task == regression:
			return false, badFile(t.path, "label", fmt.Sprintf("%.40q, label %d", s, i+1), "a number",
				"correct the label, or leave out --task regression")
		default:
			return false, nil
		}
	}
	if some && task == "" {
		*notes = append(*notes, fractions)
	}
	return some || task == regression, nil
}

// numbers are the labels; one that is missing is NaN.
func (t *labelTable) numbers() []float32 {
	out := make([]float32, len(t.labels))
	for i, s := range t.labels {
		x, err := strconv.ParseFloat(s, 32)
		if err != nil {
			x = math.NaN()
		}
		out[i] = float32(x)
	}
	return out
}

// blank removes words for missing labels, if all others are numbers: among
// names they may be names.
func (t *labelTable) blank() {
	if slices.ContainsFunc(t.labels, func(s string) bool { return !table.IsMissing(s) && !isNumber([]byte(s)) }) {
		return
	}
	for i, s := range t.labels {
		if table.IsMissing(s) {
			t.labels[i] = ""
		}
	}
}

// known are a table's labels, of any kind.
func (t *labelTable) known(ids *idMap, task string, notes *[]string) (*graph.Labels, error) {
	t.blank()
	if yes, err := t.regression(task, notes); err != nil || !yes {
		if err != nil {
			return nil, err
		}
		return t.classes(ids)
	}
	l := &graph.Labels{Classes: 1, Values: make([]float32, ids.n)}
	for v := range l.Values {
		l.Values[v] = float32(math.NaN())
	}
	for i, x := range t.numbers() {
		v, ok := ids.find(t.ids[i])
		switch {
		case !ok:
			return nil, badFile(t.path, "id", fmt.Sprintf("%q", t.ids[i]), "an id of the graph",
				"remove it or give a larger --nodes")
		case l.Has(int(v)) && l.Values[v] != x:
			return nil, badFile(t.path, "id", fmt.Sprintf("%q with two labels", t.ids[i]), "one",
				"keep one of its lines")
		}
		l.Values[v] = x
	}
	return l, nil
}

// targets reads numbers to predict from an array of floats, or if the task says so of integers;
// nil: it holds classes.
func (z *npz) targets(name string, rows int, task string, notes *[]string) (*graph.Labels, error) {
	a, err := z.array(name)
	if err != nil || task == classify {
		return nil, err
	}
	x, err := a.float32s()
	if err != nil {
		return nil, nil // not numbers to predict: classes reports it
	}
	some := slices.ContainsFunc(x, func(x float32) bool { return fraction(float64(x)) })
	if !some && task == "" {
		return nil, nil
	}
	cols := 1
	if len(a.shape) == 2 {
		cols = int(a.shape[1])
	}
	if len(a.shape) > 2 || cols < 1 || len(x) != rows*cols {
		return nil, z.bad(name, fmt.Sprintf("shape %v of %s", a.shape, a.descr),
			fmt.Sprintf("one number per vertex (%d), or a row of them", rows))
	}
	if task == "" {
		*notes = append(*notes, fractions)
	}
	return targets(x, cols), nil
}
