package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"starling/coflow"
	"starling/graph"
	"starling/partition"
	"starling/sample"
)

// In-edges of vertices of other hosts that batches draw from often are kept, so that these draw without a trip to their
// owner. A vertex draws by its id and by its in-edges in the dataset's order, so that it draws here what it draws there:
//
//	CountDraws   batches are drawn, and it is counted what replies about each vertex take
//	KeepEdges    owners send all in-edges of the vertices for which that saves most, as if these drew all

// kept is what is kept: an owner whose rows are the vertices that draw, and whose other vertices are their sources.
type kept struct {
	o     *Owner
	at    places // of vertices, by number
	rows  int32
	bytes int64
}

// row is the row of a vertex; -1: its edges are not kept.
func (k *kept) row(v uint32) int32 {
	if x := k.at.find(v); x < k.rows {
		return x
	}
	return -1
}

// keptFor is what draws of a query are drawn from before owners are asked; nil: nothing. Masks, times and counts of
// walks are with owners.
func (s *Store) keptFor(q *query) *kept {
	if !q.byRows() {
		return nil
	}
	return s.kept
}

// byRows reports whether draws depend on the in-edges of vertices alone.
func (q *query) byRows() bool { return q.masks == 0 && q.times == nil && !q.counted }

// KeptEdges is of how many vertices of other hosts in-edges are kept, and what memory they take.
func (s *Store) KeptEdges() (vertices int, bytes int64) {
	if s.kept == nil {
		return 0, 0
	}
	return int(s.kept.rows), s.kept.bytes
}

// drawCounts are of draws of vertices of other hosts: all, and those that needed no trip.
type drawCounts struct{ remote, kept atomic.Int64 }

// Draws is how often vertices of other hosts drew edges, and how often from edges that are kept.
func (s *Store) Draws() (remote, kept int64) { return s.drew.remote.Load(), s.drew.kept.Load() }

// counts are what replies took, by vertex.
type drawnCounts struct {
	sync.Mutex
	at     places
	list   []drawnCount
	typed  bool
	weighs bool
}

type drawnCount struct {
	vertex uint32
	degree int64 // at least
	bytes  float64
}

// CountDraws has it counted what draws of vertices of other hosts take, until KeepEdges.
func (s *Store) CountDraws() {
	s.counting = &drawnCounts{at: newPlaces(), typed: s.Book.Schema != nil, weighs: s.Book.Weighted}
}

// add counts a reply about the vertices at some places.
func (c *drawnCounts) add(d *drawn, numbers, places []uint32, shape *drawShape) {
	c.Lock()
	defer c.Unlock()
	each := shape.edgeBytes(float64(len(d.number)) / float64(max(1, len(d.Indices))))
	for k, i := range places {
		v, edges := numbers[i], d.Indptr[k+1]-d.Indptr[k]
		x := c.at.find(v)
		if x < 0 {
			x = int32(len(c.list))
			c.at.put(v, x)
			c.list = append(c.list, drawnCount{vertex: v})
		}
		n := &c.list[x]
		n.bytes += drawnVertex + float64(edges)*each
		if n.degree = max(n.degree, edges); !c.typed && !c.weighs {
			n.degree = int64(d.all[k])
		}
	}
}

// drawnVertex is about what a vertex takes in a request and its reply beside its edges.
const drawnVertex = 16

// edgeBytes is about what an edge takes in a reply where each has some sources of its own.
func (s *drawShape) edgeBytes(sources float64) float64 {
	n := 4 + 4*float64(s.edgeDim) + 12*sources
	if s.weighted {
		n += 4
	}
	return n
}

// Memory of what is kept: of a vertex that draws beside its edges, and of any with its place in a hash table.
const (
	keptRow    = 8 + 8
	keptVertex = 4 + 4 + 8 + 32
)

func (s *Store) keptEdge() int64 {
	n := int64(4 + 4*s.Part.In.EdgeDim)
	if s.Book.Weighted {
		n += 4
	}
	if s.Book.Schema != nil {
		n += 2
	}
	return n
}

