package paths

import "sync"

// chooser is a selector that all connections of a process share: their segments wait in the same queues. Segments are
// requests of the first type.
type chooser struct {
	plan *Plan
	mu   struct {
		sync.Mutex
		selector *Selector
		policy   Policy
	}
}

func newChooser(p *Plan, policy Policy) *chooser {
	c := &chooser{plan: p}
	c.mu.policy, c.mu.selector = policy, NewSelector(p, policy)
	return c
}

// preferred is the path that a segment would take now, of those that are up. REQUIRES: one is.
func (c *chooser) preferred(now float64, paths []sendPath) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mask(paths)
	return c.usable(c.mu.policy.Choose(now, 0), paths)
}

// begin gives a segment a path and a row of the request state table.
func (c *chooser) begin(now float64, paths []sendPath) (path int, id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mask(paths)
	id, choice := c.mu.selector.Begin(now, &Arrival{At: now})
	return c.usable(choice, paths), id
}

// mask leaves the policy those paths that this connection has.
// REQUIRES: mu held.
func (c *chooser) mask(paths []sendPath) {
	for i := range paths {
		c.mu.policy.Avoid(i, !paths[i].up)
	}
}

// usable is the path of a choice, or if the policy could not but take one that is down, another.
func (c *chooser) usable(choice int, paths []sendPath) int {
	path := c.plan.Types[0].Choices[choice].Path
	for i := 0; i < len(paths) && !paths[path].up; i++ {
		if paths[i].up {
			path = i
		}
	}
	return path
}

// end is told how long a segment took until it was acknowledged.
func (c *chooser) end(now float64, id int32, took float64, path int) {
	network := 0.0
	if at := c.plan.Choice(0, path); at >= 0 {
		network = c.plan.Types[0].Choices[at].Network
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.selector.End(now, id, took-network)
}

func (c *chooser) drop(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.selector.Drop(id)
}
