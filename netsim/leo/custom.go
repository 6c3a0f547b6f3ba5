package leo

import (
	"fmt"

	"starling/rng"
	"starling/wire/paths"
)

// online are the policies that any file can be simulated with.
var online = []maker{roundRobin, greedyE2E, greedyHost, leoStreak, leo, leoQueue, optimum}

// Custom simulates a file of the user's with every policy: a recorded trace, or else loads from half of what the paths
// sustain in sum to nearly all.
func Custom(p *paths.Plan, trace paths.Trace, o Options, done func(Row)) []Row {
	r := &runner{opt: o, key: rng.New(o.Seed).Fold(0x1e0), done: done}
	if trace != nil {
		r.compare(p, trace, "trace")
		r.faster(p, trace)
		return r.rows
	}
	for _, share := range []float64{0.5, 0.7, 0.8, 0.9, 0.95} {
		r.compare(p, mixed(p, o.Requests, share*capacity(p), r.key), fmt.Sprintf("%.0f%% load", 100*share))
	}
	return r.rows
}

// compare replays one trace with every policy.
func (r *runner) compare(p *paths.Plan, t paths.Trace, setting string) {
	for _, m := range online {
		o := paths.Replay(p, m.make(p, t, r.key), paths.Load{Trace: t, Delay: jitter(r.key.Fold(6))})
		x := Row{Case: "file", Setting: setting, Policy: m.name, Unit: "requests/s",
			Value: float64(len(t)) / last(o.End), Median: 1e6 * quantile(t, o, 0.5), P99: 1e6 * quantile(t, o, 0.99)}
		r.rows = append(r.rows, x)
		r.done(x)
	}
}

// faster is how much load each policy sustains of requests that come as those of a trace do, only closer together or
// farther apart: the highest rate at which the median latency stays under a bound, the same for all, and the queue does
// not only grow. Requests that were recorded come in bursts, so that some wait at any rate: the bound is relative to
// the optimum's median at the rate of the trace.
func (r *runner) faster(p *paths.Plan, t paths.Trace) {
	o := paths.Replay(p, optimum.make(p, t, r.key), paths.Load{Trace: t, Delay: jitter(r.key.Fold(6))})
	bound := medianBound * quantile(t, o, 0.5)
	for _, m := range online {
		x := Row{Case: "file", Setting: fmt.Sprintf("trace, sustained at median %.1f us", bound*1e6), Policy: m.name,
			Unit: "requests/s", Median: bound * 1e6, Value: r.bearRate(p, m, bound, t)}
		r.rows = append(r.rows, x)
		r.done(x)
	}
}

// bearRate is the highest rate in requests per second that a policy bears of a trace, by bisection.
func (r *runner) bearRate(p *paths.Plan, m maker, bound float64, t paths.Trace) float64 {
	first, last := t[0].At, t[len(t)-1].At
	return r.bear(p, p, m, bound, capacity(p)*wholes(p, t), func(rate float64) paths.Trace {
		scale := float64(len(t)) / rate / max(last-first, 1e-9)
		quick := make(paths.Trace, len(t))
		for i, a := range t {
			a.At = (a.At - first) * scale
			quick[i] = a
		}
		return quick
	})
}

// wholes is how many requests of a trace come for the work of one of the first type, on the first path that it has.
func wholes(p *paths.Plan, t paths.Trace) float64 {
	work := 0.0
	for _, a := range t {
		work += p.Types[a.Kind].Choices[0].Slowest
	}
	return float64(len(t)) * p.Types[0].Choices[0].Slowest / work
}

// mixed are requests of all types by their shares.
func mixed(p *paths.Plan, n int, rate float64, key rng.Key) paths.Trace {
	t, sum := poisson(n, rate, 0, key), 0.0
	for _, q := range p.File.Requests {
		sum += q.Share
	}
	for i := range t {
		x := key.Fold(7).Float64(uint64(i)) * sum
		for k, q := range p.File.Requests {
			if x -= q.Share; x < 0 {
				t[i].Kind = k
				break
			}
		}
		t[i].Message = uint64(i)
	}
	return t
}
