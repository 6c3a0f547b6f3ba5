package paths

// greedy takes the path whose last request of this type took the least time. Paths that were not taken yet count with
// their base time. It is the optimum over one request (k = 1) with what was last seen of the queues.
type greedy struct {
	avoided
	plan     *Plan
	endToEnd bool
	last     [][]float64 // by type and choice
}

// NewGreedy looks at the time with the network (endToEnd), or at that inside hosts.
func NewGreedy(p *Plan, endToEnd bool) Policy {
	g := &greedy{plan: p, endToEnd: endToEnd}
	for _, t := range p.Types {
		last := make([]float64, len(t.Choices))
		for i, c := range t.Choices {
			last[i] = c.Base
			if endToEnd {
				last[i] += c.Network
			}
		}
		g.last = append(g.last, last)
	}
	return g
}

func (g *greedy) Name() string {
	if g.endToEnd {
		return "greedy-e2e"
	}
	return "greedy-host"
}

func (g *greedy) Choose(_ float64, kind int) int {
	return g.least(g.plan.Types[kind].Choices, func(i int, _ *Choice) float64 { return g.last[kind][i] })
}

func (*greedy) Took(float64, int, int) Mark { return Mark{} }

func (g *greedy) Finished(_ float64, f Finished) {
	x := f.Host
	if g.endToEnd {
		x = f.EndToEnd
	}
	g.last[f.Kind][f.Choice] = x
}
