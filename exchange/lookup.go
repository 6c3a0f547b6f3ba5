package exchange

import (
	"encoding/binary"
	"fmt"

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
	err := l.ask(askVertices, ids, func(r *Reader) { out = append(out, r.Vertex()) })
	return out, err
}

// InEdges are the in-edges of vertices, from vertices by their numbers in the partition.
func (l *Lookup) InEdges(ids []uint32) (*graph.CSR, error) {
	out := &graph.CSR{Indptr: []int64{0}, EdgeDim: l.W.Part.In.EdgeDim}
	err := l.ask(askInEdges, ids, func(r *Reader) {
		n := int(r.Number())
		out.Indices = append(out.Indices, take[uint32](r, n)...)
		if l.W.Part.Book.Weighted {
			out.Weights = append(out.Weights, take[float32](r, n)...)
		}
		out.EdgeFeatures = append(out.EdgeFeatures, take[float32](r, n*out.EdgeDim)...)
		out.Indptr = append(out.Indptr, int64(len(out.Indices)))
	})
	return out, err
}

// Features are rows of features, in the form in which all parts have them.
func (l *Lookup) Features(ids []uint32) (*graph.Features, error) {
	f := l.W.Part.Features
	out := &graph.Features{Rows: len(ids), Cols: f.Cols}
	if f.Kind() == graph.Sparse {
		out.Indptr = []int64{0}
	}
	err := l.ask(askFeatures, ids, func(r *Reader) {
		switch f.Kind() {
		case graph.Dense:
			out.F32 = append(out.F32, take[float32](r, f.Cols)...)
		case graph.BFloat16:
			out.BF16 = append(out.BF16, take[uint16](r, f.Cols)...)
		case graph.Sparse:
			n := int(r.Number())
			out.Indices = append(out.Indices, take[uint32](r, n)...)
			out.Values = append(out.Values, take[float32](r, n)...)
			out.Indptr = append(out.Indptr, int64(len(out.Indices)))
		}
	})
	return out, err
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
		for range a.vertices {
			row(r)
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
