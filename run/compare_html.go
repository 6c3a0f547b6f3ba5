package run

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/wire"
)

//go:embed compare.html
var comparePage string

var compareTemplate = template.Must(template.New("compare").Parse(comparePage))

// HTML is the comparison as one page that needs nothing else.
func (c *Comparison) HTML() []byte {
	var b bytes.Buffer
	if err := compareTemplate.Execute(&b, c.page()); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

// WriteHTML puts the page into a file, whole or not at all.
func (c *Comparison) WriteHTML(path string) error {
	return graph.WriteFileAtomic(path, func(w io.Writer) error {
		_, err := w.Write(c.HTML())
		return err
	})
}

// page is what the template shows.
type page struct {
	*Comparison
	Heads  []string // of the table
	Cells  [][]string
	Times  []bar
	Bytes  []bar
	Curves []curve
	Low    string // the range of the curves' axis
	High   string
	Epochs int
	Failed []CompareRow
	Beside []beside
}

// bar is a row of a bar chart: two parts of one length, as percent of the longest.
type bar struct {
	Name, Text    string
	First, Second float64
}

type curve struct {
	Name, Points, Colour string
}

// colours are told apart in light and dark, and without red and green.
var colours = []string{"#4477aa", "#ee7733", "#009988", "#cc3311", "#33bbee", "#ee3377", "#997700", "#999999"}

func (c *Comparison) page() *page {
	p := &page{Comparison: c, Beside: c.besidePapers()}
	columns := append(c.speed(), c.kinds()...)
	p.Heads = []string{"strategy"}
	for _, col := range columns {
		p.Heads = append(p.Heads, col.head)
	}
	var slowest, most float64
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Rounds == 0 {
			p.Failed = append(p.Failed, *r)
			continue
		}
		line := []string{r.Strategy}
		for _, col := range columns {
			line = append(line, col.cell(r))
		}
		p.Cells = append(p.Cells, line)
		slowest, most = max(slowest, float64(r.MeanSeconds)), max(most, float64(r.Bytes.Total))
	}
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Rounds > 0 {
			p.bars(r, slowest, most)
		}
	}
	p.curves()
	return p
}

func (p *page) bars(r *CompareRow, slowest, most float64) {
	s, waited := float64(r.MeanSeconds), float64(r.WaitShare)
	whole := 100 * s / slowest
	p.Times = append(p.Times, bar{r.Strategy, fmt.Sprintf("%s, %s waiting", seconds(s), percent(waited)), whole * (1 - waited), whole * waited})
	between := r.Bytes.ByLink[wire.BetweenServers.String()]
	text := event.Bytes(r.Bytes.Total)
	if between > 0 {
		text += ", " + event.Bytes(between) + " between servers"
	}
	scale := 100 / max(most, 1)
	p.Bytes = append(p.Bytes, bar{r.Strategy, text, scale * float64(r.inside()), scale * float64(between)})
}

// curves scales losses into a box of 100 by 100; long ones are thinned.
func (p *page) curves() {
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range p.Rows {
		p.Epochs = max(p.Epochs, len(r.Loss))
		for _, x := range r.Loss {
			low, high = min(low, float64(x)), max(high, float64(x))
		}
	}
	p.Low, p.High = fmt.Sprintf("%.3g", low), fmt.Sprintf("%.3g", high)
	for _, r := range p.Rows {
		if len(r.Loss) == 0 {
			continue
		}
		var points []string
		step := max(len(r.Loss)/400, 1)
		for e := 0; e < len(r.Loss); e += step {
			points = append(points, fmt.Sprintf("%.2f,%.2f", 100*float64(e)/float64(max(p.Epochs-1, 1)), 100-100*(float64(r.Loss[e])-low)/max(high-low, 1e-300)))
		}
		p.Curves = append(p.Curves, curve{r.Strategy, strings.Join(points, " "), colours[len(p.Curves)%len(colours)]})
	}
}
