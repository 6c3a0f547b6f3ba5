package run

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"starling/disk"
	"starling/event"
	"starling/wire"
)

//go:embed compare.html
var comparePage string

// compareTemplate is parsed when it is first wanted, not whenever the program starts.
var compareTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("compare").Parse(comparePage))
})

// HTML is the comparison as one page that needs nothing else.
func (c *Comparison) HTML() []byte {
	var b bytes.Buffer
	if err := compareTemplate().Execute(&b, c.page()); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

// WriteHTML puts the page into a file, whole or not at all.
func (c *Comparison) WriteHTML(path string) error {
	return disk.Write(path, func(w io.Writer) error {
		_, err := w.Write(c.HTML())
		return err
	})
}

// page is what the template shows.
type page struct {
	*Comparison
	Tables []pageTable
	Times  []bar
	Bytes  []bar
	Curves []curve
	Low    string // the range of the curves' axis
	High   string
	Epochs int
	Failed []CompareRow
	Beside []beside
}

type pageTable struct {
	Heads []string
	Cells [][]string
}

// bar is a row of a bar chart: two parts of one length, as percent of the longest.
type bar struct {
	Name, Text    string
	First, Second float64
}

// curve is a line, and whoever is on it: strategies that agree would hide each other.
type curve struct {
	Names                []string
	Points, Colour, Dash string
	at                   []float64 // its heights, in percent
}

// colours are told apart in light and dark, and without red and green; dashes tell
// lines apart without any.
var (
	colours = []string{"#4477aa", "#ee7733", "#009988", "#cc3311", "#33bbee", "#ee3377", "#997700", "#999999"}
	dashes  = []string{"none", "7 3", "2 3"}
)

func (c *Comparison) page() *page {
	p := &page{Comparison: c, Beside: c.besidePapers()}
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
			p.bars(r, slowest, most)
		}
	}
	if len(p.Times) > 0 {
		p.Tables = []pageTable{c.pageTable(c.speed()), c.pageTable(c.kinds())}
	}
	p.curves()
	return p
}

func (c *Comparison) pageTable(columns []column) (t pageTable) {
	t.Heads = []string{"strategy"}
	for _, col := range columns {
		t.Heads = append(t.Heads, col.head)
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Rounds == 0 {
			continue
		}
		line := []string{r.Strategy}
		for _, col := range columns {
			line = append(line, col.cell(r))
		}
		t.Cells = append(t.Cells, line)
	}
	return t
}

func (p *page) bars(r *CompareRow, slowest, most float64) {
	s, waited := float64(r.MeanSeconds), float64(r.WaitShare)
	length := 100 * s / slowest
	p.Times = append(p.Times, bar{r.Strategy, fmt.Sprintf("%s, %s waiting", seconds(s), whole(r.WaitShare)), length * (1 - waited), length * waited})
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
			if y := float64(x); !math.IsNaN(y) && !math.IsInf(y, 0) {
				low, high = min(low, y), max(high, y)
			}
		}
	}
	p.Low, p.High = fmt.Sprintf("%.3g", low), fmt.Sprintf("%.3g", high)
	for _, r := range p.Rows {
		var at []float64
		for _, x := range r.Loss {
			y := 100 * (float64(x) - low) / max(high-low, 1e-300)
			if !(y >= 0 && y <= 100) {
				break // a loss that is no number: the line ends here
			}
			at = append(at, y)
		}
		if len(at) > 0 {
			p.draw(r.Strategy, at)
		}
	}
}

// draw adds a line, or a name to one that it cannot be told from.
func (p *page) draw(name string, at []float64) {
	for i := range p.Curves {
		if c := &p.Curves[i]; slices.EqualFunc(c.at, at, func(a, b float64) bool { return math.Abs(a-b) < 0.5 }) {
			c.Names = append(c.Names, name)
			return
		}
	}
	var points []string
	step := max(len(at)/400, 1)
	for e := 0; e < len(at); e += step {
		points = append(points, fmt.Sprintf("%.2f,%.2f", 100*float64(e)/float64(max(p.Epochs-1, 1)), 100-at[e]))
	}
	i := len(p.Curves)
	p.Curves = append(p.Curves, curve{[]string{name}, strings.Join(points, " "), colours[i%len(colours)], dashes[i%len(dashes)], at})
}
