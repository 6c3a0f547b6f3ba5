package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"

	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/setup"
)

// Describe opens a dataset, with all its checks if verify is set, and looks at it.
// With guess it also estimates what training takes.
func Describe(ctx context.Context, dir string, verify, guess bool) (*Info, error) {
	return setup.UntilInterrupted(ctx, "", func() (*Info, error) { return describe(ctx, dir, verify, guess) })
}

func describe(ctx context.Context, dir string, verify, guess bool) (*Info, error) {
	d, err := graph.OpenWith(dir, graph.OpenOptions{Verify: verify, CheckFeatures: verify})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := d.Graph.Validate(); err != nil { // neighbours are looked up below
		return nil, graph.InFile(dir, err)
	}
	m := &d.Meta
	i := &Info{Name: m.Name, Vertices: m.Nodes, Edges: m.Edges, Symmetric: m.Symmetric, Weighted: d.Graph.Weights != nil, EdgeDim: d.Graph.EdgeDim,
		Train: len(d.Splits.Train), Val: len(d.Splits.Val), Test: len(d.Splits.Test), Source: m.Source, Notes: m.Notes,
		FeatureDensity: report.Number(math.NaN()), Homophily: report.Number(math.NaN()), LabelsPerVertex: report.Number(math.NaN()), Task: m.Task}
	for _, a := range m.Arrays {
		i.Bytes += a.Bytes
	}
	i.degrees(d.Graph)
	if d.Features != nil {
		i.Features, i.FeatureKind, i.FeatureDensity = d.Features.Cols, string(d.Features.Kind()), report.Number(density(d.Features))
		i.Standardized = m.Features.Scale != nil
	}
	if d.Labels != nil {
		i.labels(d)
	}
	i.components(d.Graph)
	if d.Typed() {
		i.Reciprocity = report.Number(math.NaN()) // a relation has its reverse, or not
		i.typed(d)
		return i, nil
	}
	i.ranges(d)
	if guess {
		i.Estimate, err = estimate(ctx, d)
	}
	return i, err
}

// components counts the weakly connected components, by joining the ends of every
// edge. The root of a set is its least vertex.
func (i *Info) components(g *graph.CSR) {
	parent := make([]uint32, g.Nodes())
	for v := range parent {
		parent[v] = uint32(v)
	}
	root := func(v uint32) uint32 {
		for parent[v] != v {
			parent[v] = parent[parent[v]]
			v = parent[v]
		}
		return v
	}
	for v := range parent {
		at := root(uint32(v))
		for _, u := range g.Neighbors(uint32(v)) {
			if to := root(u); to < at {
				parent[at] = to
				at = to
			} else {
				parent[to] = at
			}
		}
	}
	size := make([]int64, len(parent))
	for v := range parent {
		r := root(uint32(v))
		if size[r] == 0 {
			i.Components++
		}
		size[r]++
		i.LargestComponent = max(i.LargestComponent, size[r])
	}
}

func (i *Info) degrees(g *graph.CSR) {
	n := g.Nodes()
	deg := make([]int64, n)
	for v := range n {
		deg[v] = g.Indptr[v+1] - g.Indptr[v]
		if deg[v] == 0 {
			i.Isolated++
		}
		for _, u := range g.Neighbors(uint32(v)) {
			if u == uint32(v) {
				i.SelfLoops++
			}
		}
	}
	slices.Sort(deg)
	at := func(q float64) int64 { return deg[int(q*float64(n-1)+0.5)] }
	i.Degree = Quantiles{Min: deg[0], Median: at(0.5), P90: at(0.9), P99: at(0.99), Max: deg[n-1], Mean: float64(g.Edges()) / float64(n)}
}

// density samples rows of dense features: a whole pass may be over more than memory.
func density(f *graph.Features) float64 {
	if f.Kind() == graph.Sparse {
		return float64(len(f.Indices)) / (float64(f.Rows) * float64(f.Cols))
	}
	const sample = 10_000
	row := make([]float32, f.Cols)
	rows := min(f.Rows, sample)
	filled := 0
	for k := range rows {
		f.CopyRow(row, uint32(k*(f.Rows/rows)))
		for _, x := range row {
			if x != 0 {
				filled++
			}
		}
	}
	return float64(filled) / (float64(rows) * float64(f.Cols))
}

func (i *Info) labels(d *graph.Dataset) {
	l := d.Labels
	if l.Values != nil {
		i.targets(l)
		return
	}
	i.Classes, i.ClassSizes, i.ClassNames = l.Classes, make([]int64, l.Classes), l.Names
	marks := int64(0)
	for v := range l.Len() {
		if !l.Has(v) {
			i.Unlabelled++
			continue
		}
		if l.Multi == nil {
			i.ClassSizes[l.Class[v]]++
			marks++
			continue
		}
		for c, m := range l.Row(v) {
			i.ClassSizes[c] += int64(m)
			marks += int64(m)
		}
	}
	if labelled := int64(l.Len()) - i.Unlabelled; labelled > 0 {
		i.LabelsPerVertex = report.Number(float64(marks) / float64(labelled))
	}
	same, all := 0, 0
	for v := range d.Graph.Nodes() {
		for _, u := range d.Graph.Neighbors(uint32(v)) {
			if l.Has(v) && l.Has(int(u)) {
				all++
				if alike(l, v, int(u)) {
					same++
				}
			}
		}
	}
	if all > 0 {
		i.Homophily = report.Number(float64(same) / float64(all))
	}
}

