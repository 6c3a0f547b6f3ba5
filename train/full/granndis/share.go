package granndis

import "starling/cost"

// With k > 1 preloaded layers nothing comes from other servers in layer k-1, and the link
// is idle while local rows are summed over. As many rows of hop 1 as come in that time are
// received instead, and need not be computed in layer k-2:
//
//	share·rows·s_between <= local edges·s_edge
//
// Each worker of a server computes equally many fewer. Which rows they are follows from
// the numbers of vertices, so that all workers agree.

// hidden is how much of the time in which local rows are summed over is counted on: a
// transfer that takes longer than predicted is waited for by all.
const hidden = 0.8

// receive sets the share of hop 1 that is received.
func (n *neighbourhood) receive(share float64) {
	if n.share = share; share == 0 {
		return
	}
	count := make([]float64, n.last-n.first)
	all := 0.0
	for _, at := range n.placed {
		if at.hop == 1 {
			count[int(at.worker)-n.first]++
			all++
		}
	}
	for _, c := range count {
		n.received = append(n.received, share*all/float64(len(count))/max(c, 1))
	}
}

// receives reports whether a vertex of hop 1 is received in layer k-1.
func (n *neighbourhood) receives(v uint32) bool {
	const steps = 1 << 16
	if n.received == nil || !n.remote(v) {
		return false
	}
	if _, ok := n.at(v); !ok { // its owner's row, as always
		return false
	}
	return float64(v*2654435761>>16) < n.received[n.holder(v)-n.first]*steps
}

// countLocal counts the edges that are summed over while rows come.
func (g *growth) countLocal(n *neighbourhood) {
	for _, u := range n.hops[0].in.Indices {
		if _, own := n.w.Own(u); own {
			g.local++
		} else if n.holder(u) == n.w.End.Rank() {
			g.replicated++
		}
	}
}

// receivable is the share of hop 1 that comes in time for all workers.
func (n *neighbourhood) receivable(c *cost.Epoch, k int) (float64, error) {
	all, err := n.Share(receivable(c, &n.grown, k))
	if err != nil {
		return 0, err
	}
	share := 1.0
	for _, v := range all {
		share = min(share, v[0])
	}
	return share, nil
}

// receivable is the receivable share of one worker.
func receivable(c *cost.Epoch, g *growth, k int) float64 {
	if k < 2 {
		return 0
	}
	at := c.Layers[k-1]
	time := float64(at.Traffic) * (c.Between*float64(g.between) + c.Inside*float64(g.relayed))
	local, replicated := hidden*at.Edge*float64(g.local), hidden*at.Edge*float64(g.replicated)
	if time+replicated == 0 {
		return 0
	}
	return min(1, (local+replicated)/(time+replicated))
}

// receive takes what is received off the load of a layer; after is the number of layers since the
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
