package exchange

import (
	"encoding/binary"
	"fmt"
	"math"

	"starling/coflow"
	"starling/graph"
	"starling/wire"
)

// Lookup asks the owners of vertices about them, before training: which vertex a number
// stands for and its degrees, its in-edges, its features. Vertices go by their numbers in
// the partition, ascending and each once. Every worker asks when it needs to and what it
// needs; owners answer meanwhile (see owner.go).
type Lookup struct {
	*Setup
	owner *owner
}

// NewLookup serves the worker's part to others, and asks them for theirs. Peers find each
// other by the name, which is used once in the life of an endpoint.
func NewLookup(s *Setup, name string) (*Lookup, error) { return newLookup(s, name, answerBytes) }

func newLookup(s *Setup, name string, answerBytes int) (*Lookup, error) {
	o, err := serve(s.W, name, answerBytes)
	if err != nil {
		return nil, err
	}
	return &Lookup{Setup: s, owner: o}, nil
}

// Close waits until no worker asks any more, and ends the service. What was sent in answers
// is then in Sent.
func (l *Lookup) Close() error {
	if err := l.comm.Barrier(l.W.Ctx, coflow.Preparing); err != nil {
		return err
	}
	err := l.owner.stop()
	l.Sent.AddAll(l.owner.sent, 1)
	return err
}

// Vertices are vertices anywhere.
func (l *Lookup) Vertices(ids []uint32) ([]Vertex, error) {
	out := make([]Vertex, 0, len(ids))
	err := l.ask(askVertices, ids, l.vertex(func(v Vertex) { out = append(out, v) }))
	return out, err
}

// vertex reads a vertex.
func (l *Lookup) vertex(keep func(Vertex)) func(r *Reader) {
	return func(r *Reader) {
		v := r.Vertex()
		r.Below("vertex", l.W.Part.Book.Nodes, v.ID)
		if !(v.GCNDegree >= 0 && v.GCNDegree <= math.MaxFloat64) && r.odd == nil {
			r.odd = fmt.Errorf("a degree of %g", v.GCNDegree)
		}
		keep(v)
	}
}

// InEdges are the in-edges of vertices, from vertices by their numbers in the partition.
func (l *Lookup) InEdges(ids []uint32) (*graph.CSR, error) {
	out := &graph.CSR{Indptr: []int64{0}, EdgeDim: l.W.Part.In.EdgeDim}
	err := l.ask(askInEdges, ids, l.inEdges(out))
	return out, err
}

// inEdges reads the in-edges of a vertex.
func (l *Lookup) inEdges(out *graph.CSR) func(r *Reader) {
	return func(r *Reader) {
		n := int(r.Number())
		sources := take[uint32](r, n)
		r.Below("vertex", l.W.Part.Book.Nodes, sources...)
		out.Indices = append(out.Indices, sources...)
		if l.W.Part.Book.Weighted {
			out.Weights = append(out.Weights, take[float32](r, n)...)
		}
		out.EdgeFeatures = append(out.EdgeFeatures, take[float32](r, n*out.EdgeDim)...)
		if s := l.W.Part.Book.Schema; s != nil {
			out.Relations = append(out.Relations, r.relations(n, len(s.Relations))...)
		}
		out.Indptr = append(out.Indptr, int64(len(out.Indices)))
	}
}

// Features are rows of features, in the form in which all parts have them.
func (l *Lookup) Features(ids []uint32) (*graph.Features, error) {
	out := noFeatures(l.W.Part.Features, len(ids))
	err := l.ask(askFeatures, ids, features(out, l.W.Part.Features.Kind()))
	return out, err
}

// TypeFeatures are rows of features by type: those of a type's vertices, in their order. types has the type of each
// vertex, which has features.
func (l *Lookup) TypeFeatures(ids []uint32, types []int) ([]*graph.Features, error) {
	out := make([]*graph.Features, len(l.W.Part.TypeFeatures))
	row := make([]func(*Reader), len(out))
	for t, f := range l.W.Part.TypeFeatures {
		if f != nil {
			out[t] = noFeatures(f, 0)
			row[t] = features(out[t], l.W.Part.Book.Schema.Types[t].Features.Kind)
		}
	}
	next := 0
	err := l.ask(askFeatures, ids, func(r *Reader) {
		t := types[next]
		row[t](r)
		out[t].Rows++
		next++
	})
	return out, err
}

// noFeatures are features as f's, whose rows are still to be read.
func noFeatures(f *graph.Features, rows int) *graph.Features {
	out := &graph.Features{Rows: rows, Cols: f.Cols}
	if f.Kind() == graph.Sparse {
		out.Indptr = []int64{0}
	}
	return out
}

