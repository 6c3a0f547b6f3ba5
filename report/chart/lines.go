package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Lines is a chart of lines in a box of 100 by 100, with gridlines.
type Lines struct {
	Title, About string
	Left, Right  string // the ends of the horizontal axis
	Unit         string // what X values count, for the values under the pointer: epoch
	Ticks        []Tick // of the vertical one, from the top
	Across       []Tick // of the horizontal one, between its ends
	Curves       []Curve
	Marks        []Mark

	left, right float64
}

// Tick is a gridline and its number.
type Tick struct {
	At   float64 // percent from the top or the left
	Text string
}

// Curve is a line, and the series on it: those that agree would hide each other.
type Curve struct {
	Names                []string
	Points, Colour, Dash string
	X, Y                 string // the numbers of the points
	at                   [][2]float64
}

// Mark is a moment that all lines share.
type Mark struct {
	At   float64 // percent from the left
	Kind string  // what a style sheet and a reader know it by
	Text string
}

// The style sheet has colours c0 to c7, in light and dark, that can be told apart without one kind of cones
// (TestColoursStayApart); dashes can be without colours. No two of the first 32 curves have both in common.
const colours = 8

var dashes = []string{"none", "7 3", "2 3", "10 3 2 3"}

// look is the colour and the dash of a curve.
func look(i int) (colour, dash string) {
	return fmt.Sprint("c", i%colours), dashes[(i+i/colours)%len(dashes)]
}

// Series is what a line is drawn from. Numbers that are not finite end the line.
type Series struct {
	Name string
	X, Y []float64
}

// NewLines scales series into the box; nil: there is nothing to draw. x is the text of a horizontal position.
func NewLines(title, about string, all []Series, x func(float64) string) *Lines {
	left, right := rangeOf(all, func(s Series) []float64 { return s.X })
	low, high := rangeOf(all, func(s Series) []float64 { return s.Y })
	if !(left <= right && low <= high) {
		return nil
	}
	low, high, ticks := Axis(low, high)
	p := &Lines{Title: title, About: about, Left: x(left), Right: bare(x(right)), left: left, right: right}
	for _, t := range ticks {
		p.Ticks = append(p.Ticks, Tick{100 - Share(t, low, high), Number(t)})
	}
	slices.Reverse(p.Ticks)
	p.Across = p.between(x)
	for _, s := range all {
		s = s.drawn()
		var at [][2]float64
		for i := range min(len(s.X), len(s.Y)) {
			y := s.Y[i]
			if math.IsNaN(y) || math.IsInf(y, 0) {
				break // the loss is not a number: the line ends here
			}
			at = append(at, [2]float64{Share(s.X[i], left, right), 100 - Share(y, low, high)})
		}
		if len(at) > 0 {
			p.draw(s, at)
		}
	}
	return p
}

// bare is the text of a position without the word before its number, which the left end has.
func bare(text string) string {
	if word, number, ok := strings.Cut(text, " "); ok && !strings.ContainsAny(word, "0123456789") {
		return number
	}
	return text
}

// A letter on an axis takes letterWidth percent of a chart on a phone.
const letterWidth = 3.3

// between are round numbers on an axis whose texts do not meet, or those at its ends.
func (p *Lines) between(x func(float64) string) (list []Tick) {
	_, _, ticks := Axis(p.left, p.right)
	counts := p.left == math.Round(p.left) && p.right == math.Round(p.right)
	taken := letterWidth * float64(len(p.Left)+1)
	for _, t := range ticks {
		at, text := Share(t, p.left, p.right), bare(x(t))
		half := letterWidth / 2 * float64(len(text)+1)
		if at-half < taken || at+half > 100-letterWidth*float64(len(p.Right)) || counts && t != math.Round(t) {
			continue
		}
		list, taken = append(list, Tick{at, text}), at+half
	}
	return list
}

// longestMark is how much of a text a mark has.
const longestMark = 160

// Mark adds a moment, if it is inside the chart and no other of its kind is at about the same place.
func (p *Lines) Mark(x float64, kind, text string) {
	if p == nil || x < p.left || x > p.right {
		return
	}
	at := Share(x, p.left, p.right)
	if slices.ContainsFunc(p.Marks, func(m Mark) bool { return m.Kind == kind && math.Abs(m.At-at) < 0.3 }) {
		return
	}
	if r := []rune(text); len(r) > longestMark {
		text = string(r[:longestMark]) + "…"
	}
	p.Marks = append(p.Marks, Mark{at, kind, text})
}

// rangeOf is the smallest and the largest finite number.
func rangeOf(all []Series, of func(Series) []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, x := range of(s) {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				low, high = min(low, x), max(high, x)
			}
		}
	}
	return low, high
}

// Share is where x lies between two numbers, in percent.
func Share(x, low, high float64) float64 {
	if high <= low {
		return 50
	}
	return 100 * (x - low) / (high - low)
}

// Axis widens a range to round numbers, and gives three to seven of them.
func Axis(low, high float64) (from, to float64, ticks []float64) {
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

// Number is a tick's, without the noise of its last digits.
func Number(x float64) string { return Digits(math.Round(x*1e9)/1e9, 4) }

// mostPoints is how many points of a line can be told apart.
const mostPoints = 800

// drawn is a series of at most about mostPoints points. Of each stretch of a longer one the least and the largest
// number stay, in order, so that no peak is lost; and its first and last point.
func (s Series) drawn() Series {
	n := min(len(s.X), len(s.Y))
	if n <= mostPoints {
		return s
	}
	out := Series{Name: s.Name}
	keep := func(i int) { out.X, out.Y = append(out.X, s.X[i]), append(out.Y, s.Y[i]) }
	keep(0)
	for part := range mostPoints / 2 {
		from, to := 1+part*(n-2)/(mostPoints/2), 1+(part+1)*(n-2)/(mostPoints/2)
		low, high := from, from
		for i := from; i < to; i++ {
			if s.Y[i] < s.Y[low] || math.IsNaN(s.Y[i]) {
				low = i
			}
			if s.Y[i] > s.Y[high] {
				high = i
			}
		}
		keep(min(low, high))
		if low != high {
			keep(max(low, high))
		}
	}
	keep(n - 1)
	return out
}

// draw adds a line, or the name of the series to a line that looks the same.
func (p *Lines) draw(s Series, at [][2]float64) {
	near := func(a, b [2]float64) bool { return math.Abs(a[0]-b[0]) < 0.5 && math.Abs(a[1]-b[1]) < 0.5 }
	for i := range p.Curves {
		if c := &p.Curves[i]; slices.EqualFunc(c.at, at, near) {
			c.Names = append(c.Names, s.Name)
			return
		}
	}
	var points, xs, ys []string
	for i := range at {
		points = append(points, fmt.Sprintf("%.2f,%.2f", at[i][0], at[i][1]))
		xs, ys = append(xs, compact(s.X[i])), append(ys, compact(s.Y[i]))
	}
	if len(at) == 1 { // a line of one point is not visible
		points = append(points, fmt.Sprintf("%.2f,%.2f", min(at[0][0]+1, 100), at[0][1]))
	}
	colour, dash := look(len(p.Curves))
	p.Curves = append(p.Curves, Curve{[]string{s.Name}, strings.Join(points, " "), colour, dash, strings.Join(xs, " "),
		strings.Join(ys, " "), at})
}

// compact is a number for the values under the pointer.
func compact(x float64) string { return strings.ReplaceAll(Digits(x, 5), ",", "") }