// KeepOptions say which edges are kept.
type KeepOptions struct {
	Bytes []int64 // of memory, at most: one of these
	// Beside is how many bytes batches take for other things if some memory is not theirs; nil: the same.
	Beside func(bytes int64) float64
	Times  float64 // as many draws come as were counted
	Draws  Options
}

// KeepEdges keeps the in-edges of the vertices of other hosts for which that saves most bytes by memory, as those drew
// since CountDraws, where it saves more than it takes to bring them. No batch may be under way.
func (s *Store) KeepEdges(ctx context.Context, o KeepOptions) error {
	c, k := s.counting, s.newKeeping()
	if s.counting = nil; c == nil {
		return nil
	}
	list, most := c.worth(s, &o)
	w := newDraws(s, o.Draws)
	id := coflow.ID{Type: coflow.Inputs}
	// Each piece has about what there is memory for, as the one before tells.
	for len(list) > 0 {
		n := min(len(list), mostKept, int(float64(most-k.bytes())/k.mean()))
		if n <= 0 {
			break
		}
		piece := list[:n]
		q := &query{fanout: sample.All, seeds: true, typed: c.typed}
		if err := w.fetch(ctx, id, piece, q); err != nil {
			return err
		}
		full := false
		w.each(piece, func(i int, d *drawn, at int) {
			if !k.add(d, at, piece[i], most) {
				full = true
			}
		})
		if list = list[n:]; full {
			break
		}
	}
	return s.keep(k, o.Draws)
}

// mostKept is of how many vertices edges are asked for at once.
const mostKept = 1 << 13

// worth are the vertices whose edges are worth what it takes to bring them, the best first, and the memory with which
// batches take fewest bytes.
func (c *drawnCounts) worth(s *Store, o *KeepOptions) (list []uint32, memory int64) {
	edge := float64(s.keptEdge())
	cost := func(n drawnCount) float64 { return drawnVertex + float64(n.degree)*(edge+keptSource) }
	// About half of an edge's sources are known already.
	takes := func(n drawnCount) float64 { return keptRow + keptVertex + float64(n.degree)*(edge+keptVertex/2) }
	all := slices.DeleteFunc(c.list, func(n drawnCount) bool { return n.bytes*o.Times <= cost(n) })
	slices.SortFunc(all, func(a, b drawnCount) int {
		return cmp.Or(cmp.Compare(b.bytes*takes(a), a.bytes*takes(b)), cmp.Compare(a.vertex, b.vertex))
	})
	least := math.Inf(1)
	for _, most := range o.Bytes {
		sum, left := 0.0, float64(most)
		if o.Beside != nil {
			sum = o.Beside(most)
		}
		for _, n := range all {
			if left -= takes(n); left < 0 {
				break
			}
			sum -= n.bytes - cost(n)/o.Times
		}
		if sum < least {
			memory, least = most, sum
		}
	}
	for _, n := range all {
		list = append(list, n.vertex)
	}
	return list, memory
}

// keptSource is what a source takes in a reply.
const keptSource = 12

// keeping gathers edges: vertices are numbered as they are met.
type keeping struct {
	in      graph.CSR
	rows    []uint32 // places of the vertices that draw
	all     []float64
	numbers []uint32
	ids     []uint32
	noLoops []float64
	at      places
	edge    int64
}

func (s *Store) newKeeping() *keeping {
	return &keeping{in: graph.CSR{Indptr: []int64{0}, EdgeDim: s.Part.In.EdgeDim}, at: newPlaces(), edge: s.keptEdge()}
}

func (k *keeping) bytesOf(rows, vertices, edges int) int64 {
	return int64(rows)*keptRow + int64(vertices)*keptVertex + int64(edges)*k.edge
}

func (k *keeping) bytes() int64 { return k.bytesOf(len(k.rows), len(k.numbers), len(k.in.Indices)) }

