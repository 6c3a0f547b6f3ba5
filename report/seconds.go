package report

import (
	"math"
	"slices"
)

// Spread is the distribution of epochs' seconds. Like the median it leaves out the first
// epoch, which maps memory.
type Spread struct {
	Min Number `json:"min"`
	Q1  Number `json:"q1"`
	Q3  Number `json:"q3"`
	Max Number `json:"max"`
}

// withoutFirst are the seconds of all epochs but the first, sorted.
func withoutFirst(v []float64) []float64 {
	if len(v) > 2 {
		v = v[1:]
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v
}

// Median is the median of epochs' seconds; NaN without any.
func Median(v []float64) Number { return Number(quantile(withoutFirst(v), 0.5)) }

// SpreadOf is the distribution of epochs' seconds.
func SpreadOf(v []float64) Spread { return spreadOf(withoutFirst(v)) }

func spreadOf(sorted []float64) Spread {
	q := func(at float64) Number { return Number(quantile(sorted, at)) }
	return Spread{q(0), q(0.25), q(0.75), q(1)}
}

// quantile of sorted numbers is interpolated between the two nearest; NaN of none.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	at := q * float64(len(v)-1)
	i := int(at)
	if i == len(v)-1 {
		return v[i]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

// mean is NaN of none.
func mean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
