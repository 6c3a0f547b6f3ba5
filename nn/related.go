package nn

import (
	"fmt"

	"starling/graph"
	"starling/tensor"
)

// Related are the edges of a typed graph by relation, for layers whose weights differ by relation.
//
// The in-edges of a row are sorted by relation, so the edges of one relation are a slice of the row. A row of a type that
// k relations lead to is k rows here, one for each relation, in the order of relations: one sparse product sums over
// all relations, and its result, k rows of width w read as one of width k·w, meets the relations' weights, stacked, in one
// dense product. Backwards a source row is as many rows as relations start at its type.
type Related struct {
	// Targets are runs of rows that edges lead to, in order; Sources runs of columns that they start at.
	Targets, Sources []RelatedRun
	in, out          *tensor.Sparse
	mean             tensor.Matrix // of every row of in: one by its number of edges
	outMean          *tensor.Sparse
	back             *tensor.Sparse // see backRows
	of               *Topology
	single           []*RelationEdges
}

// RelatedRun is consecutive rows of vertices of one type.
type RelatedRun struct {
	graph.Run
	Relations []int // those that lead to the type, or start at it
	first     int   // its first row in Related.in or out
}

// rows is where rows lo to hi of the run are in Related.in or out.
func (r *RelatedRun) rows(lo, hi int) (from, to int) {
	k := len(r.Relations)
	return r.first + (lo-r.Lo)*k, r.first + (hi-r.Lo)*k
}

// clip is the part of the run that lies in rows lo to hi; ok is false if there is none.
func (r *RelatedRun) clip(lo, hi int) (from, to int, ok bool) {
	from, to = max(lo, r.Lo), min(hi, r.Hi)
	return from, to, from < to
}

// typing is what a Topology knows of types: which rows and which columns are of which type.
type typing struct {
	schema     *graph.Schema
	rows, cols []graph.Run
}

// NewTyped prepares a whole typed graph.
func NewTyped(dev tensor.Device, g *graph.CSR, s *graph.Schema) *Topology {
	t := NewTopology(dev, g)
	t.typed = &typing{s, s.AllRuns(), s.AllRuns()}
	return t
}

// SetTypes says of which types rows and columns are.
func (t *Topology) SetTypes(s *graph.Schema, rows, cols []graph.Run) {
	t.typed = &typing{s, rows, cols}
}

// Free gives back what was made of the edges.
func (x *Related) Free(dev tensor.Device) {
	dev.Free(x.mean)
	dev.Free(x.outMean.Values())
}

// related are the edges by relation, made when first asked for.
func (t *Topology) relatedEdges() *Related {
	if t.related == nil {
		t.related = t.relate()
	}
	return t.related
}

func (t *Topology) relate() *Related {
	if t.typed == nil {
		panic("nn: edges by relation of a graph without types")
	}
	s := t.typed.schema
	r := &Related{Targets: relatedRuns(t.typed.rows, s.Into), Sources: relatedRuns(t.typed.cols, s.From),
		of: t, single: make([]*RelationEdges, len(s.Relations))}
	ptr, mean := relatedRows(t.in, r.Targets)
	r.in = tensor.NewSparse(t.dev, len(ptr)-1, t.cols, ptr, t.in.Indices, nil)
	r.mean = t.dev.New(t.dev.Type(), len(mean), 1)
	t.dev.Upload(r.mean, mean)
	back, index, edge := relatedColumns(t.in, s, r)
	r.out = tensor.NewSparse(t.dev, len(back)-1, t.in.Nodes(), back, index, nil)
	values := t.dev.New(t.dev.Type(), len(edge), 1)
	t.dev.GatherRows(values, r.mean, tensor.Indices(t.dev, edge))
	r.outMean = r.out.WithValues(values)
	return r
}

// backRows leads from each column to the rows of in that its edges are in, each with the mean's factor: [columns, rows of
// in]. Entries are in the order of out's.
func (x *Related) backRows() *tensor.Sparse {
	if x.back != nil {
		return x.back
	}
	t := x.of
	ptr, _, edge := relatedColumns(t.in, t.typed.schema, x)
	starts := make([]int64, t.cols+1)
	for i := range x.Sources {
		run := &x.Sources[i]
		for u := run.Lo; u < run.Hi; u++ {
			_, end := run.rows(u, u+1)
			starts[u+1] = ptr[end]
		}
	}
	x.back = tensor.NewSparse(t.dev, t.cols, x.in.Rows, starts, edge, nil).WithValues(x.outMean.Values())
	return x.back
}

// relatedRuns gives each run its relations and its place.
func relatedRuns(runs []graph.Run, of func(t int) []int) (out []RelatedRun) {
	first := 0
	for _, run := range runs {
		list := of(run.Type)
		out = append(out, RelatedRun{run, list, first})
		first += (run.Hi - run.Lo) * len(list)
	}
	return out
}

