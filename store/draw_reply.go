package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/graph"
	"starling/partition"
	"starling/sample"
)

// The reply to a request to draw has these lists one after the other, of numbers of 4 bytes; degrees of a graph with
// weights have 8:
//
//	of each vertex        edges; degree; what its edges count, unless all edges were taken
//	of each seed vertex   id; degree without loops
//	of each source        (first how many there are) number; id; degree without loops
//	of each edge          place of its source; weight, if edges have one; features; what walks counted, if asked for;
//	                      its relation in a typed graph, of 1 byte, or 2 where there are more than 256
//
// Of a typed graph there are neither degrees nor what edges count.

// drawn is what the vertices of one part drew: their edges come from sources that are
// described once each.
type drawn struct {
	sample.Block           // its Indices are places in the lists below, or local numbers of from
	from         *Owner    // that drew here, in place; nil: sources are described
	number       []uint32  // of a source, in the partition
	id           []uint32  // in the dataset
	noLoops      []float64 // its degree without loops, by weight
	all          []float64 // of a destination: its degree, by weight
	own          []uint32  // of a destination: its id; only of seed vertices
	ownNoLoops   []float64 // and its degree without loops
	features     []float32 // of edges
	apart        []int32   // of edges, what walks counted
	seen         rowTable  // of sources
}

// draw fills d with the edges that some vertices of the part draw, never an edge of without: place
// of a vertex and local number of a source, ascending.
func (o *Owner) draw(d *drawn, local []uint32, q *query, without []excludedEdge) {
	if q.times != nil {
		o.drawAsOf(d, local, q)
	} else {
		o.drawAny(d, local, q, without)
	}
	d.from = o
	d.number, d.id, d.noLoops, d.features = d.number[:0], d.id[:0], d.noLoops[:0], d.features[:0]
	d.own, d.ownNoLoops, d.apart = d.own[:0], d.ownNoLoops[:0], d.apart[:0]
	if q.only != nil {
		o.filter(d, local, q)
	}
	for _, v := range local {
		if q.times == nil {
			d.all = append(d.all, o.degree(v))
		}
		if q.seeds {
			d.own, d.ownNoLoops = append(d.own, o.part.IDs[v]), append(d.ownNoLoops, o.part.GCNDegree(v))
		}
	}
	for _, e := range d.Places {
		d.features = append(d.features, o.part.In.EdgeRows(int64(e), int64(e)+1)...)
	}
}

// drawAny draws from all edges but those that are left out.
func (o *Owner) drawAny(d *drawn, local []uint32, q *query, without []excludedEdge) {
	drawer := o.drawers.Get().(*sample.Drawer)
	var rows []uint64
	var related []sample.RelatedEdge
	if o.part.Book.Schema != nil {
		related = excludedRelated(without)
	} else {
		rows = excludedRows(without)
	}
	drawer.ByRelation(q.fanouts, related)
	drawer.Draw(&d.Block, local, q.fanout, q.key, rows, q.guide)
	o.drawers.Put(drawer)
	d.all = d.all[:0]
}

// describe lists the sources of a draw, each once, for a worker that does not have the part.
func (o *Owner) describe(d *drawn) {
	d.from = nil
	d.seen.begin()
	for k, u := range d.Indices {
		at, longer := d.seen.add(d.number, u)
		if len(longer) > len(d.number) {
			d.id, d.noLoops = append(d.id, o.part.IDs[u]), append(d.noLoops, o.part.GCNDegree(u))
		}
		d.number, d.Indices[k] = longer, at
	}
	for i, u := range d.number {
		d.number[i] = o.number(u)
	}
}

// source is the number of an edge's source.
func (d *drawn) source(at uint32) uint32 {
	if d.from != nil {
		return d.from.number(at)
	}
	return d.number[at]
}

// about is the id of an edge's source and its degree without loops.
func (d *drawn) about(at uint32) (id uint32, noLoops float64) {
	if d.from != nil {
		return d.from.part.IDs[at], d.from.part.GCNDegree(at)
	}
	return d.id[at], d.noLoops[at]
}

