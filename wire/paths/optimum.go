package paths

import "math"

// optimum knows the requests to come, and chooses what makes the sum of the next k requests' times inside hosts least
// (6.1 to 6.4). Of a resource x with capacity m, request t adds its work to the queue if it takes x, and the queue
// drains until request t+1 comes:
//
//	Q(x)_t = max(Q(x)_t-1 + work/m - dt_t, 0)    (6.1, 6.2)
//	cost   = sum over t of sum over x on the path of Q(x)_t + T(p, r_t)    (6.3, one path per request: 6.4)
//
// The paper hands this to a linear programming solver. The horizon is short and the choices are few, so a branch and
// bound over the choices gives the same optimum: a branch is left when its cost, with what the rest would cost over
// empty queues, is no better than the best known.
type optimum struct {
	avoided // it is for simulations, where no path fails
	plan    *Plan
	trace   Trace
	horizon int
	next    int       // the request of the trace that comes next
	queue   []float64 // by resource, when it comes

	// Of one search.
	levels [][]float64 // queues before each request of the horizon
	rest   []float64   // least that requests from there on cost
	picks  []int
	best   []int
	least  float64
	nodes  int
}

// NewOptimum looks a number of requests ahead in a trace that it was given in advance.
func NewOptimum(p *Plan, trace Trace, horizon int) Policy {
	o := &optimum{plan: p, trace: trace, horizon: max(horizon, 1), queue: make([]float64, len(p.Resources))}
	o.rest, o.picks, o.best = make([]float64, o.horizon+1), make([]int, o.horizon), make([]int, o.horizon)
	for range o.horizon + 1 {
		o.levels = append(o.levels, make([]float64, len(p.Resources)))
	}
	return o
}

func (*optimum) Name() string { return "optimum" }

func (o *optimum) Choose(_ float64, kind int) int {
	n := min(o.horizon, len(o.trace)-o.next)
	if n < 1 {
		return 0
	}
	o.bounds(n)
	copy(o.levels[0], o.queue)
	o.least, o.nodes = math.Inf(1), 0
	o.search(0, n, 0)
	return o.best[0]
}

// bounds computes what the requests of the horizon cost at least.
func (o *optimum) bounds(n int) {
	o.rest[n] = 0
	for i := n - 1; i >= 0; i-- {
		least := math.Inf(1)
		for _, c := range o.plan.Types[o.trace[o.next+i].Kind].Choices {
			least = min(least, c.Base)
		}
		o.rest[i] = o.rest[i+1] + least
	}
}

// search tries the choices of request i of the horizon, the cheapest first.
func (o *optimum) search(i, n int, cost float64) {
	o.nodes++
	if i == n {
		if cost < o.least {
			o.least = cost
			copy(o.best, o.picks[:n])
		}
		return
	}
	t := o.next + i
	choices := o.plan.Types[o.trace[t].Kind].Choices
	var tried uint64
	for range choices {
		pick, least := -1, 0.0
		for j := range choices {
			if tried&(1<<j) != 0 {
				continue
			}
			o.advance(o.levels[i], o.levels[i+1], &choices[j], o.interval(t))
			if c := o.cost(o.levels[i+1], &choices[j]); pick < 0 || c < least {
				pick, least = j, c
			}
		}
		tried |= 1 << pick
		if cost+least+o.rest[i+1] >= o.least {
			return // the others cost more still
		}
		o.advance(o.levels[i], o.levels[i+1], &choices[pick], o.interval(t))
		o.picks[i] = pick
		o.search(i+1, n, cost+least)
	}
}

// interval is the time from request t to the next.
func (o *optimum) interval(t int) float64 {
	if t+1 >= len(o.trace) {
		return 0
	}
	return o.trace[t+1].At - o.trace[t].At
}

// advance is equations 6.1 and 6.2.
func (o *optimum) advance(before, after []float64, c *Choice, dt float64) {
	copy(after, before)
	for _, s := range c.Stages {
		if !s.Network {
			after[s.Resource] += s.Work / float64(o.plan.Resources[s.Resource].Capacity)
		}
	}
	for i := range after {
		after[i] = max(after[i]-dt, 0)
	}
}

// cost is one term of 6.3.
func (o *optimum) cost(queue []float64, c *Choice) float64 {
	cost := c.Base
	for i := range c.Stages {
		if s := &c.Stages[i]; !s.Network && firstUse(c.Stages, i) {
			cost += queue[s.Resource]
		}
	}
	return cost
}

// firstUse reports whether a stage's resource does not occur before: a path that takes a link twice waits in one queue.
func firstUse(stages []Stage, i int) bool {
	for j := range i {
		if stages[j].Resource == stages[i].Resource {
			return false
		}
	}
	return true
}

func (o *optimum) Took(_ float64, kind, choice int) Mark {
	if o.next < len(o.trace) {
		o.advance(o.queue, o.queue, &o.plan.Types[kind].Choices[choice], o.interval(o.next))
		o.next++
	}
	return Mark{}
}

func (*optimum) Finished(float64, Finished) {}
