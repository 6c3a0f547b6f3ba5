package inspect

import (
	"fmt"
	"math"
	"strconv"

	"starling/event"
	"starling/graph"
	"starling/report"
)

func (r *Range) add(x float64) {
	r.Min, r.Max = min(r.Min, report.Number(x)), max(r.Max, report.Number(x))
}

func (r Range) String() string { return fmt.Sprintf("%.4g to %.4g", float64(r.Min), float64(r.Max)) }

func emptyRange() *Range {
	return &Range{Min: report.Number(math.Inf(1)), Max: report.Number(math.Inf(-1))}
}

// sampledRows is how many rows of features are looked at: a whole pass may be over more than memory.
const sampledRows = 10_000

// unevenScales is the ratio between the deviations of two columns from which info warns.
const unevenScales = 1e3

// ranges looks at the values of features and weights, and warns of what training suffers from.
func (i *Info) ranges(d *graph.Dataset) {
	if d.Features != nil {
		i.featureRanges(d)
	}
	if w := d.Graph.Weights; len(w) > 0 {
		i.WeightRange = emptyRange()
		for _, x := range w {
			i.WeightRange.add(float64(x))
		}
		if i.WeightRange.Min < 0 {
			i.warn("some edges have weights below 0, which gcn cannot take: use another model, or import them anew")
		}
	}
	i.Reciprocity = report.Number(d.Graph.Reciprocity(100_000))
	if !i.Symmetric && i.Reciprocity >= 0.9 && i.Reciprocity < 1 {
		i.warn("%.1f%% of edges have their reverse: import with --symmetrize to have it of all",
			100*float64(i.Reciprocity))
	}
}

func (i *Info) warn(format string, args ...any) {
	i.Warnings = append(i.Warnings, fmt.Sprintf(format, args...))
}

// featureRanges samples rows and compares the deviations of columns.
func (i *Info) featureRanges(d *graph.Dataset) {
	f := d.Features
	i.FeatureRange = emptyRange()
	mean, square := make([]float64, f.Cols), make([]float64, f.Cols)
	row := make([]float32, f.Cols)
	rows := min(f.Rows, max(1, min(sampledRows, 1<<28/f.Cols)))
	for k := range rows {
		f.CopyRow(row, uint32(k*(f.Rows/rows)))
		for c, x := range row {
			y := float64(x)
			i.FeatureRange.add(y)
			before := y - mean[c]
			mean[c] += before / float64(k+1)
			square[c] += before * (y - mean[c])
		}
	}
	if f.Kind() == graph.Sparse { // bags of words differ so by nature
		return
	}
	least, most := -1, -1
	for c, s := range square {
		if s > 0 && (least < 0 || s < square[least]) {
			least = c
		}
		if s > 0 && (most < 0 || s > square[most]) {
			most = c
		}
	}
	if most < 0 {
		i.warn("every column of the features is constant: they tell vertices apart in nothing")
		return
	}
	deviation := func(c int) float64 { return math.Sqrt(square[c] / float64(rows)) }
	if deviation(most) >= unevenScales*deviation(least) {
		columns := d.Meta.Features.Columns
		i.warn("the features' scales differ: %s varies by %.3g, %s by %.3g; import with --standardize",
			columnName(columns, most), deviation(most), columnName(columns, least), deviation(least))
	}
}

// columnName is a column of the features, by its name if it has one.
func columnName(names []string, c int) string {
	if c < len(names) {
		return fmt.Sprintf("column %d (%.40s)", c, names[c])
	}
	return "column " + strconv.Itoa(c)
}

// showRanges is the part for people.
func (i *Info) showRanges(line func(name, format string, args ...any)) {
	if i.FeatureRange != nil {
		text := i.FeatureRange.String()
		if i.Standardized {
			text += ", standardized"
		}
		if i.Vertices > sampledRows {
			text += fmt.Sprintf(" (a sample of %s)", event.Counted(sampledRows, "vertex"))
		}
		line("  values", "%s", text)
	}
	if i.WeightRange != nil {
		line("weights", "%v", *i.WeightRange)
	}
	if !i.Symmetric && i.Types == nil {
		line("reverse", "%.1f%% of edges have theirs", 100*float64(i.Reciprocity))
	}
}

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
