package report

import (
	"fmt"
	"math"
	"strings"

	"starling/event"
)

// Percent is a share as text.
func Percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// Seconds is a short time as text.
func Seconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return "-"
	case s < 1:
		return fmt.Sprintf("%.3g ms", 1000*s)
	}
	return fmt.Sprintf("%.3g s", s)
}

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
