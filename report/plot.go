package report

import (
	"fmt"
	"math"

	"starling/report/chart"
)

// series is what a line is drawn from.
type series struct {
	name string
	x, y []Number
}

// newPlot draws lines; nil: there is nothing to draw.
func newPlot(title, about string, all []series, x func(float64) string) *chart.Lines {
	var list []chart.Series
	for _, s := range all {
		list = append(list, chart.Series{Name: s.name, X: Floats(s.x), Y: Floats(s.y)})
	}
	return chart.NewLines(title, about, list, x)
}

// plots are the loss and the validation metric over epochs, and the latter over seconds.
func (c *Comparison) plots() (list []*chart.Lines) {
	var loss, val, overTime []series
	metric := "accuracy"
	for i := range c.Rows {
		r := &c.Rows[i]
		loss = append(loss, series{r.label(), counting(len(r.Loss)), r.Loss})
		val = append(val, series{r.label(), epochs(r.Measured), r.Val})
		overTime = append(overTime, series{r.label(), r.ValSeconds, r.Val})
		if r.Metric != "" {
			metric = r.Metric
		}
	}
	inEpochs := func(x float64) string { return fmt.Sprintf("epoch %.0f", x) }
	for _, p := range []*chart.Lines{
		newPlot("Training loss", "training loss over epochs", loss, inEpochs),
		newPlot("Validation "+metric, "validation "+metric+" over epochs", val, inEpochs),
		newPlot("Validation "+metric+" over time", "validation "+metric+" over seconds of training", overTime, Seconds),
	} {
		if p != nil {
			list = append(list, p)
		}
	}
	return list
}

// counting are epochs from 1.
func counting(n int) []Number {
	out := make([]Number, n)
	for i := range out {
		out[i] = Number(i + 1)
	}
	return out
}

func epochs(measured []int) []Number {
	out := make([]Number, len(measured))
	for i, e := range measured {
		out[i] = Number(e + 1)
	}
	return out
}

// accuracyChart shows the test metric of every row, with its deviation over rounds.
type accuracyChart struct {
	Metric string
	Ticks  []chart.Tick // from the left
	Marks  []mark
}

// mark is a row of it: a point, and a line from low to high where rounds differ.
type mark struct {
	Name, Text    string
	At, Low, High float64 // in percent
	Spread        bool
}

// accuracyChart is nil where no row has been evaluated.
func (c *Comparison) accuracyChart() *accuracyChart {
	var ends []Number
	out := &accuracyChart{Metric: "accuracy"}
	for _, r := range c.Rows {
		if r.Rounds > 0 && !math.IsNaN(float64(r.TestAccuracy)) {
			ends = append(ends, r.TestAccuracy-r.TestSpread, r.TestAccuracy+r.TestSpread)
			if r.Metric != "" {
				out.Metric = r.Metric
			}
		}
	}
	if len(ends) == 0 {
		return nil
	}
	low, high, ticks := chart.Axis(finiteRange(ends))
	for _, t := range ticks {
		out.Ticks = append(out.Ticks, chart.Tick{At: chart.Share(t, low, high), Text: chart.Number(t)})
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Rounds == 0 || math.IsNaN(float64(r.TestAccuracy)) {
			continue
		}
		x, d := float64(r.TestAccuracy), float64(r.TestSpread)
		out.Marks = append(out.Marks, mark{r.label(), metric(r.TestAccuracy, r.TestSpread), chart.Share(x, low, high),
			chart.Share(x-d, low, high), chart.Share(x+d, low, high), d > 0})
	}
	return out
}

// finiteRange is the smallest and the largest finite number.
func finiteRange(list []Number) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, n := range list {
		if x := float64(n); !math.IsNaN(x) && !math.IsInf(x, 0) {
			low, high = min(low, x), max(high, x)
		}
	}
	return low, high
}
