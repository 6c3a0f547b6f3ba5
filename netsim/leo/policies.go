package leo

import (
	"starling/rng"
	"starling/wire/paths"
)

// maker makes the policy of a system for a plan and the requests to come.
type maker struct {
	name string
	make func(p *paths.Plan, t paths.Trace, key rng.Key) paths.Policy
}

// system is a policy under the name of the system that works so.
type system struct {
	paths.Policy
	name string
}

func (s system) Name() string { return s.name }

// onePath is a system that takes one path.
func onePath(name, path string) maker {
	return maker{name, func(p *paths.Plan, _ paths.Trace, _ rng.Key) paths.Policy {
		policy, err := paths.NewSinglePath(p, path)
		if err != nil {
			panic(err) // the case studies' files are our own
		}
		return system{policy, name}
	}}
}

func of(name string, make func(p *paths.Plan) paths.Policy) maker {
	return maker{name, func(p *paths.Plan, _ paths.Trace, _ rng.Key) paths.Policy { return system{make(p), name} }}
}

var (
	leoQueue   = of("leo-queue", paths.NewLEOQueue)
	leo        = of("leo", func(p *paths.Plan) paths.Policy { return paths.NewLEO(p, paths.Slack) })
	leoStreak  = of("leo-streak", func(p *paths.Plan) paths.Policy { return paths.NewLEOStreak(p, paths.Slack) })
	greedyE2E  = of("greedy-e2e", func(p *paths.Plan) paths.Policy { return paths.NewGreedy(p, true) })
	greedyHost = of("greedy-host", func(p *paths.Plan) paths.Policy { return paths.NewGreedy(p, false) })
	roundRobin = of("round-robin", paths.NewRoundRobin)
	optimum    = maker{"optimum", func(p *paths.Plan, t paths.Trace, _ rng.Key) paths.Policy {
		return paths.NewOptimum(p, t, horizon)
	}}
	// even draws paths with equal chances, weighted by what they sustain.
	even = maker{"random", func(p *paths.Plan, _ paths.Trace, key rng.Key) paths.Policy {
		return paths.NewRandom(p, key.IntN)
	}}
	weighted = maker{"random-weighted", func(p *paths.Plan, _ paths.Trace, key rng.Key) paths.Policy {
		return system{paths.NewRandom(p, func(i uint64, _ int) int {
			x := key.Float64(i) * (p.Capacity(0, 0) + p.Capacity(0, 1))
			if x < p.Capacity(0, 0) {
				return 0
			}
			return 1
		}), "random-weighted"}
	}}
	iPipe = of("ipipe", func(p *paths.Plan) paths.Policy { return newIPipe(p, "acc") })
)

// beside are policies of every case, behind the systems that the paper has there. The optimum knows when requests come,
// which is not known where the next one begins when another ends.
func beside(systems ...maker) []maker {
	return append(systems, roundRobin, greedyE2E, greedyHost, leoStreak, leo, leoQueue)
}

// horizon is how many requests the optimum looks ahead. Six and eight differ by less than a percent in figure 6.14.
const horizon = 6

// ipipe follows the paper's emulation of iPipe (6.4.1): requests go to the accelerator until one takes longer, end to
// end, than it would on an idle system; then to the CPU until one takes longer there, or none does at the accelerator.
type ipipe struct {
	plan     *paths.Plan
	acc      int // path
	migrated bool
}

func newIPipe(p *paths.Plan, acc string) paths.Policy {
	for i := range p.File.Paths {
		if p.File.Paths[i].Name == acc {
			return &ipipe{plan: p, acc: i}
		}
	}
	panic("no path " + acc)
}

func (*ipipe) Name() string { return "ipipe" }

func (i *ipipe) Choose(_ float64, kind int) int {
	at := i.plan.Choice(kind, i.acc)
	if at < 0 || i.migrated && len(i.plan.Types[kind].Choices) > 1 {
		return max(0, 1-at)
	}
	return at
}

// Avoid implements paths.Policy. No path fails here.
func (*ipipe) Avoid(int, bool) {}

func (*ipipe) Took(float64, int, int) paths.Mark { return paths.Mark{} }

// Finished compares with the mean of what the network adds, as a profile of an idle system would have it.
func (i *ipipe) Finished(_ float64, f paths.Finished) {
	c := &i.plan.Types[f.Kind].Choices[f.Choice]
	slow := f.EndToEnd > c.Base+c.Network+c.Jitter/2
	i.migrated = slow == (c.Path == i.acc)
}
