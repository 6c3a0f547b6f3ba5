package graph

// SeenFrom is the time from which an edge can be seen, by position: its own, or that of its source's row where that
// is
// later. What is as of a time may look at the edges whose time is before it. nil: the dataset has no times.
func (d *Dataset) SeenFrom() []int64 {
	g := d.Graph
	if d.Times == nil {
		return g.EdgeTimes
	}
	times := make([]int64, g.Edges())
	_ = parallelErr(g.Edges(), 1<<18, func(lo, hi int64) error {
		for e := lo; e < hi; e++ {
			times[e] = d.Times[g.Indices[e]]
			if g.EdgeTimes != nil {
				times[e] = max(times[e], g.EdgeTimes[e])
			}
		}
		return nil
	})
	return times
}

// HasTimes reports whether edges or vertices have times.
func (d *Dataset) HasTimes() bool { return d.Times != nil || d.Graph.EdgeTimes != nil }
