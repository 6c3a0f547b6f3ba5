package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"starling/graph"
)

// column is what a column of features holds, in rows spread over all, and why it should not be learnt from.
type column struct {
	name                      string
	min, mean, max, deviation float64
	zeros, missing            float64 // shares
	why                       string
}

type suspect struct{ Name, Why string }

// columnsOf looks at dense features, a column at a time.
func columnsOf(d *graph.Dataset) []column {
	f := d.Features
	rows := min(f.Rows, max(1, min(sampledRows, 1<<26/max(f.Cols, 1))))
	values, all := make([]float64, rows), make([]float32, rows*f.Cols)
	vertices := make([]uint32, rows)
	for k := range rows {
		vertices[k] = uint32(k * (f.Rows / rows))
		f.CopyRow(all[k*f.Cols:(k+1)*f.Cols], vertices[k])
	}
	list := make([]column, f.Cols)
	for c := range list {
		for k := range values {
			values[k] = float64(all[k*f.Cols+c])
		}
		name := fmt.Sprint(c)
		if m := d.Meta.Features; m != nil && c < len(m.Columns) && m.Columns[c] != "" {
			name = m.Columns[c]
		}
		list[c] = columnOf(name, values)
		list[c].why = suspicious(&list[c], values, vertices, d.Labels, rows == f.Rows)
	}
	return list
}

func columnOf(name string, values []float64) column {
	c := column{name: name, min: math.Inf(1), max: math.Inf(-1)}
	n, square := 0.0, 0.0
	for _, x := range values {
		if math.IsNaN(x) {
			c.missing++
			continue
		}
		n++
		before := x - c.mean
		c.mean += before / n
		square += before * (x - c.mean)
		c.min, c.max = min(c.min, x), max(c.max, x)
		if x == 0 {
			c.zeros++
		}
	}
	c.deviation = math.Sqrt(square / max(n, 1))
	c.zeros, c.missing = c.zeros/float64(len(values)), c.missing/float64(len(values))
	return c
}

// suspicious says why a column looks as if it were not a feature; "": it does not.
func suspicious(c *column, values []float64, vertices []uint32, labels *graph.Labels, all bool) string {
	switch {
	case c.min == c.max:
		return "constant: it tells nothing; leave it out with --drop"
	case isID(values, all):
		return "an id: all values differ and follow one another; leave it out, or a model learns vertices by heart"
	case labels != nil && isLabel(values, vertices, labels):
		return "the label, or nearly: its value tells the class by itself. If it is not known when a prediction " +
			"is made, " +
			"leave it out"
	}
	return ""
}

// isID reports whether values are consecutive numbers, perhaps scaled, in any order; or, of a sample, always rise.
func isID(values []float64, all bool) bool {
	if len(values) < 20 || slices.ContainsFunc(values, math.IsNaN) {
		return false
	}
	rising := true
	for i := 1; i < len(values); i++ {
		rising = rising && values[i] > values[i-1]
	}
	if rising || !all {
		return rising
	}
	sorted := slices.Sorted(slices.Values(values))
	step := (sorted[len(sorted)-1] - sorted[0]) / float64(len(sorted)-1)
	for i := 1; i < len(sorted); i++ {
		if math.Abs(sorted[i]-sorted[i-1]-step) > 0.01*step {
			return false
		}
	}
	return true
}

// isLabel reports whether the value of a column tells the class of (nearly) every vertex: in the order of values,
// classes
// change about as seldom as they can.
func isLabel(values []float64, vertices []uint32, labels *graph.Labels) bool {
	type point struct {
		x     float64
		class int32
	}
	var list []point
	count := map[int32]int{}
	for k, v := range vertices {
		if labels.Class != nil && labels.Has(int(v)) && !math.IsNaN(values[k]) {
			list = append(list, point{values[k], labels.Class[v]})
			count[labels.Class[v]]++
		}
	}
	if len(list) < 20 || len(count) < 2 {
		return false
	}
	slices.SortFunc(list, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	// Runs of equal values each have a majority; those outside of it, and changes of the majority, speak against it.
	wrong, changes, last := 0, 0, int32(-1)
	for lo := 0; lo < len(list); {
		hi, of := lo, map[int32]int{}
		for hi < len(list) && list[hi].x == list[lo].x {
			of[list[hi].class]++
			hi++
		}
		major, most := int32(-1), 0
		for class, n := range of {
			if n > most || n == most && class < major {
				major, most = class, n
			}
		}
		wrong += hi - lo - most
		if major != last {
			changes, last = changes+1, major
		}
		lo = hi
	}
	rarest := len(list)
	for _, n := range count {
		rarest = min(rarest, n)
	}
	return 100*wrong <= rarest && changes <= 2*len(count)
}
