package setup

import (
	"context"
	"fmt"
	"sync"

	"starling/spec"
)

// CutOnce is a context in which a dataset is cut once, however often its parts are asked for: by a plan, by what is tried,
// and by the run that follows. release deletes what was cut.
func CutOnce(ctx context.Context) (_ context.Context, release func()) {
	c := &cuts{made: map[string]*Parts{}}
	return context.WithValue(ctx, cutsKey{}, c), c.remove
}

type cutsKey struct{}

// cuts are the partitions that were made, by all that they depend on.
type cuts struct {
	mu   sync.Mutex
	made map[string]*Parts
}

// cutsOf returns the partitions of a context; nil: each request makes its own.
func cutsOf(ctx context.Context) *cuts {
	c, _ := ctx.Value(cutsKey{}).(*cuts)
	return c
}

// find opens parts that were made before, or makes them.
func (c *cuts) find(s *spec.Spec, cut func() (*Parts, error)) (*Parts, error) {
	if c == nil {
		return cut()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprintf("%q %q %d %d %s %d", s.Dataset, s.Target, s.Cluster.Workers, s.Cluster.Servers, s.Cluster.Partitioner, s.Seed)
	if c.made[key] == nil {
		made, err := cut()
		if err != nil {
			return nil, err
		}
		c.made[key] = made
	}
	p, err := OpenParts(c.made[key].Dir, s)
	if err == nil {
		p.Meta.CRC32C = c.made[key].Meta.CRC32C
	}
	return p, err
}

func (c *cuts) remove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.made {
		p.Remove()
	}
	clear(c.made)
}
