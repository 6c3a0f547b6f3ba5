package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"sync"

	"starling/event"
	"starling/partition"
	"starling/report/chart"
)

//go:embed partition.html
var partitionText string

// partitionTemplate is parsed when it is first used, not whenever the program starts.
var partitionTemplate = sync.OnceValue(func() *template.Template { return newTemplate("partition", partitionText) })

// partitionPage is the data of the template.
type partitionPage struct {
	Title           string
	Facts, Balances []chart.Fact
	Notes, Left     []string
	Traffic         *chart.Heat // nil: there is none
	Parts, Others   *chart.Table
}

// HTML is a page of the result: sizes of the parts, the rows that they need of each other, and what other methods
// would have given.
func (r *Partition) HTML() []byte {
	p := &partitionPage{Title: fmt.Sprintf("%s: %s by %s", r.Dataset, event.Counted(r.Report.Parts, "part"), r.Method),
		Facts: r.facts(), Notes: r.Notes, Traffic: r.traffic(), Parts: r.parts(), Others: r.others(), Left: r.left()}
	for _, name := range r.Constraints() {
		p.Balances = append(p.Balances, chart.Fact{Name: name, Value: fmt.Sprintf("%.3f", r.Balance[name])})
	}
	var b bytes.Buffer
	if err := partitionTemplate().Execute(&b, p); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

func (r *Partition) facts() (list []chart.Fact) {
	add := func(name, value string) { list = append(list, chart.Fact{Name: name, Value: value}) }
	add("vertices", event.Count(r.Vertices))
	add("edges", event.Count(r.Edges))
	add("edge cut", fmt.Sprintf("%s (%s)", event.Count(r.EdgeCut), Percent(r.EdgeCutShare)))
	add("communication volume", event.Counted(r.CommVolume, "row"))
	add("most and fewest remote vertices", fmt.Sprintf("%s and %s (%.3fx)", event.Count(r.RemoteMax),
		event.Count(r.RemoteMin), r.RemoteMaxOverMin))
	if r.Servers > 1 {
		add("rows between servers", event.Count(r.BetweenServers))
	}
	add("feature rows of all halos", event.Bytes(r.HaloBytes))
	of := r.Plan.Trained
	if of == "" {
		of = fmt.Sprintf("%d-layer %s", len(r.Plan.Layers), r.Plan.Model)
	}
	add("sent per epoch, "+of+" on the full graph", event.Bytes(r.Plan.EpochBytes))
	if s := r.Plan.Sampled; s != nil {
		add(fmt.Sprintf("pulled per epoch, batches of %d, neighbours %v", s.BatchSize, s.Fanout),
			fmt.Sprintf("about %s; %s of rows are remote", event.Bytes(s.EpochBytes), Percent(s.RemoteShare)))
	}
	add("found in", Seconds(r.Seconds))
	return list
}

// traffic shades pairs of parts by the root of their rows, so that light traffic is visible.
func (r *Partition) traffic() *chart.Heat {
	rows := make([][]float64, len(r.Traffic))
	for p, row := range r.Traffic {
		for _, n := range row {
			rows[p] = append(rows[p], float64(n))
		}
	}
	return chart.NewRootHeat("Rows that the part on the left needs from the part below, in each layer", "part",
		"from part", "rows", rows, func(x float64) string { return event.Counted(int64(x), "row") })
}

// parts are the sizes of parts, with bars relative to the largest.
func (r *Partition) parts() *chart.Table {
	t := &chart.Table{Heads: []string{"part", "vertices", "in-edges", "remote vertices", "rows sent", "memory, about"}}
	if r.Servers > 1 {
		t.Heads = slices.Insert(t.Heads, 1, "server")
	}
	sent := make([]int64, r.Report.Parts)
	for _, row := range r.Traffic {
		for q, rows := range row {
			sent[q] += rows
		}
	}
	each := max(r.Report.Parts/max(r.Servers, 1), 1)
	count := func(list []int64, k int) chart.Cell {
		c := chart.Of(float64(list[k]), event.Count(list[k]))
		c.Share = int(math.Round(100 * float64(list[k]) / float64(max(slices.Max(list), 1))))
		return c
	}
	for k := range r.Report.Parts {
		cells := []chart.Cell{chart.Of(float64(k), fmt.Sprint(k)), count(r.Core, k), count(r.CoreEdges, k),
			count(r.Remote, k), count(sent, k), chart.Of(float64(r.Plan.Memory[k]), event.Bytes(r.Plan.Memory[k]))}
		if r.Servers > 1 {
			cells = slices.Insert(cells, 1, chart.Of(float64(k/each), fmt.Sprint(k/each)))
		}
		t.Rows = append(t.Rows, chart.Line{Cells: cells})
	}
	return t
}

// others are the methods that were compared; nil: none.
func (r *Partition) others() *chart.Table {
	if len(r.Compared) == 0 {
		return nil
	}
	heads := []string{"method", "edge cut", "volume", "remote max/min", "sent per epoch", "found in"}
	t := &chart.Table{Heads: append(heads, r.Constraints()...)}
	for _, c := range r.Compared {
		cells := []chart.Cell{chart.Text(c.Method), chart.Of(float64(c.EdgeCut), event.Count(c.EdgeCut)),
			chart.Of(float64(c.CommVolume), event.Count(c.CommVolume)),
			chart.Of(c.RemoteMaxOverMin, fmt.Sprintf("%.3f", c.RemoteMaxOverMin)),
			chart.Of(float64(c.EpochBytes), event.Bytes(c.EpochBytes)), chart.Of(c.Seconds, Seconds(c.Seconds))}
		for _, name := range r.Constraints() {
			cells = append(cells, chart.Of(c.Balance[name], fmt.Sprintf("%.3f", c.Balance[name])))
		}
		line := chart.Line{Cells: cells}
		if c.Method == r.Method {
			line.Kind = "chosen"
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// left names the methods that were not run for the page.
func (r *Partition) left() (list []string) {
	if len(r.Compared) == 0 {
		return nil
	}
	for _, name := range partition.Names() {
		switch {
		case slices.ContainsFunc(r.Compared, func(c partition.Compared) bool { return c.Method == name }):
		case partition.IsEngine(name):
			list = append(list, name+": runs another program; cut with --method "+name+" to see it")
		case name == "metis":
			list = append(list, "metis: needs the library METIS; cut with --method metis to see it")
		default:
			list = append(list, name+": takes longer than the methods above; cut with --method "+name+" to see it")
		}
	}
	return list
}
