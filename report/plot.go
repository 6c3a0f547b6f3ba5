package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// plot is a chart of lines in a box of 100 by 100, with gridlines.
type plot struct {
	Title, About string
	Left, Right  string // the ends of the horizontal axis
	Ticks        []tick // of the vertical one, from the top
	Curves       []curve
}

// tick is a gridline and its number.
type tick struct {
	At   float64 // percent from the top or the left
	Text string
}

// curve is a line, and the rows on it: those that agree would hide each other.
type curve struct {
	Names                []string
	Points, Colour, Dash string
	at                   [][2]float64 // in percent
}

// Colours can be told apart in light and dark, and without red and green; dashes without
// colours.
var (
	colours = []string{"#4477aa", "#ee7733", "#009988", "#cc3311", "#33bbee", "#ee3377", "#997700", "#999999"}
	dashes  = []string{"none", "7 3", "2 3"}
)

// series is what a line is drawn from.
type series struct {
	name string
	x, y []Number
}

// plots are the loss and the validation metric over epochs, and the latter over seconds.
func (c *Comparison) plots() (list []*plot) {
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
	for _, p := range []*plot{
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

// newPlot scales lines into the box; nil: there is nothing to draw.
func newPlot(title, about string, all []series, x func(float64) string) *plot {
	left, right := rangeOf(all, func(s series) []Number { return s.x })
	low, high := rangeOf(all, func(s series) []Number { return s.y })
	if !(left <= right && low <= high) {
		return nil
	}
	low, high, ticks := axis(low, high)
	p := &plot{Title: title, About: about, Left: x(left), Right: x(right)}
	for _, t := range ticks {
		p.Ticks = append(p.Ticks, tick{100 - share(t, low, high), number(t)})
	}
	slices.Reverse(p.Ticks)
	for _, s := range all {
		var at [][2]float64
		for i := range min(len(s.x), len(s.y)) {
			if y := float64(s.y[i]); math.IsNaN(y) || math.IsInf(y, 0) {
				break // the loss is not a number: the line ends here
			}
			at = append(at, [2]float64{share(float64(s.x[i]), left, right), 100 - share(float64(s.y[i]), low, high)})
		}
		if len(at) > 0 {
			p.draw(s.name, at)
		}
	}
	return p
}

// rangeOf is the smallest and the largest finite number.
func rangeOf(all []series, of func(series) []Number) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, n := range of(s) {
			if x := float64(n); !math.IsNaN(x) && !math.IsInf(x, 0) {
				low, high = min(low, x), max(high, x)
			}
		}
	}
	return low, high
}

// share is where x lies between two numbers, in percent.
func share(x, low, high float64) float64 {
	if high <= low {
		return 50
	}
	return 100 * (x - low) / (high - low)
}

// axis widens a range to round numbers, and gives three to seven of them.
func axis(low, high float64) (from, to float64, ticks []float64) {
	if high-low < 1e-9*max(math.Abs(high), 1e-9) {
		low, high = low-max(math.Abs(low)/10, 1e-3), high+max(math.Abs(high)/10, 1e-3)
	}
	step := math.Pow(10, math.Floor(math.Log10(high-low)))
	for _, f := range []float64{0.2, 0.5, 1, 2} {
		if (high-low)/(f*step) <= 6 {
			step *= f
			break
		}
	}
	first, last := math.Floor(low/step), math.Ceil(high/step)
	for i := first; i <= last; i++ {
		ticks = append(ticks, i*step)
	}
	return first * step, last * step, ticks
}

// number is a tick's, without the noise of its last digits.
func number(x float64) string { return Digits(math.Round(x*1e9)/1e9, 4) }

// draw adds a line, or the row's name to a line that looks the same; long ones are thinned.
func (p *plot) draw(name string, at [][2]float64) {
	near := func(a, b [2]float64) bool { return math.Abs(a[0]-b[0]) < 0.5 && math.Abs(a[1]-b[1]) < 0.5 }
	for i := range p.Curves {
		if c := &p.Curves[i]; slices.EqualFunc(c.at, at, near) {
			c.Names = append(c.Names, name)
			return
		}
	}
	var points []string
	step := max(len(at)/400, 1)
	for i := 0; i < len(at); i += step {
		points = append(points, fmt.Sprintf("%.2f,%.2f", at[i][0], at[i][1]))
	}
	if len(at) == 1 { // a line of one point is not visible
		points = append(points, fmt.Sprintf("%.2f,%.2f", min(at[0][0]+1, 100), at[0][1]))
	}
	i := len(p.Curves)
	p.Curves = append(p.Curves, curve{[]string{name}, strings.Join(points, " "), colours[i%len(colours)],
		dashes[i%len(dashes)], at})
}

// accuracyChart shows the test metric of every row, with its deviation over rounds.
type accuracyChart struct {
	Metric string
	Ticks  []tick // from the left
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
	chart := &accuracyChart{Metric: "accuracy"}
	for _, r := range c.Rows {
		if r.Rounds > 0 && !math.IsNaN(float64(r.TestAccuracy)) {
			ends = append(ends, r.TestAccuracy-r.TestSpread, r.TestAccuracy+r.TestSpread)
			if r.Metric != "" {
				chart.Metric = r.Metric
			}
		}
	}
	if len(ends) == 0 {
		return nil
	}
	low, high := rangeOf([]series{{y: ends}}, func(s series) []Number { return s.y })
	low, high, ticks := axis(low, high)
	for _, t := range ticks {
		chart.Ticks = append(chart.Ticks, tick{share(t, low, high), number(t)})
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Rounds == 0 || math.IsNaN(float64(r.TestAccuracy)) {
			continue
		}
		x, d := float64(r.TestAccuracy), float64(r.TestSpread)
		chart.Marks = append(chart.Marks, mark{r.label(), metric(r.TestAccuracy, r.TestSpread), share(x, low, high),
			share(x-d, low, high), share(x+d, low, high), d > 0})
	}
	return chart
}
