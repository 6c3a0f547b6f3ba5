package neutrontp

import (
	"encoding/binary"
	"fmt"

	"starling/exchange"
	"starling/graph"
	"starling/wire"
)

// Every worker has all in-edges. Each sends its own once, before the first epoch:
//
//	degree of each own vertex | sources by their numbers in the partition | weights, where edges have any
//
// in numbers of 32 bits.

// sizeBytes is what a worker announces the length of its edges with.
const sizeBytes = 8

// inEdges is the message of this worker's edges.
func inEdges(w *exchange.Worker) []byte {
	in := w.Part.In
	b := make([]byte, 0, 4*(in.Nodes()+len(in.Indices)+len(in.Weights)))
	for v := range in.Nodes() {
		b = binary.LittleEndian.AppendUint32(b, uint32(in.Indptr[v+1]-in.Indptr[v]))
	}
	for _, u := range in.Indices {
		b = binary.LittleEndian.AppendUint32(b, w.Global(u))
	}
	b, _ = binary.Append(b, binary.LittleEndian, in.Weights)
	return b
}

// wholeGraph is the edges of all workers. A dry run has as many edges, which mean nothing.
func wholeGraph(w *exchange.Worker, mine []byte) (*graph.CSR, error) {
	if w.MemoryOnly {
		return sameSize(w), nil
	}
	out := make([][]byte, w.End.Size())
	for q := range out {
		out[q] = mine
	}
	all, err := exchange.NewSetup(w).Swap(wire.Topology, out)
	if err != nil {
		return nil, err
	}
	g := &graph.CSR{Indptr: make([]int64, 1, w.Part.Book.Nodes+1), Indices: make([]uint32, 0, w.Part.Book.Edges)}
	if w.Part.Book.Weighted {
		g.Weights = make([]float32, 0, w.Part.Book.Edges)
	}
	for q, b := range all {
		if err := appendEdges(g, exchange.NewReader(b), int(w.Part.Book.Size(q)), w.Part.Book.Nodes); err != nil {
			return nil, fmt.Errorf("the edges of worker %d: %w", q, err)
		}
	}
	return g, nil
}

// appendEdges reads a worker's message.
func appendEdges(g *graph.CSR, r *exchange.Reader, vertices int, nodes int64) error {
	edges := 0
	for _, degree := range r.Numbers(vertices) {
		edges += int(degree)
		g.Indptr = append(g.Indptr, g.Indptr[len(g.Indptr)-1]+int64(degree))
	}
	sources := r.Numbers(edges)
	r.Below("vertex", nodes, sources...)
	g.Indices = append(g.Indices, sources...)
	if g.Weights != nil {
		g.Weights = append(g.Weights, r.Floats(edges)...)
	}
	return r.Err()
}

// sameSize is a graph with as many vertices and edges as the whole one, for a dry run.
func sameSize(w *exchange.Worker) *graph.CSR {
	b := w.Part.Book
	g := &graph.CSR{Indptr: make([]int64, b.Nodes+1), Indices: make([]uint32, b.Edges)}
	if b.Weighted {
		g.Weights = make([]float32, b.Edges)
	}
	for v := range b.Nodes {
		g.Indptr[v+1] = b.Edges * (v + 1) / b.Nodes
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			g.Indices[e] = uint32((v + 1) % b.Nodes)
		}
	}
	return g
}