// appendTo appends the edges that vertex k drew to a block, and their features, of dim numbers each. row is the row of
// a source in the block.
func (d *drawn) appendTo(x *sample.Block, features []float32, k, dim int, row func(source uint32) uint32) []float32 {
	lo, hi := d.Indptr[k], d.Indptr[k+1]
	for _, at := range d.Indices[lo:hi] {
		x.Indices = append(x.Indices, row(at))
	}
	if len(d.Weights) > 0 {
		x.Weights = append(x.Weights, d.Weights[lo:hi]...)
	}
	if len(d.RowWeights) > 0 {
		x.RowWeights = append(x.RowWeights, d.RowWeights[k])
	}
	if len(d.Relations) > 0 {
		x.Relations = append(x.Relations, d.Relations[lo:hi]...)
	}
	x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	return append(features, d.features[int(lo)*dim:int(hi)*dim]...)
}

// degree is a vertex's in the whole graph, by weight.
func (o *Owner) degree(local uint32) float64 {
	if o.degrees != nil {
		return o.degrees[local]
	}
	return float64(o.part.Degrees[local])
}

// mostDrawn is the number of edges that any request may draw, also at a small part.
const mostDrawn = 1 << 20

// checkEdges refuses a request to draw several times the edges that there are, which no worker makes.
func (o *Owner) checkEdges(local []uint32, q *query) error {
	most, edges := max(4*o.part.In.Edges(), mostDrawn), int64(0)
	fanout := q.allFanouts(o.part.Book.Schema)
	if o.replace {
		most = max(most, maxResponse/16)
	}
	for _, v := range local {
		degree := o.part.In.Indptr[v+1] - o.part.In.Indptr[v]
		if fanout != sample.All && (o.replace && degree > 0 || degree > fanout) {
			degree = fanout
		}
		if edges += degree; edges > most {
			return fmt.Errorf("more than %d edges of %d vertices at once", most, len(local))
		}
	}
	return nil
}

// filter leaves the edges of a draw that have the sources of a query.
func (o *Owner) filter(d *drawn, local []uint32, q *query) {
	n, begin, weighted := 0, d.Indptr[0], len(d.Weights) > 0
	for i, v := range local {
		end := d.Indptr[i+1]
		for k := begin; k < end; k++ {
			if !q.may(o.number(d.Indices[k])) {
				continue
			}
			d.Indices[n] = d.Indices[k]
			if len(d.Places) > 0 {
				d.Places[n] = d.Places[k]
			}
			if weighted {
				d.Weights[n] = d.Weights[k]
			}
			if len(d.Relations) > 0 {
				d.Relations[n] = d.Relations[k]
			}
			if q.counted {
				d.apart = append(d.apart, o.counts.of(o.part, v, k-begin))
			}
			n++
		}
		begin, d.Indptr[i+1] = end, int64(n)
	}
	d.Indices, d.Places = d.Indices[:n], d.Places[:min(n, len(d.Places))]
	d.Weights, d.Relations = d.Weights[:min(n, len(d.Weights))], d.Relations[:min(n, len(d.Relations))]
}

// encodedBytes is the length of what encode appends.
func (d *drawn) encodedBytes(weighted bool) int {
	degree := 4
	if weighted {
		degree = 8
	}
	lists := d.Dst + len(d.RowWeights) + len(d.own) + 1 + 2*len(d.number) + len(d.Indices) + len(d.Weights) +
		len(d.features) + len(d.apart)
	return 4*lists + degree*(len(d.all)+len(d.ownNoLoops)+len(d.noLoops))
}

