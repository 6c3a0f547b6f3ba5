package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"sync"

	"starling/event"
	"starling/report/chart"
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
	Classes   []classTable
	Left      string // how many classes are left out
	Metrics   [][]string
	Confusion *heatmap
	ECE       string
	Bins      [][]string
	Points    []reliability
}

// classTable is classes, all or those of note.
type classTable struct {
	Title string
	Table *chart.Table
}

// Of more than mostClasses a page has the worstClasses of lowest F1, and as many of the largest others.
const mostClasses, worstClasses = 60, 20

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
	v.addClasses(e)
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

// addClasses adds a table of all classes, or two of those of note.
func (v *evaluationView) addClasses(e *train.Evaluation) {
	n := len(e.Classes)
	if n == 0 {
		return
	}
	if n <= mostClasses {
		v.Classes = []classTable{{"Classes", tableOf(e.Classes)}}
		return
	}
	list := slices.Clone(e.Classes)
	bySupport := func(a, b train.ClassReport) int { return cmp.Compare(b.Support, a.Support) }
	slices.SortStableFunc(list, func(a, b train.ClassReport) int { // those without a vertex have no F1 to speak of
		return cmp.Or(cmp.Compare(min(b.Support, 1), min(a.Support, 1)), cmp.Compare(a.F1, b.F1), bySupport(a, b))
	})
	worst, others := list[:worstClasses], list[worstClasses:]
	slices.SortStableFunc(others, bySupport)
	v.Classes = []classTable{{"Classes of lowest F1", tableOf(worst)},
		{"Largest of the other classes", tableOf(others[:worstClasses])}}
	v.Left = fmt.Sprintf("%s of %s are left out: starling predict --report FILE.json writes all.",
		event.Count(int64(n-2*worstClasses)), event.Count(int64(n)))
}

func tableOf(list []train.ClassReport) *chart.Table {
	t := &chart.Table{Heads: []string{"class", "precision", "recall", "F1", "support", "predicted"}}
	for _, c := range list {
		t.Rows = append(t.Rows, chart.Line{Cells: []chart.Cell{chart.Wide(c.Name),
			chart.Of(c.Precision, four(c.Precision)),
			chart.Of(c.Recall, four(c.Recall)), chart.Of(c.F1, four(c.F1)), chart.Of(float64(c.Support),
				event.Count(c.Support)), chart.Of(float64(c.Predicted), event.Count(c.Predicted))}})
	}
	return t
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
