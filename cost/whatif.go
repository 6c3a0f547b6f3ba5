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

	// Of a typed graph: its relations, the vertices whose rows are learnt, and whether edges attend, as rgat's, hgt's
	// and simplehgn's do.
	Relations []RelationSize
	Learnt    float64
	Attends   bool
}

// RelationSize is the vertices of the types at a relation's ends.
type RelationSize struct{ Sources, Targets float64 }

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

// products are how many rows per vertex meet a weight in a layer. With types there is a weight for each relation:
// attention has it meet the relation's sources, others their means at its targets, and a vertex's own row meets one
// more.
func (p *WhatIf) products() float64 {
	if p.Relations == nil {
		return 1
	}
	sum := 0.0
	for _, r := range p.Relations {
		if p.Attends {
			sum += r.Sources
		} else {
			sum += r.Targets
		}
	}
	if !p.Attends {
		sum += p.Vertices
	}
	return sum / p.Vertices
}

// relationsInto is how many relations lead to a vertex, on average.
func (p *WhatIf) relationsInto() float64 {
	if p.Relations == nil {
		return 1
	}
	sum := 0.0
	for _, r := range p.Relations {
		sum += r.Targets
	}
	return sum / p.Vertices
}

// wide is the width of rows and of what the layers after them meet: of features and then hidden rows, or, with types,
// of features in the encoder and hidden rows in every layer.
func (p *WhatIf) wide() float64 {
	if p.Relations == nil {
		return p.In + float64(p.Layers-1)*p.Hidden
	}
	return p.In*(1-p.Learnt/p.Vertices) + float64(p.Layers)*p.Hidden*p.products()
}

// sentLayers is how many layers have rows travel in every epoch: features travel once, what an encoder makes of
// them always.
func (p *WhatIf) sentLayers() float64 {
	if p.Relations == nil {
		return float64(p.Layers - 1)
	}
	return float64(p.Layers)
}

// kept is the numbers of a vertex that a host keeps: features and outputs, or a learnt row with what its optimizer has.
func (p *WhatIf) kept() float64 {
	return p.In*(1-p.Learnt/p.Vertices) + p.Classes + 4*p.Hidden*p.Learnt/p.Vertices
}

// rowsKept is how many hidden rows of a vertex a layer keeps for the backward pass; attention keeps one per relation.
func (p *WhatIf) rowsKept() float64 {
	if p.Attends {
		return 3 + p.relationsInto()
	}
	return 3
}

// passes is how often a layer reads the rows at the ends of edges.
func (p *WhatIf) passes() float64 {
	if p.Attends {
		return 3
	}
	return 2
}

// number is the bytes of one.
const number = 4

// FullGraph is an epoch over the whole graph: every hidden layer's rows travel forward and their gradients back;
// features travel once, before.
func (p *WhatIf) FullGraph() Outlook {
	own, edges := p.Vertices/p.Hosts, p.Edges/p.Hosts
	var o Outlook
	o.Remote = distinct(p.Vertices-own, p.cut()*edges)
	sent, layers := p.sentLayers(), float64(p.Layers)
	o.Sent = 2 * sent * o.Remote * p.Hidden * number
	o.Messages = 2 * sent * (p.Hosts - 1)
	rows := own + o.Remote
	o.Memory = own*p.kept()*number + layers*p.rowsKept()*own*p.Hidden*number + 2*o.Remote*p.Hidden*number +
		2*edges*8 + rows*8
	o.Compute = p.Compute.Seconds(Work{Dense: 6 * own * p.Hidden * p.wide(),
		Sparse: p.passes() * edges * p.Hidden * layers, Memory: 40 * own * p.Hidden * layers})
	return p.timed(o)
}

// Batches is an epoch of mini-batches: sampled edges and the features of a batch's remote vertices travel.
func (p *WhatIf) Batches() Outlook {
	var o Outlook
	steps := math.Ceil(p.Train / p.Batch)
	seeds, rows, drawn := p.Batch/p.Hosts, p.Batch/p.Hosts, 0.0
	fanout := min(p.Fanout*p.relationsInto(), max(p.Fanout, p.Edges/p.Vertices)) // of every relation
	for range p.Layers {
		drawn += rows * fanout
		rows = min(p.Vertices, rows*(1+fanout))
	}
	rows = distinct(p.Vertices, rows)
	o.Remote = p.cut() * rows
	o.Sent = steps * (o.Remote*(p.In*number+8) + p.cut()*drawn*8)
	o.Messages = steps * float64(p.Layers+1) * 2 * min(p.Hosts-1, o.Remote)
	own, edges := p.Vertices/p.Hosts, p.Edges/p.Hosts
	o.Memory = own*((p.kept()-p.Classes)*number+8) + edges*4 + 8*own + 4*rows*(p.In+2*p.Hidden)*number
	dense := rows*p.In*p.Hidden + seeds*fanout*p.products()*p.Hidden*p.Hidden
	o.Compute = p.Compute.Seconds(Work{Dense: steps * 6 * dense,
		Sparse: steps * p.passes() * drawn * p.Hidden, Memory: steps * 40 * rows * p.Hidden})
	return p.timed(o)
}

// timed adds the time of links and processors: one hides the other, and computing hides neither.
func (p *WhatIf) timed(o Outlook) Outlook {
	o.Link = per(o.Sent*frame, p.Link.Rate) + p.Link.Delay*float64(2*p.Layers)
	o.Host = 2*o.Sent*p.HostByte + o.Messages*p.HostPerMsg
	o.Seconds = o.Compute + max(o.Link, o.Host)
	return o
}
