package paths

import (
	"sync"
	"sync/atomic"
	"time"
)

// chooser is a selector that all connections of a process share: their segments wait in the same queues. Segments are
// requests of the types that Segments made of the file's first.
type chooser struct {
	plan    *Plan
	start   time.Time     // from which all connections count, for they share the estimates
	streams atomic.Uint64 // so far
	mu      struct {
		sync.Mutex
		selector *Selector
		policy   Policy
		record   *recorder // nil: none
	}
}

// segmentParts are the sizes of segments that policies tell apart, as parts of a whole one: a head of a hundred bytes
// does not delay others by as much as 64 KiB do.
var segmentParts = []struct {
	name string
	part float64
}{{"", 1}, {"/4", 1. / 4}, {"/16", 1. / 16}, {"/256", 1. / 256}}

// Segments is the plan of a run: the first request type of a file, for segments, in several sizes.
func Segments(p *Plan) *Plan {
	f := *p.File
	whole := f.Requests[0]
	f.Requests = nil
	for _, s := range segmentParts {
		r := whole
		r.Name, r.Options = whole.Name+s.name, nil
		for _, o := range whole.Options {
			sizes := make([]float64, len(o.Sizes))
			for i, x := range o.Sizes {
				sizes[i] = x * s.part
			}
			o.Sizes = sizes
			r.Options = append(r.Options, o)
		}
		f.Requests = append(f.Requests, r)
	}
	return NewPlan(&f)
}

// kindOf is the type of a segment: the smallest that it fits.
func kindOf(size int) (kind int) {
	for i, s := range segmentParts {
		if float64(size) <= segmentSize*s.part {
			kind = i
		}
	}
	return kind
}

// newChooser is for a plan that Segments made, and a policy of it.
func newChooser(p *Plan, policy Policy, start time.Time) *chooser {
	c := &chooser{plan: p, start: start}
	c.mu.policy, c.mu.selector = policy, NewSelector(p, policy)
	return c
}

// preferred is the path that a segment would take now, of those that are up. REQUIRES: one is.
func (c *chooser) preferred(now float64, size int, paths []sendPath) int {
	kind := kindOf(size)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mask(paths)
	return c.usable(kind, c.mu.policy.Choose(now, kind), paths)
}

// begin gives a segment a path and a row of the request state table.
func (c *chooser) begin(now float64, g *segment, paths []sendPath) (path int) {
	a := Arrival{At: now, Kind: kindOf(len(g.data)), Address: g.offset, Message: g.stream}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mask(paths)
	id, choice := c.mu.selector.Begin(now, &a)
	path = c.usable(a.Kind, choice, paths)
	g.id, g.sent = id, now
	return path
}

// mask leaves the policy those paths that this connection has.
// REQUIRES: mu held.
func (c *chooser) mask(paths []sendPath) {
	for i := range paths {
		c.mu.policy.Avoid(i, !paths[i].up)
	}
}

// usable is the path of a choice, or if the policy could not but take one that is down, another.
func (c *chooser) usable(kind, choice int, paths []sendPath) int {
	path := c.plan.Types[kind].Choices[choice].Path
	for i := 0; i < len(paths) && !paths[path].up; i++ {
		if paths[i].up {
			path = i
		}
	}
	return path
}

// end is told that a segment was acknowledged.
func (c *chooser) end(now float64, g *segment, path int) {
	kind, network := kindOf(len(g.data)), 0.0
	if at := c.plan.Choice(kind, path); at >= 0 {
		network = c.plan.Types[kind].Choices[at].Network
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.selector.End(now, g.id, now-g.sent-network)
	c.mu.record.add(now, g, kind, path)
}

// close ends the record.
func (c *chooser) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.record.close()
}

func (c *chooser) drop(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.selector.Drop(id)
}
