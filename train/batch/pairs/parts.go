package pairs

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/exchange"
	"starling/partition"
	"starling/sample"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// Link prediction where no worker has the whole graph: the pairs are sample.HoldOut's, each of which
// belongs to the worker that owns the vertex whose row of in-edges HoldOut finds it in.
//
//	arcs       workers tell the owners of their remote neighbours about the edges between them,
//	           so that an owner knows all edges of its vertices in both directions
//	vertices   all workers learn the id and the degree of every vertex, and how many pairs
//	           its row has, and so the position of their pairs in the list of one worker

// arc is an edge, with its repeats, from a vertex of this worker; by numbers in the partition.
type arc struct {
	from, to uint32
	weight   float64
}

// vertexTable is what all workers know of all vertices, by number in the partition.
type vertexTable struct {
	ids     []uint32
	numbers []uint32 // by id
	degrees []uint32 // in-edges that are not held out
	pairs   [3][]uint32
}

// ownPairs are the pairs of a set that belong to this worker: the end with the smaller id first.
type ownPairs struct {
	u, v   []uint32 // numbers in the partition
	index  []uint32 // position in the list of one worker
	uv, vu []float64
	of     []uint32 // local vertices whose rows they are in
}

// linkParts is a worker's share of the pairs.
type linkParts struct {
	rank     int
	part     *partition.Part // without edges that are held out
	sets     sample.EdgeSets
	vertices vertexTable
	pairs    [3]ownPairs
	adjacent struct { // ids of vertices that own ones have edges with, in any direction
		ptr []int64
		ids []uint32
	}
}

// newLinkParts divides the edges of all workers' parts into sets.
func newLinkParts(s *exchange.Setup, o *train.PairOptions) (*linkParts, error) {
	l := &linkParts{rank: s.W.End.Rank(), part: s.W.Part, sets: o.Sets(s.W.Seed)}
	arcs, err := tellArcs(s)
	if err != nil {
		return nil, err
	}
	p := s.W.Part
	if o.Walks == 0 {
		l.findPairs(p, arcs)
		if l.part, err = l.withoutHeldOut(s); err != nil {
			return nil, err
		}
	}
	if err := l.tellVertices(s); err != nil {
		return nil, err
	}
	l.findAdjacent(p, arcs)
	return l, nil
}

// inEdge is the edges from one vertex to another, with their repeats.
type inEdge struct {
	id, local uint32
	weight    float64
}

// inEdges are the in-edges of a vertex except its loops, by ascending id.
func inEdges(p *partition.Part, v uint32, to []inEdge) []inEdge {
	to = to[:0]
	for e := p.In.Indptr[v]; e < p.In.Indptr[v+1]; e++ {
		w := 1.0
		if p.In.Weights != nil {
			w = float64(p.In.Weights[e])
		}
		if u := p.In.Indices[e]; u != v {
			to = append(to, inEdge{p.IDs[u], u, w})
		}
	}
	slices.SortStableFunc(to, func(a, b inEdge) int { return cmp.Compare(a.id, b.id) })
	last := 0
	for i := 1; i < len(to); i++ {
		if to[i].id == to[last].id {
			to[last].weight += to[i].weight
			continue
		}
		last++
		to[last] = to[i]
	}
	return to[:min(len(to), last+1)]
}

// tellArcs are the edges from this worker's vertices, ascending, as the owners of their other
// ends have them.
func tellArcs(s *exchange.Setup) ([]arc, error) {
	p, out := s.W.Part, make([][]byte, s.W.End.Size())
	var row []inEdge
	for v := range uint32(p.Core()) {
		row = inEdges(p, v, row)
		for _, u := range row {
			from := s.W.Global(u.local)
			q := p.Book.Owner(from)
			out[q] = binary.LittleEndian.AppendUint32(out[q], from)
			out[q] = binary.LittleEndian.AppendUint32(out[q], s.W.Global(v))
			out[q] = binary.LittleEndian.AppendUint64(out[q], math.Float64bits(u.weight))
		}
	}
	in, err := s.Swap(wire.Topology, out)
	if err != nil {
		return nil, err
	}
	var arcs []arc
	for q, b := range in {
		if len(b)%16 != 0 {
			return nil, fmt.Errorf("worker %d tells of edges in %d bytes", q, len(b))
		}
		for x := range slices.Chunk(b, 16) {
			arcs = append(arcs, arc{binary.LittleEndian.Uint32(x), binary.LittleEndian.Uint32(x[4:]),
				math.Float64frombits(binary.LittleEndian.Uint64(x[8:]))})
		}
	}
	slices.SortFunc(arcs, byEnds)
	return arcs, nil
}

func byEnds(a, b arc) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }

// findPairs finds the pairs of all sets in this worker's rows. Two vertices with edges in both
// directions are found in the row of the one with the larger id.
func (l *linkParts) findPairs(p *partition.Part, arcs []arc) {
	first := uint32(p.Book.Offsets[p.Meta.Part])
	number := func(local uint32) uint32 {
		if core := uint32(p.Core()); local >= core {
			return p.Halo[local-core]
		}
		return first + local
	}
	var row []inEdge
	for v := range uint32(p.Core()) {
		row = inEdges(p, v, row)
		for _, u := range row {
			back, linked := slices.BinarySearchFunc(arcs, arc{from: first + v, to: number(u.local)}, byEnds)
			if u.id > p.IDs[v] && linked {
				continue
			}
			weight := 0.0
			if linked {
				weight = arcs[back].weight
			}
			l.pairs[l.sets.Of(u.id, p.IDs[v])].add(number(u.local), first+v, u.weight, weight, u.id < p.IDs[v], v)
		}
	}
}

