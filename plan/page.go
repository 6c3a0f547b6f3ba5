package plan

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"sync"

	"starling/event"
	"starling/report"
	"starling/report/chart"
	"starling/train"
)

//go:embed page.html
var pageText string

// planTemplate is parsed when it is first used, not whenever the program starts.
var planTemplate = sync.OnceValue(func() *template.Template { return chart.New("plan", pageText) })

// page is the data of the template.
type page struct {
	Title, About string
	Pick         *pagePick // nil: none
	Keys         []chart.Key
	Groups       []group
	Dropped      *folded
}

type pagePick struct {
	Facts        []chart.Fact
	Why, Command string
}

// group is exact or approximate choices.
type group struct {
	Title, Note string
	First       *chart.Table
	Rest        *folded
}

// folded is a table that a click shows.
type folded struct {
	Summary string
	Table   *chart.Table
}

// shownOnPage is how many choices of a group are not folded.
const shownOnPage = 10

// The parts of a choice's bar.
var (
	partKinds = []string{"k-compute", "k-wait", "k-slow"}
	partNames = []string{"computing", "exposed transfers", "waiting for the slowest"}
)

// WriteHTML writes a page of the pick, and of all choices with their times.
func (c *Choices) WriteHTML(path string) error { return report.WritePage(path, c.html()) }

func (c *Choices) html() []byte {
	var b bytes.Buffer
	if err := planTemplate().Execute(&b, c.page()); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

func (c *Choices) page() *page {
	p := &page{Title: "Plan of " + c.Dataset, About: c.about() + ".", Pick: c.pagePick(), Dropped: c.pageDropped()}
	for i, kind := range partKinds {
		p.Keys = append(p.Keys, chart.Key{Kind: kind, Text: partNames[i]})
	}
	p.addGroup(c, true, "Exact: the loss curve of one worker", "")
	p.addGroup(c, false, "Approximate: another loss curve", "Picked with --allow-approximate only.")
	return p
}

// about is what is planned, and where it would run.
func (c *Choices) about() string {
	mode := "full graph"
	if c.Mode == string(train.MiniBatch) {
		mode = "mini-batches"
	}
	text := fmt.Sprintf("%s, %s, on %s on %s", c.Model, mode, event.Counted(c.Workers, "worker"),
		event.Counted(c.Servers, "server"))
	if c.Servers > 1 {
		text += ", " + rateText(c.Between.Rate) + " between servers"
	}
	return text + "; planned in " + report.Seconds(c.Seconds)
}

func (c *Choices) pagePick() *pagePick {
	r := c.Pick
	if r == nil {
		return nil
	}
	curve := "exact"
	if !r.Exact {
		curve = "approximate"
	}
	facts := []chart.Fact{{Name: "strategy", Value: r.names()}, {Name: "loss curve", Value: curve},
		{Name: "mode", Value: c.Mode}, {Name: "epoch, predicted", Value: report.Seconds(r.Predicted.Seconds)}}
	if c.Servers > 1 {
		facts = append(facts, chart.Fact{Name: "rate between servers", Value: rateText(c.Between.Rate)},
			chart.Fact{Name: "sent between servers", Value: event.Bytes(r.Predicted.Between) + " per epoch"})
	}
	facts = append(facts, chart.Fact{Name: "memory of a worker", Value: event.Bytes(r.Predicted.Memory)})
	return &pagePick{facts, r.Why, r.Command}
}

// addGroup adds the exact or the approximate choices, if there are any.
func (p *page) addGroup(c *Choices, exact bool, title, note string) {
	var rows []*Planned
	for i := range c.Rows {
		if c.Rows[i].Exact == exact {
			rows = append(rows, &c.Rows[i])
		}
	}
	if len(rows) == 0 {
		return
	}
	g := group{Title: title, Note: note}
	first, rest := rows, []*Planned(nil)
	if len(rows) > shownOnPage {
		first, rest = rows[:shownOnPage], rows[shownOnPage:]
	}
	g.First = c.pageTable(first, rows[0])
	if len(rest) > 0 {
		g.Rest = &folded{fmt.Sprintf("%d more", len(rest)), c.pageTable(rest, rows[0])}
	}
	p.Groups = append(p.Groups, g)
}

// pageTable is rows beside the fastest of their group.
func (c *Choices) pageTable(rows []*Planned, fastest *Planned) *chart.Table {
	t := &chart.Table{Heads: []string{"choice", "epoch", "computing", "exposed", "waiting", "between", "memory",
		"why it is here", "command"}}
	of := func(seconds float64) chart.Cell { return chart.Of(seconds, report.Seconds(seconds)) }
	for _, r := range rows {
		p := &r.Predicted
		epoch := of(p.Seconds)
		epoch.Kind = "bars"
		epoch.Parts = chart.Bar(partKinds, []float64{c.width(p.Compute), c.width(p.Exposed), c.width(p.Waiting)})
		why := r.Why
		if r != fastest && p.Seconds <= (1+tie)*fastest.Predicted.Seconds {
			why = "about equal to the first; " + why
		}
		t.Rows = append(t.Rows, chart.Line{Cells: []chart.Cell{chart.Wide(r.names()), epoch, of(p.Compute),
			of(p.Exposed), of(p.Waiting), chart.Of(float64(p.Between), event.Bytes(p.Between)),
			chart.Of(float64(p.Memory), event.Bytes(p.Memory)), chart.Wide(why), chart.Folded("show", r.Command)}})
	}
	return t
}

// pageDropped is what was left out, folded.
func (c *Choices) pageDropped() *folded {
	if len(c.Dropped) == 0 {
		return nil
	}
	n, t := 0, &chart.Table{Heads: []string{"choice", "why"}}
	for _, d := range c.Dropped {
		n += max(d.choices, 1)
		t.Rows = append(t.Rows, chart.Line{Cells: []chart.Cell{chart.Wide(named(d.Name, d.Partitioner)),
			chart.Wide(d.Reason)}})
	}
	return &folded{"left out: " + event.Counted(n, "choice"), t}
}

// width is a part of a bar, in percent of the slowest choice that is not folded: folded ones may be many times as slow,
// and their bars end at the border.
func (c *Choices) width(seconds float64) float64 {
	slowest, shown := 1e-12, map[bool]int{}
	for i := range c.Rows {
		if r := &c.Rows[i]; shown[r.Exact] < shownOnPage {
			shown[r.Exact]++
			slowest = max(slowest, r.Predicted.Seconds)
		}
	}
	return 100 * seconds / slowest
}
