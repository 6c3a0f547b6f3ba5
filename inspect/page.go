package inspect

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"math/bits"
	"slices"
	"sync"

	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/report/chart"
)

//go:embed page.html
var infoPage string

var infoTemplate = sync.OnceValue(func() *template.Template {
	return chart.New("info", infoPage)
})

// page is what the page of a dataset shows.
type page struct {
	Info       *Info
	Summary    string
	Advice     []remark
	Suspicious []suspect
	Facts      []remark
	Degrees    []bar
	Classes    []classChart
	Types      [][]string
	Relations  [][]string
	Columns    [][]string

	MoreColumns string
}

// classChart shows the classes of the graph, or of a type.
type classChart struct {
	Of, More string
	Bars     []bar
}

type remark struct{ What, Why string }

type bar struct {
	Name, Text string
	Length     float64 // percent of the longest
}

// Most of what is shown one by one.
const mostBars, mostColumns = 30, 200

// table is rows under heads, to be sorted.
func table(heads []string, rows [][]string) *chart.Table {
	t := &chart.Table{Heads: heads}
	for _, row := range rows {
		var line chart.Line
		for _, text := range row {
			line.Cells = append(line.Cells, chart.Text(text))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// remarks is a table of what is remarkable, and why.
func remarks(heads []string, list []remark) *chart.Table {
	t := &chart.Table{Heads: heads}
	for _, r := range list {
		t.Rows = append(t.Rows, chart.Line{Cells: []chart.Cell{chart.Text(r.What), chart.Wide(r.Why)}})
	}
	return t
}

// FactsTable and those below are the tables of the page.
func (p *page) FactsTable() *chart.Table { return remarks([]string{"", ""}, p.Facts) }

func (p *page) SuspiciousTable() *chart.Table {
	var list []remark
	for _, s := range p.Suspicious {
		list = append(list, remark{s.Name, s.Why})
	}
	return remarks([]string{"column", "why"}, list)
}

func (p *page) TypesTable() *chart.Table { return table(p.Types[0], p.Types[1:]) }

func (p *page) RelationsTable() *chart.Table { return table(p.Relations[0], p.Relations[1:]) }

func (p *page) ColumnsTable() *chart.Table {
	return table([]string{"column", "least", "mean", "largest", "deviation", "zeros", "missing"}, p.Columns)
}

// WriteHTML writes a page about the dataset in a folder that was described, whole or not at all.
func (i *Info) WriteHTML(dir, path string) error {
	d, err := graph.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	var b bytes.Buffer
	if err := infoTemplate().Execute(&b, i.page(d)); err != nil {
		return err
	}
	return report.WritePage(path, b.Bytes())
}

func (i *Info) page(d *graph.Dataset) *page {
	p := &page{Info: i, Degrees: degreeBars(d.Graph)}
	p.Summary = event.Counted(i.Vertices, "vertex") + ", " + event.Counted(i.Edges,
		"edge") + ", " + event.Bytes(i.Bytes)
	p.classes(i)
	columns := i.columns(d)
	p.columns(columns)
	repeated := repeatedEdges(d.Graph)
	p.facts(i, d, repeated)
	p.typed(i)
	p.Advice = i.advice(d, columns, repeated)
	return p
}

// degreeBars count vertices by powers of two of their in-edges.
func degreeBars(g *graph.CSR) []bar {
	var count []int64
	for v := range uint32(g.Nodes()) {
		k := bits.Len(uint(g.Degree(v)))
		for len(count) <= k {
			count = append(count, 0)
		}
		count[k]++
	}
	names := make([]string, len(count))
	for k := range names {
		switch lo, hi := 1<<max(k-1, 0), 1<<k-1; {
		case k == 0:
			names[k] = "none"
		case lo == hi:
			names[k] = fmt.Sprint(lo)
		default:
			names[k] = fmt.Sprintf("%d to %d", lo, hi)
		}
	}
	return bars(names, count)
}

func bars(names []string, count []int64) (list []bar) {
	all := int64(0)
	for _, n := range count {
		all += n
	}
	for k, n := range count {
		list = append(list, bar{names[k], fmt.Sprintf("%d (%.1f%%)", n, 100*float64(n)/float64(max(all, 1))),
			100 * float64(n) / float64(max(slices.Max(count), 1))})
	}
	return list
}

func (p *page) classes(i *Info) {
	p.addClasses("", i.ClassSizes, i.ClassNames)
	for t := range i.Types {
		p.addClasses(i.Types[t].Name, i.Types[t].ClassSizes, i.Types[t].ClassNames)
	}
}

func (p *page) addClasses(of string, sizes []int64, names []string) {
	var shown []string
	for k := range sizes[:min(len(sizes), mostBars)] {
		name := fmt.Sprint(k)
		if k < len(names) {
			name = names[k]
		}
		shown = append(shown, name)
	}
	if len(sizes) == 0 {
		return
	}
	c := classChart{Of: of, Bars: bars(shown, sizes[:len(shown)])}
	if more := len(sizes) - len(shown); more > 0 {
		c.More = event.Counted(more, "more class")
	}
	p.Classes = append(p.Classes, c)
}

// columns describes dense features; of a typed graph those of every type, with its name before theirs.
func (i *Info) columns(d *graph.Dataset) (all []column) {
	if d.Features != nil && d.Features.Kind() != graph.Sparse {
		return columnsOf(d)
	}
	for k := range i.Types {
		if i.Types[k].Features == 0 || i.Types[k].Vertices == 0 {
			continue
		}
		for _, c := range columnsOf(d.OfType(k)) {
			c.name = i.Types[k].Name + ": " + c.name
			all = append(all, c)
		}
	}
	return all
}

func number(x float64) string { return fmt.Sprintf("%.4g", x) }

func share(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func (p *page) columns(list []column) {
	for k := range list {
		c := &list[k]
		if c.why != "" {
			p.Suspicious = append(p.Suspicious, suspect{c.name, c.why})
		}
		if k < mostColumns {
			p.Columns = append(p.Columns, []string{c.name, number(c.min), number(c.mean), number(c.max),
				number(c.deviation), share(c.zeros), share(c.missing)})
		}
	}
	if more := len(list) - mostColumns; more > 0 {
		p.MoreColumns = fmt.Sprintf("and %d columns more", more)
	}
}

func (p *page) facts(i *Info, d *graph.Dataset, repeated int64) {
	add := func(what, format string, args ...any) {
		p.Facts = append(p.Facts, remark{what, fmt.Sprintf(format, args...)})
	}
	q := i.Degree
	add("in-edges", "%.1f on average, median %d, 99 of 100 have at most %d, most %d", q.Mean, q.Median, q.P99, q.Max)
	add("without in-edges", "%d vertices (%s)", i.Isolated, share(float64(i.Isolated)/float64(max(i.Vertices, 1))))
	add("components", "%d; the largest has %s of the vertices", i.Components,
		share(float64(i.LargestComponent)/float64(max(i.Vertices, 1))))
	if i.Symmetric {
		add("direction", "every edge has its reverse")
	} else if !math.IsNaN(float64(i.Reciprocity)) {
		add("direction", "%s of the edges have their reverse", share(float64(i.Reciprocity)))
	}
	add("loops and repeats", "%d edges from a vertex to itself, %d repeated ones", i.SelfLoops, repeated)
	if x := float64(i.Homophily); !math.IsNaN(x) {
		add("homophily", "%s of the edges join vertices of one class", share(x))
	}
	if i.Task != "" {
		add("labels", "%s; %d vertices without one", i.Task, i.Unlabelled)
		add("splits", "%d to train on, %d to validate, %d to test", i.Train, i.Val, i.Test)
	}
	if d.Times != nil || d.Graph.EdgeTimes != nil {
		add("times", "%s", timesText(d))
	}
	if r := i.WeightRange; r != nil {
		add("weights", "%s", r)
	}
	for _, note := range i.Notes {
		add("import", "%s", note)
	}
}

// timesText says which times there are.
func timesText(d *graph.Dataset) string {
	of := func(what string, times []int64) string {
		lo, hi, some := int64(math.MaxInt64), int64(math.MinInt64), false
		for _, t := range times {
			if t != graph.NoTime {
				lo, hi, some = min(lo, t), max(hi, t), true
			}
		}
		if !some {
			return ""
		}
		return fmt.Sprintf("%s %s to %s", what, d.Meta.TimeText(lo), d.Meta.TimeText(hi))
	}
	a, b := of("edges", d.Graph.EdgeTimes), of("vertices", d.Times)
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

func (p *page) typed(i *Info) {
	if i.Types != nil {
		p.Types, p.Relations = i.typeRows(), i.relationRows()
	}
}

// repeatedEdges are edges beyond the first of the same ends (and relation).
func repeatedEdges(g *graph.CSR) (n int64) {
	var row []uint64
	for v := range uint32(g.Nodes()) {
		row = row[:0]
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			x := uint64(g.Indices[e])
			if g.Relations != nil {
				x |= uint64(g.Relations[e]) << 32
			}
			row = append(row, x)
		}
		slices.Sort(row)
		n += int64(len(row) - len(slices.Compact(row)))
	}
	return n
}