// relatedRows is where the edges of each row and relation begin, and one by their number.
func relatedRows(g *graph.CSR, runs []RelatedRun) (ptr []int64, mean []float64) {
	n := 0
	if len(runs) > 0 {
		last := &runs[len(runs)-1]
		_, n = last.rows(last.Lo, last.Hi)
	}
	ptr, mean = make([]int64, n+1), make([]float64, n)
	for i := range runs {
		run := &runs[i]
		graph.Parallel(int64(run.Hi-run.Lo), 4096, func(lo, hi int64) {
			for v := run.Lo + int(lo); v < run.Lo+int(hi); v++ {
				splitRow(g, v, run, ptr, mean)
			}
		})
	}
	ptr[n] = g.Indptr[g.Nodes()]
	return ptr, mean
}

// splitRow cuts the edges of row v by relation.
func splitRow(g *graph.CSR, v int, run *RelatedRun, ptr []int64, mean []float64) {
	at, _ := run.rows(v, v)
	e, end := g.Indptr[v], g.Indptr[v+1]
	for k, rel := range run.Relations {
		ptr[at+k] = e
		from := e
		for e < end && int(g.Relations[e]) == rel {
			e++
		}
		if mean[at+k] = 1; e > from {
			mean[at+k] = 1 / float64(e-from)
		}
	}
	if e != end {
		panic(fmt.Sprintf("nn: row %d has edges of relation %d out of order", v, g.Relations[e]))
	}
}

// relatedColumns turns the edges round: for each column and relation that starts at its type the rows that its edges lead
// to, and for each edge its row in Related.in.
func relatedColumns(g *graph.CSR, s *graph.Schema, r *Related) (ptr []int64, index, edge []uint32) {
	slot := make([]int, len(s.Relations)) // of a relation among those of its source
	for t := range s.Types {
		for k, rel := range s.From(t) {
			slot[rel] = k
		}
	}
	base := columnPlaces(r.Sources)
	n := 0
	if len(r.Sources) > 0 {
		last := &r.Sources[len(r.Sources)-1]
		_, n = last.rows(last.Lo, last.Hi)
	}
	ptr = make([]int64, n+1)
	place := func(e int64) int { u := g.Indices[e]; return int(base[u]) + slot[g.Relations[e]] }
	for e := range g.Edges() {
		ptr[place(e)+1]++
	}
	for i := range n {
		ptr[i+1] += ptr[i]
	}
	next := append([]int64(nil), ptr[:n]...)
	index, edge = make([]uint32, g.Edges()), make([]uint32, g.Edges())
	for i := range r.Targets {
		run := &r.Targets[i]
		for v := run.Lo; v < run.Hi; v++ {
			at, _ := run.rows(v, v)
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				for int(g.Relations[e]) != run.Relations[at-run.first-(v-run.Lo)*len(run.Relations)] {
					at++
				}
				to := place(e)
				index[next[to]], edge[next[to]] = uint32(v), uint32(at)
				next[to]++
			}
		}
	}
	return ptr, index, edge
}

// columnPlaces is the first row in Related.out of every column.
func columnPlaces(runs []RelatedRun) []uint32 {
	columns := 0
	for i := range runs {
		columns = max(columns, runs[i].Hi)
	}
	base := make([]uint32, columns)
	for i := range runs {
		run := &runs[i]
		for u := run.Lo; u < run.Hi; u++ {
			at, _ := run.rows(u, u)
			base[u] = uint32(at)
		}
	}
	return base
}

// RelationEdges are the edges of one relation, between the rows that lie from the first to the last of its targets' type,
// and the columns that lie so of its sources' type.
type RelationEdges struct {
	To, From graph.Run
	In, Out  *tensor.Sparse

	columnIDs tensor.Index // of the columns, where column i is vertex i
}

// Relation are the edges of a relation, made when first asked for.
func (x *Related) Relation(r int) *RelationEdges {
	if x.single[r] == nil {
		x.single[r] = x.of.relation(r)
	}
	return x.single[r]
}

func (t *Topology) relation(r int) *RelationEdges {
	rel := &t.typed.schema.Relations[r]
	e := &RelationEdges{To: hull(t.typed.rows, rel.Target), From: hull(t.typed.cols, rel.Source)}
	ptr := make([]int64, e.To.Hi-e.To.Lo+1)
	var index []uint32
	for v := e.To.Lo; v < e.To.Hi; v++ {
		lo, hi := t.in.Relation(uint32(v), r)
		for _, u := range t.in.Indices[lo:hi] {
			index = append(index, u-uint32(e.From.Lo))
		}
		ptr[v-e.To.Lo+1] = int64(len(index))
	}
	cols := e.From.Hi - e.From.Lo
	e.In = tensor.NewSparse(t.dev, e.To.Hi-e.To.Lo, cols, ptr, index, nil)
	back, rows, perm := graph.TransposeRows(cols, ptr, index)
	e.Out = tensor.Transpose(t.dev, e.In, back, rows, perm)
	ids := make([]uint32, cols)
	for i := range ids {
		ids[i] = uint32(e.From.Lo + i)
	}
	e.columnIDs = tensor.Indices(t.dev, ids)
	return e
}

// hull is from the first row of a type to its last.
func hull(runs []graph.Run, t int) graph.Run {
	h := graph.Run{Type: t}
	for _, run := range runs {
		if run.Type != t {
			continue
		}
		if h.Hi == 0 {
			h.Lo = run.Lo
		}
		h.Hi = run.Hi
	}
	return h
}
