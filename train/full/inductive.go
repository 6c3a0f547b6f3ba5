package full

import (
	"errors"
	"fmt"
	"slices"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/train"
	"starling/train/site"
	"starling/wire"
)

// Inductive training on several workers sees of the graph the edges between training
// vertices, as graph.Subgraph has them, and measures on all edges:
//
//	A' = {u → v in A : u and v are training vertices}
//
// Every worker makes, of its part, one of A': all its own vertices, the edges that are
// left, and of halo and rows to send what these need. Any strategy trains on it as on any
// other part. Measuring is halo's, on the part as it is.

// inductive is a strategy that can also be trained so.
func inductive(d train.Descriptor) train.Descriptor {
	build := d.New
	d.New = func(s *train.Site) (train.Strategy, error) {
		if !s.Opt.Inductive {
			return build(s)
		}
		return newSeen(s, build)
	}
	return d
}

// onSeen trains on what is seen and measures on the whole graph.
type onSeen struct {
	train.Strategy
	measure train.Strategy
	sent    wire.Bytes // what workers sent each other to know what is seen
}

func newSeen(s *train.Site, build func(*train.Site) (train.Strategy, error)) (train.Strategy, error) {
	if s.Alone {
		return nil, train.Unplanned("inductive training")
	}
	rows, _ := train.OptionOf[exchange.RowOptions](s.Opt.Strategy)
	relay, _ := train.OptionOf[exchange.RelayOption](s.Opt.Strategy)
	w := site.Worker(s, rows, relay)
	setup := exchange.NewSetup(w)
	seen, err := seenPart(setup)
	if err != nil {
		return nil, fmt.Errorf("inductive training: %w", err)
	}
	measure, err := site.Halo(w)
	if err != nil {
		return nil, err
	}
	on := *s
	on.Part = seen
	training, err := build(&on)
	if err != nil {
		return nil, err
	}
	return &onSeen{training, measure, setup.Sent}, nil
}

// Unwrap is the strategy that trains.
func (o *onSeen) Unwrap() train.Strategy { return o.Strategy }

// Measuring is how splits are measured.
func (o *onSeen) Measuring() train.Strategy { return o.measure }

func (o *onSeen) Finish() error { return errors.Join(o.Strategy.Finish(), o.measure.Finish()) }

// Plan is training's, and measure's where splits are measured.
func (o *onSeen) Plan(model *nn.Model) *wire.Plan {
	p, m := o.Strategy.Plan(model), o.measure.Plan(model)
	p.Prepare.AddAll(o.sent, 1)
	p.Prepare.AddAll(m.Prepare, 1)
	p.Measure, p.OnceMeasured, p.Shared = m.Measure, m.OnceMeasured, false
	p.OnceMeasured.AddAll(m.Once, 1)
	return p
}

// seenPart is this worker's part of the graph of training vertices. Two swaps make it:
// owners tell which of the rows they send are training vertices while receivers tell
// which they have an edge from to one; then degrees in that graph are looked up.
func seenPart(s *exchange.Setup) (*partition.Part, error) {
	p := *s.W.Part
	seen, goes, err := tellSeen(s)
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
	vertices, err := lookUp(s, &p)
	if err != nil {
		return nil, err
	}
	for _, m := range vertices {
		p.IDs, p.Degrees = append(p.IDs, m.ID), append(p.Degrees, m.Degree)
		p.GCNDegrees = append(p.GCNDegrees, m.GCNDegree)
	}
	return &p, nil
}

// lookUp looks up the halo vertices of a part whose own vertices have their degrees.
func lookUp(s *exchange.Setup, p *partition.Part) ([]exchange.Vertex, error) {
	w := *s.W
	w.Part = p
	of := *s
	of.W = &w
	owners, err := exchange.NewLookup(&of, "training vertices")
	if err != nil {
		return nil, err
	}
	vertices, err := owners.Vertices(p.Halo)
	if err != nil {
		return nil, err
	}
	return vertices, owners.Close()
}

// tellSeen says which local vertices are training vertices, of the halo only those with
// an edge to another, and which entries of the part's list of rows to send are needed.
func tellSeen(s *exchange.Setup) (seen, goes []bool, err error) {
	p, core := s.W.Part, uint32(s.W.Part.Core())
	seen, goes = make([]bool, len(p.IDs)), make([]bool, len(p.Send))
	for _, v := range p.Splits.Train {
		seen[v] = true
	}
	for _, v := range p.Splits.Train {
		for _, u := range p.In.Neighbors(v) {
			seen[u] = seen[u] || u >= core
		}
	}
	out := make([][]byte, s.W.End.Size())
	for q := range out {
		for _, v := range p.SendTo(q) {
			out[q] = append(out[q], bit(seen[v]))
		}
		for k := p.HaloPtr[q]; k < p.HaloPtr[q+1]; k++ {
			out[q] = append(out[q], bit(seen[int64(core)+k]))
		}
	}
	in, err := s.Swap(wire.Topology, out)
	if err != nil {
		return nil, nil, err
	}
	for q, b := range in {
		halo := len(p.HaloOf(q))
		if len(b) != len(out[q]) {
			return nil, nil, fmt.Errorf("worker %d says of %d rows whether they are seen, this one has %d with it; "+
				"do all workers have parts of the same partition?", q, len(b), len(out[q]))
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
