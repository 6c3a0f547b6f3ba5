package inspect

import (
	"fmt"

	"starling/graph"
	"starling/partition"
	"starling/sample"
)

// LocalityOptions are the batches whose locality is measured.
type LocalityOptions struct {
	Fanouts   []int
	BatchSize int
	Batches   int // at most
}

// PartsLocality is the share of vertices that are with the seed vertex that needs them.
type PartsLocality struct {
	Micro float64 `json:"r_micro"`
	Sub   float64 `json:"r_sub"`
	Seeds int     `json:"seeds"`
}

// measureLocality draws batches of the whole graph that the parts of a folder make up, and looks where
// their vertices are: on the server of the seed vertex that needs them, or on another.
func measureLocality(dir string, b *partition.Book, o LocalityOptions) (*PartsLocality, error) {
	g, training, err := joined(dir, b)
	if err != nil {
		return nil, err
	}
	if len(training) == 0 {
		return nil, &graph.InputError{File: dir, Found: "no training vertices", Want: "some to draw batches of",
			Fix: "leave out --locality"}
	}
	n := &sample.Neighbour{Graph: g, SeedVertices: training, Size: o.BatchSize, Fanouts: o.Fanouts}
	method, err := n.Prepare()
	if err != nil {
		return nil, err
	}
	var l sample.Locality
	var batch sample.Batch
	s := method.Sampler()
	for number := range min(o.Batches, method.Batches()) {
		s.Sample(&batch, 0, number)
		l.Add(&batch, func(v uint32) int { return homeOf(b, v) })
	}
	return &PartsLocality{l.Micro(), l.Sub(), l.Seeds}, nil
}

// homeOf is the server that owns a vertex; where all parts are on one, the part.
func homeOf(b *partition.Book, v uint32) int {
	if b.Servers > 1 {
		return b.Server(b.Owner(v))
	}
	return b.Owner(v)
}

// joined is the graph of all parts, with vertices by number in the partition, and its training vertices.
func joined(dir string, b *partition.Book) (g *graph.CSR, training []uint32, err error) {
	g = &graph.CSR{Indptr: []int64{0}}
	for k := range b.Parts {
		p, err := partition.OpenPart(dir, k)
		if err != nil {
			return nil, nil, fmt.Errorf("part %d: %w", k, err)
		}
		first, core := uint32(b.Offsets[k]), uint32(p.Core())
		for v := range core {
			for _, u := range p.In.Neighbors(v) {
				if u < core {
					u += first
				} else {
					u = p.Halo[u-core]
				}
				g.Indices = append(g.Indices, u)
			}
			g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		}
		for _, v := range p.Splits.Train {
			training = append(training, first+v)
		}
		if err := p.Close(); err != nil {
			return nil, nil, err
		}
	}
	return g, training, nil
}
