package train

// With k > 1 preloaded layers nothing comes from other servers in layer k-1, and the
// link is idle while near rows are added up. As many rows of hop 1 as come in that time
// are received instead, and need not be computed in layer k-2:
//
//	share·rows·s_between <= near edges·s_edge
//
// Each worker of a server computes equally many fewer. Which rows they are follows from
// the numbers of vertices, so that all workers agree.

// hidden is how much of the time in which near rows are added up is counted on: a
// transfer that takes longer than foreseen is waited for by all.
const hidden = 0.8

// receive sets the share of hop 1 that is received.
func (s *surroundings) receive(share float64) {
	if share == 0 {
		return
	}
	count := make([]float64, s.last-s.first)
	all := 0.0
	for v, q := range s.where {
		if s.hopOf[v] == 1 {
			count[q-s.first]++
			all++
		}
	}
	for _, n := range count {
		s.received = append(s.received, share*all/float64(len(count))/max(n, 1))
	}
}

// receives tells whether a vertex of hop 1 is received in layer k-1.
func (s *surroundings) receives(v uint32) bool {
	const steps = 1 << 16
	return s.received != nil && s.beyond(v) && float64(v*2654435761>>16) < s.received[s.where[v]-s.first]*steps
}

// countNear counts the edges that are added up while rows come.
func (g *growth) countNear(s *surroundings) {
	for _, u := range s.hops[0].in.Indices {
		if _, own := s.own(u); own {
			g.near++
		} else if s.holder(u) == s.end.Rank() {
			g.copied++
		}
	}
}

// receivable is the share of hop 1 that comes in time for all workers.
func (s *surroundings) receivable(c *costs, k int) (float64, error) {
	all, err := s.agree(c.receivable(&s.grown, k))
	if err != nil {
		return 0, err
	}
	share := 1.0
	for _, v := range all {
		share = min(share, v[0])
	}
	return share, nil
}

// receivable is that of one worker.
func (c *costs) receivable(g *growth, k int) float64 {
	if k < 2 {
		return 0
	}
	at := c.layers[k-1]
	time := float64(at.traffic) * (c.between*float64(g.between) + c.inside*float64(g.relayed))
	near, copied := hidden*at.edge*float64(g.near), hidden*at.edge*float64(g.copied)
	if time+copied == 0 {
		return 0
	}
	return min(1, (near+copied)/(time+copied))
}

// receive takes what is received off the load of a layer, which is so many after the
// last preloaded one.
func (w *load) receive(g *growth, after int, share float64) {
	if len(g.rows) < 2 || share == 0 {
		return
	}
	less := int64(share * float64(g.rows[1]))
	switch after {
	case -2:
		w.made -= less
		if len(g.edges) > 1 {
			w.edges -= int64(share * float64(g.edges[1]))
		}
	case -1:
		w.taken -= less
		w.inside += int64(share * float64(g.relayed))
	}
}
