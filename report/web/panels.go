package web

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"sync"

	"starling/report"
	"starling/report/chart"
)

//go:embed panels.html
var panelsText string

//go:embed live.js
var liveScript string

// pageTemplate has the page and its panels.
var pageTemplate = sync.OnceValue(func() *template.Template { return chart.New("page", panelsText) })

// panel is a part of a page that is sent anew when it changes.
type panel struct {
	ID      string
	Half    bool // beside another, where there is space
	HTML    template.HTML
	version uint64
	event   []byte // that shows it
}

// drawn are the panels of runs, in the order of the page.
func drawn(runs []*state) (list []panel) {
	add := func(id, name string, data any) {
		var b bytes.Buffer
		if err := pageTemplate().ExecuteTemplate(&b, name, data); err != nil {
			panic(err) // the template and its data are both ours
		}
		list = append(list, panel{ID: id, Half: name == "happened" || name == "plan",
			HTML: template.HTML(bytes.TrimSpace(b.Bytes()))})
	}
	heads := []head{}
	for _, s := range runs {
		heads = append(heads, s.head())
	}
	add("top", "top", heads)
	add("curves", "curves", curvesOf(runs))
	for i, s := range runs {
		id := func(name string) string { return fmt.Sprintf("%s-%d", name, i) }
		of := ""
		if len(runs) > 1 {
			of = s.name
		}
		for _, p := range []struct {
			name string
			data any
		}{
			{"time", s.timePanel(of)}, {"bytes", s.bytesPanel(of, id("table-bytes"))},
			{"workers", s.workersPanel(of, id("table-workers"))}, {"happened", s.happenedPanel(of,
				id("table-happened"))},
			{"plan", s.planPanel(of)}, {"settings", s.settingsPanel(of)},
		} {
			add(id(p.name), p.name, p.data)
		}
	}
	return list
}

// page is the data of the page's template.
type page struct {
	Title   string
	Panels  []panel
	Several bool
	Live    bool
	Version uint64
	Result  template.HTML // what a run ends with, as the page of its result
	Numbers []numbers     // of a page that is saved
}

// LiveScript follows the stream of changes.
func (p *page) LiveScript() template.JS { return template.JS(liveScript) }

// numbers are the exact numbers of a run, as --json has them.
type numbers struct {
	Name         string          `json:"name"`
	Every        int             `json:"every"` // 1: all epochs are listed
	Epochs       []int           `json:"epochs"`
	Loss         []report.Number `json:"loss"`
	EpochSeconds []report.Number `json:"epoch_seconds"`
	Train        []report.Number `json:"train"`
	Val          []report.Number `json:"val"`
	Test         []report.Number `json:"test"`
}

func (s *state) numbers() numbers {
	c := &s.curve
	return numbers{Name: s.name, Every: max(c.Every, 1), Epochs: append([]int{}, c.Epochs...),
		Loss:         report.Numbers(c.Loss),
		EpochSeconds: report.Numbers(c.Seconds), Train: report.Numbers(c.Train), Val: report.Numbers(c.Val),
		Test: report.Numbers(c.Test)}
}

// title names the runs.
func title(runs []*state) string {
	if len(runs) == 1 {
		if s := runs[0]; s.started.Model != "" {
			return s.started.Model + " on " + s.started.Dataset
		}
		return runs[0].name
	}
	return fmt.Sprintf("%d runs", len(runs))
}

// execute is a page as HTML.
func (p *page) execute() []byte {
	var b bytes.Buffer
	if err := pageTemplate().ExecuteTemplate(&b, "whole", p); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

// Page is runs as one file that needs nothing else, with all their numbers.
func Page(runs ...*Run) []byte {
	var list []*state
	for _, r := range runs {
		list = append(list, r.snapshot())
	}
	return saved(list)
}

func saved(list []*state) []byte {
	p := &page{Title: title(list), Panels: drawn(list), Several: len(list) > 1}
	for _, s := range list {
		p.Numbers = append(p.Numbers, s.numbers())
	}
	if len(list) == 1 && list[0].result != nil {
		p.Result = list[0].result.Sections()
	}
	return p.execute()
}