func (d *drawn) encode(b []byte, weighted bool) []byte {
	put := binary.LittleEndian
	for i := range d.Dst {
		b = put.AppendUint32(b, uint32(d.Indptr[i+1]-d.Indptr[i]))
	}
	b = appendDegrees(b, d.all, weighted)
	b = append(b, bytesOf(d.RowWeights)...)
	b = append(b, bytesOf(d.own)...)
	b = appendDegrees(b, d.ownNoLoops, weighted)
	b = put.AppendUint32(b, uint32(len(d.number)))
	b = append(append(b, bytesOf(d.number)...), bytesOf(d.id)...)
	b = appendDegrees(b, d.noLoops, weighted)
	b = append(append(b, bytesOf(d.Indices)...), bytesOf(d.Weights)...)
	return append(append(b, bytesOf(d.features)...), bytesOf(d.apart)...)
}

func appendDegrees(b []byte, degrees []float64, weighted bool) []byte {
	for _, x := range degrees {
		if weighted {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(x))
		}
	}
	return b
}

// decode reads a response about n vertices. What does not fit is refused: it may come from
// another build.
func (d *drawn) decode(b []byte, n int, shape drawShape) error {
	r := reader{b: b}
	d.Block = sample.Block{Dst: n, Indptr: append(d.Indptr[:0], 0)}
	d.from, d.own, d.ownNoLoops = nil, nil, nil
	edges := int64(0)
	for _, c := range r.numbers(n) {
		edges += int64(c)
		d.Indptr = append(d.Indptr, edges)
	}
	d.all = shape.degrees(&r, n)
	if shape.fanout != sample.All && shape.book == nil {
		d.RowWeights = r.floats(n)
	}
	if shape.seeds {
		d.own, d.ownNoLoops = r.numbers(n), shape.degrees(&r, n)
	}
	sources := int(r.one())
	d.number, d.id = r.numbers(sources), r.numbers(sources)
	d.noLoops = shape.degrees(&r, len(d.id))
	d.Indices = r.numbers(int(edges))
	if shape.weights {
		d.Weights = r.floats(len(d.Indices))
	}
	d.features = r.floats(len(d.Indices) * shape.edgeDim)
	if shape.counted {
		d.apart = r.counts(len(d.Indices))
	}
	if shape.book != nil {
		d.Relations = r.relations(len(d.Indices), len(shape.book.Schema.Relations))
	}
	if r.short || len(r.b) > 0 {
		return fmt.Errorf("%d bytes for the draws of %d vertices, which is not what they take", len(b), n)
	}
	if i := slices.IndexFunc(d.Indices, func(at uint32) bool { return int(at) >= sources }); i >= 0 {
		return fmt.Errorf("source %d of %d", d.Indices[i], sources)
	}
	return d.check(shape.nodes)
}

// check refuses vertices that a graph does not have, and degrees that none has.
func (d *drawn) check(nodes int64) error {
	for _, list := range [][]uint32{d.number, d.id, d.own} {
		if err := below(list, nodes); err != nil {
			return err
		}
	}
	for _, list := range [][]float64{d.all, d.noLoops, d.ownNoLoops} {
		if err := amounts(list); err != nil {
			return err
		}
	}
	return nil
}

// most is the length of the longest reply about n vertices of a graph with some edges.
func (s *drawShape) most(n int, edges int64) int {
	var schema *graph.Schema
	if s.book != nil {
		schema = s.book.Schema
	}
	if fanout := s.allFanouts(schema); fanout != sample.All {
		edges = int64(n) * fanout
	}
	const vertex, source, noted = 4 + 8 + 4 + 4 + 8, 4 + 4 + 8, 4 + 4 + 4 + 2 // noted: place, weight, count, relation
	return int(min(4+int64(n)*vertex+edges*(source+noted+4*int64(s.edgeDim)), maxResponse))
}

// degrees are the next n; of a typed graph zeros, since layers by relation do not look at them.
func (s *drawShape) degrees(r *reader, n int) []float64 {
	if s.book != nil {
		return make([]float64, n)
	}
	return r.degrees(n, s.weighted)
}

// drawShape is what the lists of a response depend on.
type drawShape struct {
	*query
	edgeDim           int
	weighted, weights bool // degrees are by weight; edges have weights
	nodes             int64
	book              *partition.Book // of a typed graph; nil: it has no types
}
