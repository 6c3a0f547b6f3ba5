package exchange

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"starling/graph"
	"starling/wire"
)

// question is what is asked about vertices; it is the first byte of a request, the vertices'
// numbers follow.
type question byte

const (
	askVertices question = iota
	askInEdges
	askFeatures
)

// answerBytes is how long an answer may get before the rest is left to another request. A
// single row may be longer.
const answerBytes = 8 << 20

// owner serves a worker's part. An answer is the number of vertices that it is about, the
// first of those asked for, and a row for each.
type owner struct {
	w    *Worker
	name string
	end  func() error // of the service
	most int          // bytes of an answer, but for its last row

	mu   sync.Mutex
	sent wire.Bytes // in answers
}

func serve(w *Worker, name string, most int) (o *owner, err error) {
	o = &owner{w: w, name: name, most: most, sent: wire.Bytes{}}
	o.end, err = w.End.Serve(wire.Service{Name: name, MaxRequest: 1 + 4*mostAsked, MaxResponse: 1 << 30, Handlers: 1},
		func(_ context.Context, r *wire.Request) (wire.Response, error) { return o.handle(r) })
	return o, err
}

func (o *owner) stop() error { return o.end() }

func (o *owner) handle(r *wire.Request) (wire.Response, error) {
	if len(r.Body) < 1 || len(r.Body)%4 != 1 {
		return wire.Response{}, fmt.Errorf("a request of %d bytes", len(r.Body))
	}
	what := question(r.Body[0])
	b, err := o.answer(r.From, what, Numbers(r.Body[1:]))
	if err != nil {
		return wire.Response{}, err
	}
	kind := wire.Topology
	if what == askFeatures {
		kind = wire.Feature
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent.Add(o.w.Class(kind, -1, r.From), int64(len(b)))
	return wire.Response{Kind: kind, Body: b}, nil
}

// answer is about as many vertices as fit.
func (o *owner) answer(from int, what question, ids []uint32) ([]byte, error) {
	row, err := o.rows(what)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 4, 1<<16)
	n := 0
	for ; n < len(ids) && (n == 0 || len(b) < o.most); n++ {
		local, ok := o.w.Own(ids[n])
		if !ok {
			return nil, fmt.Errorf("worker %d asks this one about vertex %d, which is not its own; "+
				"do all workers have parts of the same partition?", from, ids[n])
		}
		b = row(b, local)
	}
	binary.LittleEndian.PutUint32(b, uint32(n))
	return b, nil
}

// rows is how a vertex's answer is written.
func (o *owner) rows(what question) (func(b []byte, v uint32) []byte, error) {
	switch what {
	case askVertices:
		return func(b []byte, v uint32) []byte { return o.w.Vertex(v).Append(b) }, nil
	case askInEdges:
		return o.inEdges, nil
	case askFeatures:
		return o.features, nil
	}
	return nil, fmt.Errorf("question %d, this build knows %d", what, askFeatures+1)
}

func (o *owner) inEdges(b []byte, v uint32) []byte {
	in := o.w.Part.In
	lo, hi := in.Indptr[v], in.Indptr[v+1]
	b = binary.LittleEndian.AppendUint32(b, uint32(hi-lo))
	for _, u := range in.Indices[lo:hi] {
		b = binary.LittleEndian.AppendUint32(b, o.w.Global(u))
	}
	if in.Weights != nil {
		b, _ = binary.Append(b, binary.LittleEndian, in.Weights[lo:hi])
	}
	b, _ = binary.Append(b, binary.LittleEndian, in.EdgeRows(lo, hi))
	if in.Relations != nil {
		b, _ = binary.Append(b, binary.LittleEndian, in.Relations[lo:hi])
	}
	return b
}

func (o *owner) features(b []byte, v uint32) []byte {
	if o.w.Part.Book.Schema != nil {
		return o.typeFeatures(b, v)
	}
	return appendFeatures(b, o.w.Part.Features, v)
}

// typeFeatures are the features of a vertex of a typed graph: nothing for a type without any.
func (o *owner) typeFeatures(b []byte, v uint32) []byte {
	at := make([]int, len(o.w.Part.TypeFeatures)) // rows of each type before the run
	for _, run := range o.w.Part.CoreTypes() {
		if int(v) < run.Hi {
			if f := o.w.Part.TypeFeatures[run.Type]; f != nil {
				b = appendFeatures(b, f, uint32(at[run.Type]+int(v)-run.Lo))
			}
			return b
		}
		at[run.Type] += run.Hi - run.Lo
	}
	return b
}

// appendFeatures writes a row.
func appendFeatures(b []byte, f *graph.Features, v uint32) []byte {
	lo, hi := int(v)*f.Cols, int(v+1)*f.Cols
	switch f.Kind() {
	case graph.Dense:
		b, _ = binary.Append(b, binary.LittleEndian, f.F32[lo:hi])
	case graph.BFloat16:
		b, _ = binary.Append(b, binary.LittleEndian, f.BF16[lo:hi])
	case graph.Sparse:
		from, to := f.Indptr[v], f.Indptr[v+1]
		b = binary.LittleEndian.AppendUint32(b, uint32(to-from))
		b, _ = binary.Append(b, binary.LittleEndian, f.Indices[from:to])
		b, _ = binary.Append(b, binary.LittleEndian, f.Values[from:to])
	}
	return b
}