// features reads a row.
func features(out *graph.Features, kind graph.FeatureKind) func(r *Reader) {
	return func(r *Reader) {
		switch kind {
		case graph.Dense:
			out.F32 = append(out.F32, take[float32](r, out.Cols)...)
		case graph.BFloat16:
			out.BF16 = append(out.BF16, take[uint16](r, out.Cols)...)
		case graph.Sparse:
			n := int(r.Number())
			columns := take[uint32](r, n)
			r.Below("column", int64(out.Cols), columns...)
			out.Indices = append(out.Indices, columns...)
			out.Values = append(out.Values, take[float32](r, n)...)
			out.Indptr = append(out.Indptr, int64(len(out.Indices)))
		}
	}
}

// mostAsked is how many vertices a request names.
const mostAsked = 1 << 16

// query is what is asked of one owner.
type query struct {
	owner   int
	ids     []uint32 // that are not answered
	asked   int      // of them, by the request under way
	reply   *wire.Reply
	answers []answer
}

// answer is about some vertices.
type answer struct {
	vertices int
	rows     []byte
}

// ask asks the owners of vertices, all at once, and has row read what each answers about
// every vertex, in order.
func (l *Lookup) ask(what question, ids []uint32, row func(*Reader)) error {
	queries, err := l.byOwner(ids)
	if err != nil {
		return err
	}
	for more := true; more; {
		for _, q := range queries {
			l.request(what, q)
		}
		more = false
		for _, q := range queries {
			if err := l.receive(what, q); err != nil {
				return err
			}
			more = more || len(q.ids) > 0
		}
	}
	for _, q := range queries {
		if err := q.read(row); err != nil {
			return err
		}
	}
	return nil
}

// byOwner splits ascending numbers of vertices.
func (l *Lookup) byOwner(ids []uint32) (queries []*query, err error) {
	start := 0
	for i, v := range ids {
		if int64(v) >= l.W.Part.Book.Nodes || i > 0 && v <= ids[i-1] {
			return nil, fmt.Errorf("looking up vertex %d: numbers must ascend and be below %d", v, l.W.Part.Book.Nodes)
		}
		if q := l.W.Part.Book.Owner(v); len(queries) == 0 || queries[len(queries)-1].owner != q {
			queries, start = append(queries, &query{owner: q}), i
		}
		queries[len(queries)-1].ids = ids[start : i+1]
	}
	return queries, nil
}

// request asks an owner for what it has not answered yet.
func (l *Lookup) request(what question, q *query) {
	if q.asked = min(len(q.ids), mostAsked); q.asked == 0 || q.owner == l.W.End.Rank() {
		return
	}
	b := []byte{byte(what)}
	b, _ = binary.Append(b, binary.LittleEndian, q.ids[:q.asked])
	l.Sent.Add(l.W.Class(wire.Topology, -1, q.owner), int64(len(b)))
	q.reply = l.W.End.Call(q.owner, wire.Call{Service: l.owner.name, Coflow: coflow.Preparing, Kind: wire.Topology,
		Request: b})
}

// receive takes an owner's answer, which may be about fewer vertices than were asked for.
func (l *Lookup) receive(what question, q *query) (err error) {
	if q.asked == 0 {
		return nil
	}
	var b []byte
	if q.owner == l.W.End.Rank() {
		b, err = l.owner.answer(q.owner, what, q.ids[:q.asked])
	} else {
		b, err = q.reply.Wait(l.W.Ctx)
	}
	if err != nil {
		return err
	}
	return q.take(b)
}

// take takes an answer.
func (q *query) take(b []byte) error {
	if len(b) < 4 {
		return q.odd(0, b)
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n < 1 || n > q.asked {
		return q.odd(n, b)
	}
	q.answers, q.ids = append(q.answers, answer{n, b[4:]}), q.ids[n:]
	return nil
}

// read has row read every vertex.
func (q *query) read(row func(*Reader)) error {
	for _, a := range q.answers {
		r := NewReader(a.rows)
		for i := 0; i < a.vertices && !r.short; i++ {
			row(r)
		}
		if r.odd != nil && !r.short {
			return fmt.Errorf("worker %d answered with %w", q.owner, r.odd)
		}
		if r.short || len(r.b) > 0 {
			return q.odd(a.vertices, a.rows)
		}
	}
	return nil
}

func (q *query) odd(n int, b []byte) error {
	return fmt.Errorf("worker %d answered %d vertices with %d bytes, which is not what they take", q.owner, n, len(b))
}
