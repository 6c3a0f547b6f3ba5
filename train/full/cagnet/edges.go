package cagnet

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/wire"
)

// Before the first epoch a worker tells all others the degrees of its vertices, and those of its row the in-edges that
// they multiply:
//
//	in-degree of each own vertex, uint32 | that without self-loops, float64 | in a weighted graph its weights, float64
//	edges of each own vertex, uint32 | sources by their numbers in the partition, uint32 | weights, float32
//
// In-degrees are of the whole graph.

// sizeBytes is what a worker announces the length of a message with.
const sizeBytes = 8

// messages are what this worker tells each, itself too.
func (g *grid) messages() [][]byte {
	out, degrees := make([][]byte, g.w.End.Size()), g.degrees()
	for q := range out {
		if out[q] = degrees; q/g.cols == g.row {
			out[q] = append(slices.Clip(degrees), g.edges(q%g.cols)...)
		}
	}
	return out
}

func (g *grid) degrees() (b []byte) {
	p := g.w.Part
	for v := range uint32(p.Core()) {
		b = binary.LittleEndian.AppendUint32(b, p.Degrees[v])
	}
	for v := range uint32(p.Core()) {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.GCNDegree(v)))
	}
	if p.In.Weights == nil {
		return b
	}
	for v := range p.Core() {
		all := 0.0
		for _, w := range p.In.Weights[p.In.Indptr[v]:p.In.Indptr[v+1]] {
			all += float64(w)
		}
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(all))
	}
	return b
}

// edges are those that workers of a column multiply.
func (g *grid) edges(col int) []byte {
	in := g.w.Part.In
	var counts, sources, weights []byte
	for v := range in.Nodes() {
		count := uint32(0)
		for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
			u := g.w.Global(in.Indices[e])
			if !g.multiplies(col, g.w.Part.Book.Owner(u)/g.cols) {
				continue
			}
			count++
			sources = binary.LittleEndian.AppendUint32(sources, u)
			if in.Weights != nil {
				weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(in.Weights[e]))
			}
		}
		counts = binary.LittleEndian.AppendUint32(counts, count)
	}
	return append(append(counts, sources...), weights...)
}

// learn makes the blocks of what all workers tell. A dry run has as many edges, which mean nothing.
func (g *grid) learn(messages [][]byte) error {
	all := &told{cols: nn.Degrees{}, weighted: g.w.Part.Book.Weighted}
	if g.w.MemoryOnly {
		all.invent(g)
		g.divide(all)
		return nil
	}
	in, err := exchange.NewSetup(g.w).Swap(wire.Topology, messages)
	if err != nil {
		return err
	}
	for q, b := range in {
		r := exchange.NewReader(b)
		if all.take(r, int(g.partSize(q)), q/g.cols == g.row, g.w.Part.Book.Nodes); r.Err() != nil {
			return fmt.Errorf("the edges of worker %d: %w", q, r.Err())
		}
	}
	g.divide(all)
	return nil
}

// told is what workers tell: degrees of all vertices, and the edges into those of the row.
type told struct {
	cols     nn.Degrees
	weighted bool
	sums     []float64 // weights of in-edges
	counts   []uint32  // edges of the row's vertices
	sources  []uint32
	weights  []float32
}

func (a *told) take(r *exchange.Reader, vertices int, inRow bool, nodes int64) {
	for _, d := range r.Numbers(vertices) {
		a.cols.All = append(a.cols.All, float64(d))
	}
	a.cols.NoLoops = append(a.cols.NoLoops, r.Doubles(vertices)...)
	if a.weighted {
		a.sums = append(a.sums, r.Doubles(vertices)...)
	}
	if !inRow {
		return
	}
	counts, edges := r.Numbers(vertices), 0
	for _, n := range counts {
		edges += int(n)
	}
	sources := r.Numbers(edges)
	r.Below("vertex", nodes, sources...)
	a.counts, a.sources = append(a.counts, counts...), append(a.sources, sources...)
	if a.weighted {
		a.weights = append(a.weights, r.Floats(edges)...)
	}
}

// invent has as many edges into the row as it has on average.
func (a *told) invent(g *grid) {
	b := g.w.Part.Book
	a.cols.All, a.cols.NoLoops, a.sums = make([]float64, b.Nodes), make([]float64, b.Nodes), make([]float64, b.Nodes)
	first, size := g.offsets[g.row*g.cols], int64(g.size(g.row))
	edges := b.Edges * size / max(b.Nodes, 1)
	if !g.sliced {
		edges /= int64(g.cols)
	}
	var from []uint32 // vertices of the blocks that are multiplied
	for k := range g.rows {
		if g.multiplies(g.col, k) {
			for v := g.offsets[k*g.cols]; v < g.offsets[(k+1)*g.cols]; v++ {
				from = append(from, uint32(v))
			}
		}
	}
	for v := range size {
		n := edges*(v+1)/size - edges*v/size
		a.counts = append(a.counts, uint32(n))
		for e := range n {
			a.sources = append(a.sources, from[(first+v+1+e*7)%int64(len(from))])
		}
	}
	if a.weighted {
		a.weights = make([]float32, len(a.sources))
	}
}

// divide makes a graph of the edges from each block. The row's own is square, and has what vertices add of themselves.
func (g *grid) divide(a *told) {
	first, size := int(g.offsets[g.row*g.cols]), g.size(g.row)
	own := a.cols.Slice(first, first+size)
	rows := own
	if a.weighted { // a mean is over weights
		rows = &nn.Degrees{All: a.sums[first : first+size], NoLoops: own.NoLoops}
	}
	lists := make([]*graph.CSR, g.rows)
	for k := range lists {
		lists[k] = &graph.CSR{Indptr: make([]int64, 1, size+1)}
	}
	e := 0
	for _, n := range a.counts {
		for range n {
			u := a.sources[e]
			k := g.w.Part.Book.Owner(u) / g.cols
			to := lists[k]
			to.Indices = append(to.Indices, u-uint32(g.offsets[k*g.cols]))
			if a.weighted {
				to.Weights = append(to.Weights, a.weights[e])
			}
			e++
		}
		for _, to := range lists {
			to.Indptr = append(to.Indptr, int64(len(to.Indices)))
		}
	}
	g.blocks = make([]*nn.Topology, g.rows)
	for k, in := range lists {
		if !g.multiplies(g.col, k) {
			continue
		}
		at := int(g.offsets[k*g.cols])
		if a.weighted && in.Weights == nil {
			in.Weights = []float32{}
		}
		if k == g.row {
			g.blocks[k] = nn.NewPart(g.w.Dev, in, size, rows, own, true)
		} else {
			g.blocks[k] = nn.NewPart(g.w.Dev, in, g.size(k), rows, a.cols.Slice(at, at+g.size(k)), false)
		}
	}
}
