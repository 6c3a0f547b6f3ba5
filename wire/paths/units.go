package paths

import (
	"math"
	"strconv"
	"strings"
)

// unit is a suffix and what it stands for.
type unit struct {
	suffix string
	factor float64
}

var (
	timeUnits = []unit{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}
	rateUnits = []unit{{"Gbps", 1e9 / 8}, {"Mbps", 1e6 / 8}, {"Kbps", 1e3 / 8}, {"bps", 1.0 / 8}}
	sizeUnits = []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3},
		{"B", 1}}
)

const (
	wantTime = "a time such as 300ns, 1.5us or 2ms"
	wantRate = "a rate such as 100Gbps or 300Mbps"
	wantSize = "a size such as 64B, 4KiB or 1MiB"
)

// scaled reads a number and one of some units: times become seconds, rates bytes per second, sizes bytes.
func scaled(text string, units []unit) (float64, bool) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 1) {
		return 0, false
	}
	for _, u := range units {
		if u.suffix == text[len(digits):] {
			return x * u.factor, x*u.factor < 1e18
		}
	}
	return 0, x == 0 && text == "0"
}

// written is x in the first of some units in which it is at least 1, with the digits that count.
func written(x float64, units []unit) string {
	for _, u := range units {
		if x >= u.factor || u == units[len(units)-1] {
			return strconv.FormatFloat(x/u.factor, 'g', 6, 64) + u.suffix
		}
	}
	return ""
}