// alike tells whether two labelled vertices have a class in common.
func alike(l *graph.Labels, v, u int) bool {
	if l.Multi == nil {
		return l.Class[v] == l.Class[u]
	}
	other := l.Row(u)
	for c, m := range l.Row(v) {
		if m&other[c] == 1 {
			return true
		}
	}
	return false
}

// JSON writes the info as one object, to a file or with "-" to stdout.
func (i *Info) JSON(path string, stdout io.Writer) error { return report.WriteJSON(i, path, stdout) }

// String is the info for people.
func (i *Info) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("name", "%s", i.Name)
	line("vertices", "%s (%s without in-edges)", event.Count(i.Vertices), event.Count(i.Isolated))
	kind := map[bool]string{true: "symmetric", false: "directed"}[i.Symmetric]
	if i.EdgeDim > 0 {
		kind += ", " + event.Counted(i.EdgeDim, "feature") + " each"
	}
	if i.Weighted {
		kind += ", weighted"
	}
	line("edges", "%s, %s, %s", event.Count(i.Edges), kind, event.Counted(i.SelfLoops, "self-loop"))
	q := i.Degree
	line("degree", "mean %.1f, least %d, median %d, 90%% below %d, 99%% below %d, most %d", q.Mean, q.Min, q.Median, q.P90, q.P99, q.Max)
	if i.Features > 0 {
		line("features", "%d, %s, %.2f%% not zero", i.Features, i.FeatureKind, 100*float64(i.FeatureDensity))
	}
	i.showRanges(line)
	line("components", "%s, the largest of %s", event.Count(i.Components), event.Counted(i.LargestComponent, "vertex"))
	for k, t := range i.Targets[:min(len(i.Targets), 8)] {
		line("target", "%d of %d: %v", k, len(i.Targets), t)
	}
	if i.Targets != nil {
		line("unlabelled", "%s", event.Count(i.Unlabelled))
	}
	if i.ClassSizes != nil {
		i.showClasses(line)
	}
	if i.Types != nil {
		i.showTyped(line)
	} else {
		line("splits", "train %s, validation %s, test %s", event.Count(int64(i.Train)), event.Count(int64(i.Val)), event.Count(int64(i.Test)))
	}
	line("on disk", "%s", event.Bytes(i.Bytes))
	if i.Source != "" {
		line("source", "%s", i.Source)
	}
	for _, n := range i.Notes {
		line("note", "%s", n)
	}
	for _, w := range i.Warnings {
		line("warning", "%s", w)
	}
	if i.Estimate != nil {
		i.Estimate.show(line)
	}
	return b.String()
}

func (i *Info) showClasses(line func(name, format string, args ...any)) {
	line("classes", "%d, of %s to %s; %s unlabelled", i.Classes, event.Count(slices.Min(i.ClassSizes)), event.Counted(slices.Max(i.ClassSizes), "vertex"), event.Count(i.Unlabelled))
	line("balance", "%s", i.balance())
	same := "stay inside a class"
	if i.Task == graph.MultiLabel {
		line("labels", "%.2f per vertex", float64(i.LabelsPerVertex))
		same = "are between vertices that share a class"
	}
	if h := float64(i.Homophily); h == h { // there are edges between labelled vertices
		line("homophily", "%.3f of edges %s", h, same)
	}
}

func (e *Estimate) show(line func(name, format string, args ...any)) {
	line("training", "estimates for %s on this machine:", e.Settings)
	fits := "it fits"
	if e.Available > 0 && e.Memory > e.Available {
		fits = "it does not fit: see starling train --dry-run"
	}
	line("  memory", "%s, beside %s of mapped files; %s available, %s", event.Bytes(e.Memory), event.Bytes(e.Mapped), event.Bytes(e.Available), fits)
	line("  time", "about %s per epoch, %s in all (from %s)", about(float64(e.EpochSeconds)), about(float64(e.RunSeconds)), e.Timed)
	e.showGPUs(line)
}

// showGPUs says which GPUs of this host the same run fits.
func (e *Estimate) showGPUs(line func(name, format string, args ...any)) {
	for i, gpu := range e.Cards {
		fits := "it fits"
		if e.OnCard > gpu.Free {
			fits = "it does not fit: starling train with this --device says what would"
		}
		line(fmt.Sprintf("  cuda:%d", i), "%s on %s; %s free, %s", event.Bytes(e.OnCard), gpu.Name, event.Bytes(gpu.Free), fits)
	}
}

// shownClass is the name of a class for a terminal, or its number.
func shownClass(names []string, c int) string {
	name := graph.ClassName(names, c)
	if strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Sprintf("%.60q", name)
	}
	return name
}

// balance lists the shares of the classes, the largest first.
func (i *Info) balance() string {
	order := make([]int, len(i.ClassSizes))
	var total int64
	for c, n := range i.ClassSizes {
		order[c] = c
		total += n
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(i.ClassSizes[b], i.ClassSizes[a]) })
	const shown = 8
	var parts []string
	for _, c := range order[:min(len(order), shown)] {
		parts = append(parts, fmt.Sprintf("%s: %.1f%%", shownClass(i.ClassNames, c), 100*float64(i.ClassSizes[c])/float64(max(total, 1))))
	}
	if len(order) > shown {
		parts = append(parts, fmt.Sprintf("and %d more", len(order)-shown))
	}
	return strings.Join(parts, ", ")
}

// about is a duration to two digits or so.
func about(seconds float64) string {
	switch {
	case seconds < 0.01:
		return fmt.Sprintf("%.1f ms", 1000*seconds)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", 1000*seconds)
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 120:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 7200:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}
