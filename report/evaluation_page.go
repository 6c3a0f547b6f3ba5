package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"sync"

	"starling/train"
)

// The page of a report by class, and its body, which other pages have too.
//
//go:embed evaluation.html
var evaluationPage string

//go:embed evaluation_body.html
var evaluationBody string

var evaluationTemplate = sync.OnceValue(func() *template.Template {
	return newTemplate("page", evaluationBody+evaluationPage)
})

// evaluationView is the data of the template.
type evaluationView struct {
	Title     string
	Text      string // which split, and how it was decided
	Classes   [][]string
	Metrics   [][]string
	Confusion *heatmap
	ECE       string
	Bins      [][]string
	Points    []reliability
}

// heatmap is a confusion matrix, each cell with its share of the row in percent.
type heatmap struct {
	Heads []string
	Rows  []heatRow
}

type heatRow struct {
	Name  string
	Cells []heatCell
}

type heatCell struct {
	Count int64
	Share int
}

// reliability is a bin in a chart of 100 by 100.
type reliability struct{ X, Y, Radius, Probability, Share float64 }

// EvaluationHTML is the report as one page without any other files.
func EvaluationHTML(e *train.Evaluation, title string) []byte {
	var b bytes.Buffer
	if err := evaluationTemplate().Execute(&b, newEvaluationView(e, title)); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

func newEvaluationView(e *train.Evaluation, title string) *evaluationView {
	v := &evaluationView{Title: title, Text: fmt.Sprintf("%d %s vertices%s", e.Vertices, e.Split, decidedBy(e)),
		Metrics: metricLines(e)}
	for _, c := range e.Classes {
		v.Classes = append(v.Classes, []string{c.Name, four(c.Precision), four(c.Recall), four(c.F1),
			fmt.Sprint(c.Support), fmt.Sprint(c.Predicted)})
	}
	if e.Confusion != nil {
		v.Confusion = newHeatmap(e)
	}
	if c := e.Calibration; c != nil {
		v.ECE, v.Bins = four(c.ECE), reliabilityLines(e)[1:]
		all := 0.0
		for _, b := range c.Bins {
			all += float64(b.Count)
		}
		for _, b := range c.Bins {
			v.Points = append(v.Points, reliability{100 * b.Probability, 100 - 100*b.Share, 1 + 4*float64(b.Count)/all,
				b.Probability, b.Share})
		}
	}
	return v
}

func newHeatmap(e *train.Evaluation) *heatmap {
	m := &heatmap{}
	for c, row := range e.Confusion {
		name, sum := e.Classes[c].Name, int64(0)
		m.Heads = append(m.Heads, name)
		for _, n := range row {
			sum += n
		}
		line := heatRow{Name: name}
		for _, n := range row {
			line.Cells = append(line.Cells, heatCell{n, int(100 * n / max(sum, 1))})
		}
		m.Rows = append(m.Rows, line)
	}
	return m
}
