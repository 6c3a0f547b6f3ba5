package leo

import (
	"fmt"

	"starling/wire/paths"
)

// keyValue is figure 6.10: the median latency by load, and the load that each system sustains.
func (r *runner) keyValue() error {
	p := plan("kvs")
	for _, w := range []struct {
		name string
		puts float64
	}{{"YCSB-C", 0}, {"YCSB-B", 0.05}} {
		makers := append(beside(onePath("drtm-kv", "cpu"), onePath("one-path", "acc")), optimum)
		for _, rate := range []float64{1e6, 2e6, 3e6, 4e6, 5e6, 6e6, 7e6, 8e6} {
			t := poisson(r.opt.Requests, rate, w.puts, r.key)
			var rows []Row
			for _, m := range makers {
				rows = append(rows, r.latency(p, m, t, fmt.Sprintf("%s, %g Mrps", w.name, rate/1e6)))
			}
			if err := r.setting(rows); err != nil {
				return err
			}
		}
		if err := r.sustained("kvs", "6.10", w.name, makers, p, w.puts); err != nil {
			return err
		}
	}
	return nil
}

// latency is one point of figure 6.10.
func (r *runner) latency(p *paths.Plan, m maker, t paths.Trace, setting string) Row {
	o := paths.Replay(p, m.make(p, t, r.key), paths.Load{Trace: t, Delay: jitter(r.key.Fold(6))})
	return Row{Case: "kvs", Figure: "6.10", Setting: setting, Policy: m.name, Unit: "Mrps",
		Value: float64(len(t)) / last(o.End) / 1e6, Median: 1e6 * quantile(t, o, 0.5), P99: 1e6 * quantile(t, o, 0.99)}
}

// medianBound is the median latency at which sustained loads are compared: 1.5 times that of an idle system.
const medianBound = 1.5

// sustained are the loads that systems bear at one median latency, the same for all.
func (r *runner) sustained(name, figure, setting string, makers []maker, p *paths.Plan, second float64) error {
	bound := medianBound * r.idle(p)
	var rows []Row
	for _, m := range makers {
		load := r.bear(p, p, m, bound, capacity(p), func(rate float64) paths.Trace {
			return poisson(r.opt.Requests, rate, second, r.key)
		})
		rows = append(rows, Row{Case: name, Figure: figure, Policy: m.name, Unit: "Mrps", Value: load / 1e6,
			Setting: fmt.Sprintf("%s, median %.1f us", setting, bound*1e6), Median: bound * 1e6})
	}
	return r.setting(rows)
}

// idle is the median latency while each request is alone.
func (r *runner) idle(p *paths.Plan) float64 {
	t := poisson(1000, 1e4, 0, r.key)
	o := paths.Replay(p, paths.NewLEOQueue(p), paths.Load{Trace: t, Delay: jitter(r.key.Fold(6))})
	return quantile(t, o, 0.5)
}

// capacity is the rate that all paths sustain in sum, of requests of the first type.
func capacity(p *paths.Plan) (sum float64) {
	for i := range p.Types[0].Choices {
		sum += p.Capacity(0, i)
	}
	return sum
}

// bear is the highest load at which the median latency stays under a bound, by bisection up to a little more than most.
// The policy knows the paths as they were profiled.
func (r *runner) bear(p, profiled *paths.Plan, m maker, bound, most float64,
	load func(rate float64) paths.Trace) float64 {
	low, high := 0.0, 1.2*most
	for high-low > 0.005*high {
		rate := (low + high) / 2
		t := load(rate)
		o := paths.Replay(p, m.make(profiled, t, r.key), paths.Load{Trace: t, Delay: jitter(r.key.Fold(6))})
		keepsUp := (last(o.End)-bound)*0.97 <= t[len(t)-1].At // or else a queue only grows, though half of all see none
		if keepsUp && quantile(t, o, 0.5) <= bound {
			low = rate
		} else {
			high = rate
		}
	}
	return low
}

// policies is figure 6.14: the load that each policy sustains in the key-value store, as requests come.
func (r *runner) policies() error {
	profiled := plan("kvs")
	bound := medianBound * r.idle(profiled)
	arrive := func(rate float64) paths.Trace { return poisson(r.opt.Requests, rate, 0, r.key) }
	for _, w := range []struct {
		name string
		plan *paths.Plan
		load func(rate float64) paths.Trace
	}{
		{"Poisson", profiled, arrive},
		{"bursts of 8", profiled, func(rate float64) paths.Trace { return bursts(r.opt.Requests, rate, r.key) }},
		{"accelerator 25% slower than profiled", plan("kvs", "800ns", "1us"), arrive},
	} {
		var rows []Row
		for _, m := range append(beside(), optimum) {
			load := r.bear(w.plan, profiled, m, bound, capacity(w.plan), w.load)
			rows = append(rows, Row{Case: "policy", Figure: "6.14", Policy: m.name, Unit: "Mrps", Value: load / 1e6,
				Setting: fmt.Sprintf("%s, median %.1f us", w.name, bound*1e6), Median: bound * 1e6})
		}
		if err := r.setting(rows); err != nil {
			return err
		}
	}
	return nil
}
