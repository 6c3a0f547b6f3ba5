package leo

import (
	"fmt"

	"starling/rng"
	"starling/wire/paths"
)

// online are the policies that any file can be simulated with.
var online = []maker{roundRobin, greedyE2E, greedyHost, leo, leoQueue, optimum}

// Custom simulates a file of the user's with every policy: a recorded trace, or else loads from half of what the paths
// sustain in sum to nearly all.
func Custom(p *paths.Plan, trace paths.Trace, o Options, done func(Row)) []Row {
	r := &runner{opt: o, key: rng.New(o.Seed).Fold(0x1e0), done: done}
	if trace != nil {
		r.compare(p, trace, "trace")
		return r.rows
	}
	sum := 0.0
	for i := range p.Types[0].Choices {
		sum += p.Capacity(0, i)
	}
	for _, share := range []float64{0.5, 0.7, 0.8, 0.9, 0.95} {
		r.compare(p, mixed(p, o.Requests, share*sum, r.key), fmt.Sprintf("%.0f%% load", 100*share))
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
