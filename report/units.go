package report

import (
	"fmt"
	"math"
	"strings"

	"starling/event"
	"starling/report/chart"
)

// Percent is a share as text; a dash: it is not known.
func Percent(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}

// Digits is a number with this many significant digits, as people write it: 0.0123, 8.76, 2,490. It never has an
// exponent.
func Digits(x float64, digits int) string {
	return chart.Digits(x, digits)
}

// Amount is a number of things with three significant digits, from a million on with the word: 5,530, 111 million.
func Amount(x float64) string {
	for _, u := range []struct {
		least float64
		name  string
	}{{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}} {
		if x >= 0.9995*u.least {
			return Digits(x/u.least, 3) + u.name
		}
	}
	return Digits(x, 3)
}

// Seconds is a time as text, in the unit that it is read in.
func Seconds(s float64) string { return chart.Seconds(s) }

// times is a ratio as text.
func times(x Number) string {
	if math.IsNaN(float64(x)) {
		return "-"
	}
	return fmt.Sprintf("%.2fx", float64(x))
}

// wholePercent is a share as text, without decimals.
func wholePercent(x Number) string {
	if math.IsNaN(float64(x)) {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(x))
}

// memory is bytes as text; 0: unknown.
func memory(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return event.Bytes(bytes)
}

// metric is an accuracy as text, with its standard deviation.
func metric(x, deviation Number) string {
	switch {
	case math.IsNaN(float64(x)):
		return "-"
	case deviation > 0.00005:
		return fmt.Sprintf("%.4f±%s", float64(x), strings.TrimPrefix(fmt.Sprintf("%.3f", float64(deviation)), "0"))
	}
	return fmt.Sprintf("%.4f", float64(x))
}
