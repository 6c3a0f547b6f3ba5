package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"sync"

	"starling/event"
)

//go:embed run.html
var runPage string

var runTemplate = sync.OnceValue(func() *template.Template {
	return newTemplate("run", plotBody+evaluationBody+runPage)
})

// runView is the data of the template.
type runView struct {
	Title, Text string
	Warnings    []string
	Facts       []Setting
	Plots       []*plot
	Evaluation  *evaluationView // nil: there is none
	Sent        [][]string
	Made        *Made
	Settings    []Setting
}

// HTML is the result of a run as one page without any other files.
func (r *Run) HTML() []byte {
	v := runView{Title: r.Model + " on " + r.Dataset, Warnings: r.Warnings, Facts: r.facts(), Plots: r.plots(),
		Sent: r.Bytes.lines(), Made: r.Made, Settings: settingsOf(r.Spec)}
	v.Text = fmt.Sprintf("%s, %s; %s", event.Counted(r.Epochs, "epoch"), r.Reason, event.Counted(r.Vertices, "vertex")+
		" and "+event.Counted(r.Edges, "edge"))
	if r.Evaluation != nil {
		v.Evaluation = newEvaluationView(r.Evaluation, v.Title)
	}
	var b bytes.Buffer
	if err := runTemplate().Execute(&b, v); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

// WriteHTML writes the page to a file, whole or not at all.
func (r *Run) WriteHTML(path string) error { return writeFile(path, r.HTML()) }

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
	add("memory", "%s", event.Bytes(r.PeakRSSBytes))
	add("parameters", "%s", event.Count(int64(r.Parameters)))
	add("seed", "%d", r.Seed)
	return list
}

// plots are the loss, and the metric of each split that was measured, over epochs.
func (r *Run) plots() (list []*plot) {
	inEpochs := func(x float64) string { return fmt.Sprintf("epoch %.0f", x) }
	at := epochs(r.Measured)
	metric := []series{{"train", at, r.TrainAccuracy}, {"validation", at, r.ValAccuracy},
		{"test", at, r.TestAccuracies}}
	metric = slices.DeleteFunc(metric, func(s series) bool {
		return !slices.ContainsFunc(s.y, func(n Number) bool { return !math.IsNaN(float64(n)) })
	})
	for _, p := range []*plot{
		newPlot("Training loss", "training loss over epochs",
			[]series{{"loss", counting(len(r.Loss)), r.Loss}}, inEpochs),
		newPlot("Metric: "+r.Metric, r.Metric+" over epochs", metric, inEpochs),
	} {
		if p != nil {
			list = append(list, p)
		}
	}
	return list
}

// lines are what was sent, by kind and link.
func (b *Bytes) lines() (list [][]string) {
	sums, kinds, links := b.cells()
	for _, k := range kinds {
		for _, l := range links {
			if c := sums[cell{k, l}]; c.Planned != 0 || c.Counted != 0 {
				list = append(list, []string{k, strings.ReplaceAll(l, "_", " "), event.Bytes(c.Planned),
					event.Bytes(c.Counted)})
			}
		}
	}
	return list
}