// mean is about the memory of a vertex that draws.
func (k *keeping) mean() float64 {
	if len(k.rows) == 0 {
		return keptRow + 4*keptVertex
	}
	return float64(k.bytes()) / float64(len(k.rows))
}

// add keeps what a vertex drew, all its edges, unless there is no memory.
func (k *keeping) add(d *drawn, at int, number uint32, most int64) bool {
	lo, hi := d.Indptr[at], d.Indptr[at+1]
	edges := int(hi - lo)
	if k.bytesOf(len(k.rows)+1, len(k.numbers)+1+edges, len(k.in.Indices)+edges) > most {
		return false
	}
	k.rows = append(k.rows, uint32(k.vertex(number, d.own[at], d.ownNoLoops[at])))
	k.all = append(k.all, d.all[at])
	for _, source := range d.Indices[lo:hi] {
		id, noLoops := d.about(source)
		k.in.Indices = append(k.in.Indices, uint32(k.vertex(d.source(source), id, noLoops)))
	}
	if len(d.Weights) > 0 {
		k.in.Weights = append(k.in.Weights, d.Weights[lo:hi]...)
	}
	if len(d.Relations) > 0 {
		k.in.Relations = append(k.in.Relations, d.Relations[lo:hi]...)
	}
	dim := int64(k.in.EdgeDim)
	k.in.EdgeFeatures = append(k.in.EdgeFeatures, d.features[lo*dim:hi*dim]...)
	k.in.Indptr = append(k.in.Indptr, int64(len(k.in.Indices)))
	return true
}

// vertex is the place of a vertex.
func (k *keeping) vertex(number, id uint32, noLoops float64) int32 {
	if x := k.at.find(number); x >= 0 {
		return x
	}
	x := int32(len(k.numbers))
	k.at.put(number, x)
	k.numbers, k.ids, k.noLoops = append(k.numbers, number), append(k.ids, id), append(k.noLoops, noLoops)
	return x
}

// keep makes an owner of what was gathered, whose rows are first, and has draws draw from it.
func (s *Store) keep(k *keeping, opt Options) error {
	if len(k.rows) == 0 {
		return nil
	}
	n := len(k.numbers)
	place, p := slices.Repeat([]int32{-1}, n), &partition.Part{Book: s.Book, IDs: make([]uint32, n),
		GCNDegrees: make([]float64, n)}
	o, next := &Owner{part: p, degrees: k.all, replace: opt.Replace, numbers: make([]uint32, n)}, int32(len(k.rows))
	for r, x := range k.rows {
		place[x] = int32(r)
	}
	for x := range place {
		if place[x] < 0 {
			place[x], next = next, next+1
		}
		at := place[x]
		p.IDs[at], p.GCNDegrees[at], o.numbers[at] = k.ids[x], k.noLoops[x], k.numbers[x]
		k.at.set(k.numbers[x], at)
	}
	p.In = &graph.CSR{Indptr: slices.Clone(k.in.Indptr), Indices: make([]uint32, len(k.in.Indices)),
		Weights: slices.Clone(k.in.Weights), Relations: slices.Clone(k.in.Relations),
		EdgeFeatures: slices.Clone(k.in.EdgeFeatures), EdgeDim: k.in.EdgeDim}
	for e, x := range k.in.Indices {
		p.In.Indices[e] = uint32(place[x])
	}
	if s.Book.Weighted && p.In.Weights == nil {
		p.In.Weights = []float32{} // none of them has an edge
	}
	p.Meta.Core = int64(len(k.rows))
	o.drawBy(&sample.Neighbour{Graph: p.In, IDs: p.IDs, Replace: opt.Replace, Weighted: opt.Weighted}, s.Book.Schema)
	s.kept = &kept{o: o, at: k.at, rows: int32(len(k.rows)), bytes: k.bytes()}
	o.at = &s.kept.at
	return nil
}
