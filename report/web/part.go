package web

import (
	"bytes"
	"html/template"
	"time"

	"starling/event"
	"starling/report"
	"starling/report/chart"
)

// partClass is the class of the element that has the charts in another document.
const partClass = "starling-charts"

// Charts are the curves of a run's page alone, with their style, as an element for other documents, as notebooks.
func Charts(result *report.Run) []byte {
	v := struct {
		Class  string
		Style  template.CSS
		Curves curvesView
	}{partClass, chart.PartStyle(partClass), curvesOf([]*state{ended(result)})}
	var b bytes.Buffer
	if err := pageTemplate().ExecuteTemplate(&b, "part", v); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

// ended is what a page would know of the epochs of a run that has ended.
func ended(result *report.Run) *state {
	r, at := NewRun(""), time.Time{}.Add(1)
	r.Take(event.Started{Metric: result.Metric}, at)
	measured, known := 0, min(len(result.Measured), len(result.TrainAccuracy), len(result.ValAccuracy),
		len(result.TestAccuracies))
	number := func(list []report.Number) float64 { return float64(list[measured]) }
	for i, loss := range result.Loss {
		e := event.Epoch{Epoch: i, Loss: float64(loss)}
		if measured < known && result.Measured[measured] == i {
			e.Measured, e.Train, e.Val, e.Test = true, number(result.TrainAccuracy), number(result.ValAccuracy),
				number(result.TestAccuracies)
			measured++
		}
		r.Take(e, at)
	}
	return r.snapshot()
}
