package cost

import "math"

// WhatIf is a graph that is not at hand, and a cluster that is not either: what an epoch would take follows from
// numbers of vertices and edges, and the share of edges that are cut.
type WhatIf struct {
	Vertices, Edges      float64
	Train                float64 // vertices
	In, Hidden, Classes  float64 // widths
	Layers               int
	Hosts                float64
	Cut                  float64 // share of edges between hosts; 0: a random cut
	Batch, Fanout        float64 // of mini-batches: seed vertices, neighbours per layer
	Compute              Compute // of a host
	Link                 Link
	HostByte, HostPerMsg float64
}

// Outlook is what a host needs and an epoch takes. The network has no bottleneck in its core, and all hosts send
// alike, so that a host's own link is the busiest.
type Outlook struct {
	Remote   float64 `json:"remote_rows"`  // rows of other hosts that one needs, per layer
	Memory   float64 `json:"memory_bytes"` // of a host
	Sent     float64 `json:"sent_bytes"`   // by a host, in an epoch
	Messages float64 `json:"messages"`     // by a host, in an epoch
	Compute  float64 `json:"compute_seconds"`
	Link     float64 `json:"link_seconds"`
	Host     float64 `json:"host_seconds"` // processors of a host for bytes and messages
	Seconds  float64 `json:"seconds"`
}

// distinct is the number of different ones of n among a number of draws.
func distinct(n, draws float64) float64 {
	if n <= 0 {
		return 0
	}
	return n * -math.Expm1(-draws/n)
}

// cut is the share of edges between hosts.
func (p *WhatIf) cut() float64 {
	if p.Cut > 0 {
		return p.Cut
	}
	return 1 - 1/p.Hosts
}

// number is the bytes of one.
const number = 4

// FullGraph is an epoch over the whole graph: every hidden layer's rows travel forward and their gradients back;
// features travel once, before.
func (p *WhatIf) FullGraph() Outlook {
	own, edges := p.Vertices/p.Hosts, p.Edges/p.Hosts
	var o Outlook
	o.Remote = distinct(p.Vertices-own, p.cut()*edges)
	hidden := float64(p.Layers - 1)
	o.Sent = 2 * hidden * o.Remote * p.Hidden * number
	o.Messages = 2 * hidden * (p.Hosts - 1)
	rows := own + o.Remote
	o.Memory = own*(p.In+p.Classes)*number + float64(p.Layers)*3*own*p.Hidden*number + 2*o.Remote*p.Hidden*number +
		2*edges*8 + rows*8
	o.Compute = p.Compute.Seconds(Work{Dense: 6 * own * p.Hidden * (p.In + hidden*p.Hidden),
		Sparse: 2 * edges * p.Hidden * float64(p.Layers), Memory: 40 * own * p.Hidden * float64(p.Layers)})
	return p.timed(o)
}

// Batches is an epoch of mini-batches: sampled edges and the features of a batch's remote vertices travel.
func (p *WhatIf) Batches() Outlook {
	var o Outlook
	steps := math.Ceil(p.Train / p.Batch)
	seeds, rows, drawn := p.Batch/p.Hosts, p.Batch/p.Hosts, 0.0
	for range p.Layers {
		drawn += rows * p.Fanout
		rows = min(p.Vertices, rows*(1+p.Fanout))
	}
	rows = distinct(p.Vertices, rows)
	o.Remote = p.cut() * rows
	o.Sent = steps * (o.Remote*(p.In*number+8) + p.cut()*drawn*8)
	o.Messages = steps * float64(p.Layers+1) * 2 * min(p.Hosts-1, o.Remote)
	own, edges := p.Vertices/p.Hosts, p.Edges/p.Hosts
	o.Memory = own*(p.In*number+8) + edges*4 + 8*own + 4*rows*(p.In+2*p.Hidden)*number
	o.Compute = p.Compute.Seconds(Work{Dense: steps * 6 * (rows*p.In*p.Hidden + seeds*p.Fanout*p.Hidden*p.Hidden),
		Sparse: steps * 2 * drawn * p.Hidden, Memory: steps * 40 * rows * p.Hidden})
	return p.timed(o)
}

// timed adds the time of links and processors: one hides the other, and computing hides neither.
func (p *WhatIf) timed(o Outlook) Outlook {
	o.Link = per(o.Sent*frame, p.Link.Rate) + p.Link.Delay*float64(2*p.Layers)
	o.Host = 2*o.Sent*p.HostByte + o.Messages*p.HostPerMsg
	o.Seconds = o.Compute + max(o.Link, o.Host)
	return o
}
