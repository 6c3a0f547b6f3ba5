package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"sync"

	"starling/event"
	"starling/report/chart"
)

//go:embed compare.html
var comparePage string

// compareTemplate is parsed when it is first used, not whenever the program starts.
var compareTemplate = sync.OnceValue(func() *template.Template {
	return newTemplate("compare", comparePage)
})

// HTML is the comparison as one page without any other files.
func (c *Comparison) HTML() []byte {
	var b bytes.Buffer
	if err := compareTemplate().Execute(&b, c.page()); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

// WriteHTML writes the page to a file, whole or not at all.
func (c *Comparison) WriteHTML(path string) error { return writeFile(path, c.HTML()) }

// page is the data of the template.
type page struct {
	*Comparison
	Tables   []*chart.Table
	Times    []bar
	Bytes    []bar
	Accuracy *accuracyChart // nil: nothing was measured
	Plots    []*chart.Lines
	Failed   []CompareRow
	Beside   []claim
	Shared   []Setting
	Rounds   string // what one round does not tell
}

// bar is a row of a bar chart: two parts of one bar, as percent of the longest.
type bar struct {
	Name, Text    string
	First, Second float64
}

// largeSpread is half the distance of the quartiles, as a share of the median, from which on the
// chart of times shows it too.
const largeSpread = 0.1

func (c *Comparison) page() *page {
	p := &page{Comparison: c, Beside: c.claims(), Shared: c.sharedSettings(), Rounds: c.needsRounds()}
	var slowest, most float64
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Error != "" {
			p.Failed = append(p.Failed, *r)
		}
		if r.Rounds > 0 {
			slowest, most = max(slowest, float64(r.MeanSeconds)), max(most, float64(r.Bytes.Total))
		}
	}
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Rounds > 0 {
			p.addBars(r, slowest, most)
		}
	}
	if len(p.Times) > 0 {
		p.Tables = []*chart.Table{c.pageTable(c.speedColumns()), c.pageTable(c.kindColumns())}
	}
	p.Accuracy = c.accuracyChart()
	p.Plots = c.plots()
	return p
}

func (c *Comparison) pageTable(columns []column) *chart.Table {
	t := &chart.Table{Heads: []string{"strategy"}}
	for _, col := range columns {
		t.Heads = append(t.Heads, col.head)
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Rounds == 0 {
			continue
		}
		line := chart.Line{Cells: []chart.Cell{chart.Text(r.label())}}
		for _, col := range columns {
			line.Cells = append(line.Cells, chart.Text(col.cell(r)))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

func (p *page) addBars(r *CompareRow, slowest, most float64) {
	s, waited := float64(r.MeanSeconds), float64(r.WaitShare)
	length := 100 * s / slowest
	text := fmt.Sprintf("%s, %s waiting", Seconds(s), wholePercent(r.WaitShare))
	if math.IsNaN(waited) {
		waited, text = 0, Seconds(s)+", waiting not measured"
	}
	if spread := r.quartileShare(); spread > largeSpread {
		text += fmt.Sprintf(", spread ±%.0f%%", 100*spread)
	}
	switch r.Difference {
	case Equal:
		text += "; about equal to " + p.Baseline
	case OneRound:
		text += "; one round does not tell it from " + p.Baseline
	}
	p.Times = append(p.Times, bar{r.label(), text, length * (1 - waited), length * waited})
	between := r.betweenServers()
	text = event.Bytes(r.Bytes.Total)
	if between > 0 {
		text += ", " + event.Bytes(between) + " between servers"
	}
	scale := 100 / max(most, 1)
	p.Bytes = append(p.Bytes, bar{r.label(), text, scale * float64(r.insideServers()), scale * float64(between)})
}
