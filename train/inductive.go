package train

import (
	"fmt"
	"maps"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/wire"
)

// Inductive training on several workers sees of the graph the edges between training
// vertices, as graph.Subgraph has them, and measures on all edges:
//
//	A' = {u → v in A : u and v are training vertices}
//
// Every worker makes, of its part, one of A': all its own vertices, the edges that are
// left, and of halo and rows to send what these need. A strategy trains on it as on any
// part. Measuring is halo's, on the part as it is.

// inductive makes the site one of what is seen, and a strategy that measures on the
// whole. told is what workers sent each other for it. Nothing, if training sees all.
func (s *site) inductive() (measure planned, told map[Sent]int64, err error) {
	if !s.opt.Inductive {
		return nil, nil, nil
	}
	whole := *s
	l := newLookup(s)
	if s.part, err = l.seenPart(); err != nil {
		return nil, nil, fmt.Errorf("inductive training: %w", err)
	}
	measure, err = newHalo(&whole)
	return measure, l.sent, err
}

// seenPart is this worker's part of the graph of training vertices. Two swaps make it:
// owners tell which of the rows they send are training vertices while receivers tell
// which they have an edge from to one; then degrees in that graph are looked up.
func (l *lookup) seenPart() (*partition.Part, error) {
	p := *l.part
	seen, goes, err := l.tellSeen()
	if err != nil {
		return nil, err
	}
	p.In = p.In.Subgraph(seen)
	p.Send, p.SendPtr = chosen(p.Send, p.SendPtr, goes)
	core := p.Core()
	p.Halo, p.HaloPtr = chosen(p.Halo, p.HaloPtr, seen[core:])
	p.Meta.Halo, p.Meta.Sent, p.Meta.Edges = int64(len(p.Halo)), int64(len(p.Send)), int64(len(p.In.Indices))
	renumber(p.In.Indices, seen, core)
	p.IDs, p.Degrees, p.GCNDegrees = slices.Clone(p.IDs[:core]), make([]uint32, core), make([]float64, core)
	for v := range core {
		p.Degrees[v], p.GCNDegrees[v] = uint32(p.In.Degree(uint32(v))), withoutLoops(p.In, uint32(v))
	}
	l.part = &p
	marks, err := l.marks(p.Halo)
	for _, m := range marks {
		p.IDs, p.Degrees, p.GCNDegrees = append(p.IDs, m.id), append(p.Degrees, m.degree), append(p.GCNDegrees, m.gcn)
	}
	return &p, err
}

// tellSeen says which local vertices are training vertices, of the halo only those with
// an edge to another, and which entries of the part's list of rows to send are needed.
func (l *lookup) tellSeen() (seen, goes []bool, err error) {
	p, core := l.part, uint32(l.part.Core())
	seen, goes = make([]bool, len(p.IDs)), make([]bool, len(p.Send))
	for _, v := range p.Splits.Train {
		seen[v] = true
	}
	for _, v := range p.Splits.Train {
		for _, u := range p.In.Neighbors(v) {
			seen[u] = seen[u] || u >= core
		}
	}
	out := make([][]byte, l.end.Size())
	for q := range out {
		for _, v := range p.SendTo(q) {
			out[q] = append(out[q], bit(seen[v]))
		}
		for k := p.HaloPtr[q]; k < p.HaloPtr[q+1]; k++ {
			out[q] = append(out[q], bit(seen[int64(core)+k]))
		}
	}
	in, _, err := l.swap(wire.Topology, out, false)
	if err != nil {
		return nil, nil, err
	}
	for q, b := range in {
		halo := len(p.HaloOf(q))
		if len(b) != len(out[q]) {
			return nil, nil, fmt.Errorf("worker %d says of %d rows whether they are seen, this one has %d with it; do all workers have parts of the same partition?", q, len(b), len(out[q]))
		}
		for i, x := range b[:halo] {
			at := int64(core) + p.HaloPtr[q] + int64(i)
			seen[at] = seen[at] && x == 1
		}
		for i, x := range b[halo:] {
			goes[p.SendPtr[q]+int64(i)] = seen[p.SendTo(q)[i]] && x == 1
		}
	}
	return seen, goes, nil
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// chosen are the entries of a list by peer whose mark is set.
func chosen(list []uint32, ptr []int64, set []bool) (some []uint32, at []int64) {
	at = make([]int64, len(ptr))
	for q := range len(ptr) - 1 {
		for k := ptr[q]; k < ptr[q+1]; k++ {
			if set[k] {
				some = append(some, list[k])
			}
		}
		at[q+1] = int64(len(some))
	}
	return some, at
}

// renumber gives halo vertices that are seen consecutive numbers after the core.
func renumber(indices []uint32, seen []bool, core int) {
	place, next := make([]uint32, len(seen)-core), uint32(core)
	for k := range place {
		if place[k] = next; seen[core+k] {
			next++
		}
	}
	for e, u := range indices {
		if int(u) >= core {
			indices[e] = place[int(u)-core]
		}
	}
}

// withoutLoops is what the in-edges of a vertex weigh, loops not counted.
func withoutLoops(g *graph.CSR, v uint32) (sum float64) {
	for i, u := range g.Neighbors(v) {
		switch {
		case u == v:
		case g.Weights != nil:
			sum += float64(g.Weights[g.Indptr[v]+int64(i)])
		default:
			sum++
		}
	}
	return sum
}

// inductivePlan is that of training as the strategy does and of measuring as measure does.
func inductivePlan(p *Plan, measure planned, told map[Sent]int64, model *nn.Model, task nn.Task) *Plan {
	m := measure.Plan(model, task)
	joined := *p
	joined.Prepare, joined.OnceMeasured, joined.Measure = maps.Clone(told), m.OnceMeasured, m.Measure
	for _, prepare := range []map[Sent]int64{p.Prepare, m.Prepare} {
		for k, b := range prepare {
			add(joined.Prepare, k, b)
		}
	}
	for k, b := range m.Once {
		add(joined.OnceMeasured, k, b)
	}
	return &joined
}
