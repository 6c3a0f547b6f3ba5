package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"sync"

	"starling/event"
)

//go:embed run.html
var runPage string

var runTemplate = sync.OnceValue(func() *template.Template {
	return newTemplate("run", evaluationBody+runPage)
})

// runView is the data of the template.
type runView struct {
	Warnings   []string
	Facts      []Setting
	Evaluation *evaluationView // nil: there is none
	Made       *Made
}

// Sections are what a run ended with, for a page of it: figures, the report by class, and how it was made.
func (r *Run) Sections() template.HTML {
	v := runView{Warnings: r.Warnings, Facts: r.facts(), Made: r.Made}
	if r.Evaluation != nil {
		v.Evaluation = newEvaluationView(r.Evaluation, "")
	}
	var b bytes.Buffer
	if err := runTemplate().Execute(&b, v); err != nil {
		panic(err) // the template and its data are both ours
	}
	return template.HTML(b.String())
}

// WriteHTML writes the run's page to a file, whole or not at all.
func (r *Run) WriteHTML(path string) error { return writeFile(path, r.Page()) }

// facts are what a reader looks for first.
func (r *Run) facts() (list []Setting) {
	add := func(name, format string, args ...any) {
		list = append(list, Setting{name, fmt.Sprintf(format, args...)})
	}
	if r.BestEpoch >= 0 {
		add("best epoch", "%d", r.BestEpoch+1)
		for _, x := range []struct {
			split string
			value Number
		}{{"validation", r.BestValAccuracy}, {"test", r.TestAccuracy}} {
			if !math.IsNaN(float64(x.value)) {
				add(x.split+" "+r.Metric, "%.4f", float64(x.value))
			}
		}
	}
	add("workers", "%d", r.Workers)
	if r.Workers > 1 {
		add("strategy", "%s", r.Strategy)
		add("sent", "%s", event.Bytes(r.Bytes.Total))
	}
	if x := float64(r.MedianEpochSeconds); x > 0 {
		add("median epoch", "%s", Seconds(x))
	}
	add("in all", "%s", Seconds(r.Seconds))
	if r.PeakRSSBytes > 0 { // it is no simulation
		add("memory", "%s", event.Bytes(r.PeakRSSBytes))
	}
	add("parameters", "%s", event.Count(int64(r.Parameters)))
	add("seed", "%d", r.Seed)
	return list
}
