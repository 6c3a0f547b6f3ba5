package llm

import "starling/netsim"

// core counts the coflows that meet at each core switch (figure 5.3): those with a transfer under
// way through it. Leaves, which are the switches with hosts, are not core.
type core struct {
	first int32            // of the core switches
	under []map[*group]int // by core switch: transfers under way of each coflow
	since []netsim.Time
	area  []float64 // seconds times coflows
	most  int
}

func newCore(t *netsim.Topology) *core {
	c := &core{first: int32(t.Leaves)}
	for range t.Spines {
		c.under = append(c.under, map[*group]int{})
	}
	c.since, c.area = make([]netsim.Time, t.Spines), make([]float64, t.Spines)
	return c
}

// count counts what has passed since the last change at a switch.
func (c *core) count(k int, now netsim.Time) {
	c.area[k] += float64(len(c.under[k])) * (now - c.since[k]).Seconds()
	c.since[k] = now
}

func (c *core) begin(g *group, through []int32, now netsim.Time) {
	for _, s := range through {
		if k := int(s - c.first); k >= 0 {
			c.count(k, now)
			c.under[k][g]++
			c.most = max(c.most, len(c.under[k]))
		}
	}
}

func (c *core) end(g *group, through []int32, now netsim.Time) {
	for _, s := range through {
		if k := int(s - c.first); k >= 0 {
			c.count(k, now)
			if c.under[k][g]--; c.under[k][g] == 0 {
				delete(c.under[k], g)
			}
		}
	}
}

// CoreCoflows is how many coflows meet at a core switch: on average over time and switches, and at
// most. At packet level they are those with packets in its queues.
type CoreCoflows struct {
	Mean   float64              `json:"mean"`
	Most   int                  `json:"most"`
	Queued *netsim.QueuedGroups `json:"queued,omitempty"` // at packet level
}

// countEvery is the interval of figure 5.3.
const countEvery = 10 * netsim.Microsecond

// countCoflows begins to count.
func (r *run) countCoflows() {
	if !r.CountCore {
		return
	}
	if n, ok := r.net.(*netsim.Packets); ok {
		r.queued = n
		n.CountGroups(countEvery)
		return
	}
	r.core = newCore(&r.Topology)
}

// coreCoflows returns what was counted.
func (r *run) coreCoflows() *CoreCoflows {
	switch {
	case r.queued != nil:
		q := r.queued.QueuedGroups()
		return &CoreCoflows{q.Core.Mean, q.Core.Most, q}
	case r.core != nil:
		return r.core.result(r.net.Now())
	}
	return nil
}

// result returns the result of a simulation until now.
func (c *core) result(now netsim.Time) *CoreCoflows {
	var area float64
	for k := range c.area {
		c.count(k, now)
		area += c.area[k]
	}
	return &CoreCoflows{Mean: area / now.Seconds() / float64(len(c.area)), Most: c.most}
}
