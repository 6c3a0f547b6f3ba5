package batch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/exchange"
	"starling/graph"
	"starling/partition"
	"starling/wire"
)

// Reduced is a worker's part with some of its edges, which alone are drawn and count in degrees:
// those from local vertex u to v that keep says. Vertices, halo and rows to send are as before, so
// that numbers are too. Rows are drawn from in the dataset's order, or by ascending id of sources,
// equal ones in the dataset's order. All workers call it.
func Reduced(s *exchange.Setup, keep func(u, v uint32) bool, byID bool) (*partition.Part, error) {
	old := s.W.Part
	p := *old
	p.In = &graph.CSR{Indptr: []int64{0}, EdgeDim: old.In.EdgeDim}
	if old.In.Weights != nil {
		p.In.Weights = []float32{} // no edge may stay, and yet the graph has weights
	}
	p.DatasetOrder, p.Degrees = &graph.RowOrder{}, slices.Clone(old.Degrees)
	p.GCNDegrees = make([]float64, len(old.Degrees))
	var place []uint32 // of a row's entries among those that stay
	for v := range uint32(p.Core()) {
		place = keepRow(&p, old, v, keep, place[:0])
		p.Degrees[v] = uint32(p.In.Degree(v))
		orderRow(&p, old, v, place, byID)
	}
	return &p, haloDegrees(s, &p)
}

const dropped = math.MaxUint32

// keepRow appends the edges of a row that stay, and their places in the new row, or dropped.
func keepRow(p, old *partition.Part, v uint32, keep func(u, v uint32) bool, place []uint32) []uint32 {
	in, kept := p.In, uint32(0)
	for e := old.In.Indptr[v]; e < old.In.Indptr[v+1]; e++ {
		u, w := old.In.Indices[e], 1.0
		if !keep(u, v) {
			place = append(place, dropped)
			continue
		}
		place = append(place, kept)
		kept++
		in.Indices = append(in.Indices, u)
		if old.In.Weights != nil {
			in.Weights = append(in.Weights, old.In.Weights[e])
			w = float64(old.In.Weights[e])
		}
		in.EdgeFeatures = append(in.EdgeFeatures, old.In.EdgeRows(e, e+1)...)
		if u != v {
			p.GCNDegrees[v] += w
		}
	}
	in.Indptr = append(in.Indptr, int64(len(in.Indices)))
	return place
}

// orderRow appends the order that a row is drawn from in.
func orderRow(p, old *partition.Part, v uint32, place []uint32, byID bool) {
	order, lo := p.DatasetOrder, old.In.Indptr[v]
	from := len(order.U32)
	for k := range place {
		if to := place[old.DatasetOrder.At(lo+int64(k))]; to != dropped {
			order.U32 = append(order.U32, to)
		}
	}
	if byID {
		row := p.In.Neighbors(v)
		slices.SortStableFunc(order.U32[from:], func(a, b uint32) int {
			return cmp.Compare(p.IDs[row[a]], p.IDs[row[b]])
		})
	}
}

// haloDegrees learns the degrees of halo vertices from their owners.
func haloDegrees(s *exchange.Setup, p *partition.Part) error {
	out := make([][]byte, s.W.End.Size())
	for q := range out {
		for _, v := range p.SendTo(q) {
			out[q] = binary.LittleEndian.AppendUint32(out[q], p.Degrees[v])
			out[q] = binary.LittleEndian.AppendUint64(out[q], math.Float64bits(p.GCNDegrees[v]))
		}
	}
	in, err := s.Swap(wire.Topology, out)
	if err != nil {
		return err
	}
	for q, b := range in {
		halo := p.HaloOf(q)
		if len(b) != 12*len(halo) {
			return fmt.Errorf("worker %d tells %d degrees in %d bytes", q, len(halo), len(b))
		}
		at := p.Core() + int(p.HaloPtr[q])
		for i := range halo {
			p.Degrees[at+i] = binary.LittleEndian.Uint32(b[12*i:])
			p.GCNDegrees[at+i] = math.Float64frombits(binary.LittleEndian.Uint64(b[12*i+4:]))
		}
	}
	return nil
}
