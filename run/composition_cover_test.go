package run

// coverPairs is runs that together have every pair of values that is not refused and that wanted wants.
// Each is made of a pair that no run has yet, and of values that add most pairs to it, among those
// that go together (a greedy pairwise covering array, as AETG's: Cohen et al., "The AETG System",
// IEEE TSE 1997).
func coverPairs(dims []dimension, wanted func(dim string, value string) bool) (runs []composedRun) {
	c := &cover{dims: dims, wanted: wanted, left: map[valuePair]bool{}}
	var order []valuePair
	for a := range dims {
		for b := a + 1; b < len(dims); b++ {
			eachPair(dims, a, b, func(p valuePair) {
				if c.has(p.A, p.U) && c.has(p.B, p.V) && p.refused(dims) == nil {
					c.left[p] = true
					order = append(order, p)
				}
			})
		}
	}
	for _, p := range order {
		if !c.left[p] {
			continue
		}
		if r := c.start(p); r != nil { // else only strategies that are not wanted have it
			runs = append(runs, c.fill(r))
		}
	}
	return runs
}

type cover struct {
	dims   []dimension
	wanted func(dim, value string) bool
	left   map[valuePair]bool // pairs that no run has yet
}

func (c *cover) has(dim, value int) bool {
	return c.wanted(c.dims[dim].Name, c.dims[dim].Values[value].Name)
}

// fill gives a run as many other pairs that are left as a greedy choice finds.
func (c *cover) fill(r composedRun) composedRun {
	for d := range c.dims {
		if r[d] < 0 {
			r[d] = c.best(r, d)
		}
	}
	for a := range r {
		for b := a + 1; b < len(r); b++ {
			delete(c.left, valuePair{a, r[a], b, r[b]})
		}
	}
	return r
}

// start is a run of a pair, with the strategy that has most pairs left with both; nil: none that is
// wanted has both.
func (c *cover) start(p valuePair) (best composedRun) {
	strategy := at(c.dims, strategyName)
	if p.A == strategy || p.B == strategy {
		return p.run(c.dims, -1)
	}
	most := -1
	for v := range c.dims[strategy].Values {
		r := p.run(c.dims, v)
		if n := c.gain(r, strategy); n > most && c.has(strategy, v) && r.check(c.dims) == nil {
			best, most = r, n
		}
	}
	return best
}

// best is the value of a dimension that has most pairs left with the other values of a run; -1: none
// has any.
func (c *cover) best(r composedRun, d int) (value int) {
	value, most := -1, 0
	for v := range c.dims[d].Values {
		r[d] = v
		if n := c.gain(r, d); n > most && r.check(c.dims) == nil {
			value, most = v, n
		}
	}
	r[d] = -1
	return value
}

// gain is how many pairs that are left a run has with its value of a dimension.
func (c *cover) gain(r composedRun, d int) (n int) {
	for other, v := range r {
		switch {
		case v < 0:
		case other < d && c.left[valuePair{other, v, d, r[d]}], other > d && c.left[valuePair{d, r[d], other, v}]:
			n++
		}
	}
	return n
}