// add adds the pair of u and v, which has edges of these weights from u and back.
func (o *ownPairs) add(u, v uint32, uv, vu float64, smaller bool, row uint32) {
	if !smaller {
		u, v, uv, vu = v, u, vu, uv
	}
	o.u, o.v, o.uv, o.vu, o.of = append(o.u, u), append(o.v, v), append(o.uv, uv), append(o.vu, vu), append(o.of, row)
}

// perVertex is the bytes that all workers are told of a vertex.
const perVertex = 20

// tellVertices tells all workers of this one's vertices, and learns of theirs.
func (l *linkParts) tellVertices(s *exchange.Setup) error {
	p := l.part
	count := [3][]uint32{}
	for set := range count {
		count[set] = make([]uint32, p.Core())
		for _, v := range l.pairs[set].of {
			count[set][v]++
		}
	}
	var mine []byte
	for v := range uint32(p.Core()) {
		for _, x := range []uint32{p.IDs[v], uint32(p.In.Degree(v)), count[0][v], count[1][v], count[2][v]} {
			mine = binary.LittleEndian.AppendUint32(mine, x)
		}
	}
	lists, err := s.TellServer(0, s.W.End.Size(), mine)
	if err != nil {
		return err
	}
	t := &l.vertices
	for q, b := range lists {
		if int64(len(b)) != perVertex*p.Book.Size(q) {
			return fmt.Errorf("worker %d tells of its vertices in %d bytes; do all workers have parts of the same "+
				"partition?", q, len(b))
		}
		for x := range slices.Chunk(exchange.Numbers(b), perVertex/4) {
			t.ids, t.degrees = append(t.ids, x[0]), append(t.degrees, x[1])
			for set := range t.pairs {
				t.pairs[set] = append(t.pairs[set], x[2+set])
			}
		}
	}
	t.numbers = make([]uint32, len(t.ids))
	for n, id := range t.ids {
		if int(id) >= len(t.ids) {
			return fmt.Errorf("vertex %d of %d", id, len(t.ids))
		}
		t.numbers[id] = uint32(n)
	}
	l.numberPairs()
	return nil
}

// numberPairs gives this worker's pairs their positions in the list of one worker, which goes
// through rows by ascending id.
func (l *linkParts) numberPairs() {
	t, first := &l.vertices, uint32(l.part.Book.Offsets[l.rank])
	for set := range l.pairs {
		before := make([]uint32, len(t.ids)) // pairs of rows with smaller ids, by number
		at := uint32(0)
		for _, n := range t.numbers {
			before[n] = at
			at += t.pairs[set][n]
		}
		own := &l.pairs[set]
		for i, v := range own.of {
			if i > 0 && own.of[i-1] == v {
				own.index = append(own.index, own.index[i-1]+1)
			} else {
				own.index = append(own.index, before[first+v])
			}
		}
		own.of = nil
	}
}

// offsets is the placement of a set's pairs: those of worker k are offsets[k] to offsets[k+1]-1.
func (l *linkParts) offsets(set int) []int64 {
	book := l.part.Book
	out := make([]int64, book.Parts+1)
	for q := range book.Parts {
		out[q+1] = out[q]
		for _, n := range l.vertices.pairs[set][book.Offsets[q]:book.Offsets[q+1]] {
			out[q+1] += int64(n)
		}
	}
	return out
}

// order is the training pairs by their numbers in the placement, in the order of one worker.
func (l *linkParts) order() []uint32 {
	t := &l.vertices
	from := make([]uint32, len(t.ids)) // number of a row's first pair
	at := uint32(0)
	for n, pairs := range t.pairs[sample.TrainEdges] {
		from[n] = at
		at += pairs
	}
	out := make([]uint32, 0, at)
	for _, n := range t.numbers {
		for k := range t.pairs[sample.TrainEdges][n] {
			out = append(out, from[n]+k)
		}
	}
	return out
}

// findAdjacent lists what every own vertex has edges with.
func (l *linkParts) findAdjacent(p *partition.Part, arcs []arc) {
	a, first := &l.adjacent, uint32(p.Book.Offsets[l.rank])
	a.ptr = append(a.ptr, 0)
	var row []inEdge
	for v := range uint32(p.Core()) {
		row = inEdges(p, v, row)
		from := len(a.ids)
		for _, u := range row {
			a.ids = append(a.ids, u.id)
		}
		for ; len(arcs) > 0 && arcs[0].from == first+v; arcs = arcs[1:] {
			a.ids = append(a.ids, l.vertices.ids[arcs[0].to])
		}
		slices.Sort(a.ids[from:])
		a.ids = a.ids[:from+len(slices.Compact(a.ids[from:]))]
		a.ptr = append(a.ptr, int64(len(a.ids)))
	}
}

// linked reports whether there is an edge between an own vertex and one with some id, in either
// direction. trained: edges that are held out do not count.
func (l *linkParts) linked(local, id uint32, trained bool) bool {
	row := l.adjacent.ids[l.adjacent.ptr[local]:l.adjacent.ptr[local+1]]
	_, found := slices.BinarySearch(row, id)
	return found && !(trained && l.sets.Of(l.part.IDs[local], id) != sample.TrainEdges)
}

// withoutHeldOut is this worker's part without the edges that are held out, which no message
// passes over. Rows are drawn from by ascending id, as HoldOut's are.
func (l *linkParts) withoutHeldOut(s *exchange.Setup) (*partition.Part, error) {
	ids := s.W.Part.IDs
	return batch.Reduced(s, func(u, v uint32) bool { return l.sets.Of(ids[u], ids[v]) == sample.TrainEdges }, true)
}
