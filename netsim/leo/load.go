package leo

import (
	"math"
	"slices"

	"starling/rng"
	"starling/wire/paths"
)

// poisson are n requests at a rate: of type 1 with some probability, else of type 0, for addresses that key-value
// stores see (YCSB: Zipf with 0.99 over 20 million keys).
func poisson(n int, rate, second float64, key rng.Key) paths.Trace {
	t, at := make(paths.Trace, n), 0.0
	for i := range t {
		at -= math.Log(1-key.Float64(uint64(i))) / rate
		t[i] = paths.Arrival{At: at, Address: zipf(key.Fold(1).Float64(uint64(i)))}
		if key.Fold(2).Float64(uint64(i)) < second {
			t[i].Kind = 1
		}
	}
	return t
}

// bursts are n requests at a mean rate that come eight at once.
func bursts(n int, rate float64, key rng.Key) paths.Trace {
	t := poisson(n, rate, 0, key)
	for i := range t {
		t[i].At = t[i-i%8].At
	}
	return t
}

// zipf draws one of 20 million keys, the first most often, by inverting the continuous distribution.
func zipf(u float64) uint64 {
	const keys, a = 20e6, 1 - 0.99
	return uint64(math.Pow(u*(math.Pow(keys, a)-1)+1, 1/a))
}

// jitter draws the network's delays.
func jitter(key rng.Key) func(request, stage int) float64 {
	return func(request, stage int) float64 { return key.Fold(uint64(stage)).Float64(uint64(request)) }
}

// quantile is one of the latencies of a replay, from arrival to end.
func quantile(t paths.Trace, o *paths.Outcome, q float64) float64 {
	all := make([]float64, len(t))
	for i := range all {
		all[i] = o.End[i] - t[i].At
	}
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}
