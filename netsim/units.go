package netsim

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Time is picoseconds since a simulation began.
type Time int64

// The units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Never is after everything that happens.
const Never Time = math.MaxInt64

// Seconds is t in seconds.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// Duration is t in whole nanoseconds, rounded down.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }

// FromDuration is d in picoseconds.
func FromDuration(d time.Duration) Time { return Time(d) * Nanosecond }

// String writes t as ParseTime reads it.
func (t Time) String() string { return scaled(int64(t), timeUnits) }

// Rate is bits per second.
type Rate int64

// The units of Rate.
const (
	Kbps Rate = 1000
	Mbps      = 1000 * Kbps
	Gbps      = 1000 * Mbps
)

// Transmit is how long a link of this rate is occupied by some bytes, rounded up.
func (r Rate) Transmit(bytes int64) Time {
	hi, lo := bits.Mul64(uint64(bytes), 8*uint64(Second))
	q, rest := bits.Div64(hi, lo, uint64(r))
	if rest > 0 {
		q++
	}
	return Time(q)
}

// bytesPerPicosecond is r for computing with real numbers.
func (r Rate) bytesPerPicosecond() float64 { return float64(r) / 8 / float64(Second) }

// String writes r as ParseRate reads it.
func (r Rate) String() string { return scaled(int64(r), rateUnits) }

// unit is a suffix and what it stands for. The largest of a list comes first.
type unit struct {
	suffix string
	factor int64
}

var (
	timeUnits = []unit{{"s", int64(Second)}, {"ms", int64(Millisecond)}, {"us", int64(Microsecond)},
		{"ns", int64(Nanosecond)}, {"ps", 1}}
	rateUnits = []unit{{"Tbps", int64(1000 * Gbps)}, {"Gbps", int64(Gbps)}, {"Mbps", int64(Mbps)},
		{"Kbps", int64(Kbps)}, {"bps", 1}}
	byteUnits = []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3},
		{"B", 1}}
)

// ParseTime reads a number and a unit: 500ns, 1.5us, 2ms.
func ParseTime(s string) (Time, error) {
	n, err := parseScaled(s, timeUnits, "a time such as 500ns, 1.5us or 2ms")
	return Time(n), err
}

// ParseRate reads a number and a unit: 25Gbps, 100Mbps.
func ParseRate(s string) (Rate, error) {
	for _, u := range []string{"kbit", "mbit", "gbit", "tbit"} { // as tc writes them
		if number, ok := strings.CutSuffix(s, u); ok {
			s = number + strings.ToUpper(u[:1]) + "bps"
		}
	}
	n, err := parseScaled(s, rateUnits, "a rate such as 25Gbps or 100Mbps")
	if err == nil && n == 0 {
		err = fmt.Errorf("found a rate of %s, want more than 0bps", s)
	}
	return Rate(n), err
}

// ParseBytes reads a number and a unit: 9000B, 64KiB, 16MB.
func ParseBytes(s string) (int64, error) {
	return parseScaled(s, byteUnits, "a size such as 9000B, 64KiB or 16MB")
}

// parseScaled reads a number that is not negative and one of some units.
func parseScaled(s string, units []unit, want string) (int64, error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	number, err := strconv.ParseFloat(digits, 64)
	for _, u := range units {
		if err != nil || u.suffix != s[len(digits):] {
			continue
		}
		if x := number * float64(u.factor); x >= 0 && x < math.MaxInt64 {
			return int64(math.Round(x)), nil
		}
	}
	return 0, fmt.Errorf("found %q, want %s", s, want)
}

// scaled writes n in the largest unit that leaves no fraction.
func scaled(n int64, units []unit) string {
	for _, u := range units {
		if n%u.factor == 0 && n != 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return "0" + units[len(units)-1].suffix
}
