package chart

import (
	"math"
	"strconv"
	"strings"
)

// Digits is a number with this many significant digits, as people write it: 0.0123, 8.76, 2,490. It never has an
// exponent.
func Digits(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	whole, rest, _ := strings.Cut(strconv.FormatFloat(math.Abs(rounded), 'f', -1, 64), ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if rest != "" {
		whole += "." + rest
	}
	if rounded < 0 {
		return "-" + whole
	}
	return whole
}

// Seconds is a time as text, in the unit that it is read in.
func Seconds(s float64) string {
	for _, u := range []struct {
		least float64
		name  string
	}{{1, " s"}, {1e-3, " ms"}, {1e-6, " us"}} {
		if s >= 0.9995*u.least {
			return Digits(s/u.least, 3) + u.name
		}
	}
	switch {
	case math.IsNaN(s):
		return "-"
	case s == 0:
		return "0 s"
	}
	return Digits(s*1e9, 3) + " ns"
}
