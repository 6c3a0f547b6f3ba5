package exchange

import (
	"encoding/binary"
	"slices"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/wire"
)

// fuzzWorker has a part of four vertices, the first of ten.
func fuzzWorker(features *graph.Features) *Worker {
	in := &graph.CSR{Indptr: []int64{0, 1, 2, 2, 3}, Indices: []uint32{1, 4, 5}}
	meta := partition.PartMeta{Part: 0, Core: 4}
	return &Worker{Part: &partition.Part{Meta: meta,
		Book: &partition.Book{Parts: 2, Nodes: 10, Edges: 20, Servers: 1, Offsets: []int64{0, 4, 10}}, In: in,
		Features: features, IDs: []uint32{3, 1, 2, 0, 7, 8}, Halo: []uint32{5, 6}, Degrees: make([]uint32, 6),
	}, End: wire.NewGroup(2, wire.DefaultOptions())[0]}
}

// forms are rows of features in each form.
var forms = []*graph.Features{{Rows: 4, Cols: 2, F32: make([]float32, 8)}, {Rows: 4, Cols: 2, BF16: make([]uint16, 8)},
	{Rows: 4, Cols: 2, Indptr: []int64{0, 1, 1, 2, 3}, Indices: []uint32{1, 0, 1}, Values: make([]float32, 3)}}

// FuzzLookupRequest: an owner answers whatever it is asked, or refuses it.
func FuzzLookupRequest(f *testing.F) {
	for what := range byte(4) {
		f.Add(what, binary.LittleEndian.AppendUint32([]byte{what}, 2))
		f.Add(what, []byte{what, 1, 0, 0, 0, 255, 255, 255, 255})
	}
	f.Fuzz(func(t *testing.T, form byte, b []byte) {
		o := &owner{w: fuzzWorker(forms[int(form)%len(forms)]), most: answerBytes, sent: wire.Bytes{}}
		response, err := o.handle(&wire.Request{From: 1, Body: b})
		if err == nil && len(response.Body) < 4 {
			t.Errorf("%d bytes answered", len(response.Body))
		}
	})
}

// FuzzLookupReply: what owners answer is taken, with numbers that there are, or refused.
func FuzzLookupReply(f *testing.F) {
	for form := range forms {
		o := &owner{w: fuzzWorker(forms[form]), most: answerBytes}
		for what := range question(3) {
			b, err := o.answer(1, what, []uint32{0, 1, 3})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(byte(form), byte(what), b)
			f.Add(byte(form), byte(what), append([]byte{3, 0, 0, 0, 255, 255, 255, 255}, b[8:]...))
		}
	}
	f.Fuzz(func(t *testing.T, form, what byte, b []byte) {
		w := fuzzWorker(forms[int(form)%len(forms)])
		l := &Lookup{Setup: &Setup{W: w}}
		q := &query{owner: 1, ids: []uint32{4, 5, 6}, asked: 3}
		if q.take(b) != nil {
			return
		}
		var numbers []uint32
		var limit int
		var err error
		switch question(what % 3) {
		case askVertices:
			err = q.read(l.vertex(func(v Vertex) { numbers = append(numbers, v.ID) }))
			limit = 10
		case askInEdges:
			out := &graph.CSR{Indptr: []int64{0}}
			err = q.read(l.inEdges(out))
			numbers, limit = out.Indices, 10
		default:
			out := noFeatures(w.Part.Features, 3)
			err = q.read(features(out, w.Part.Features.Kind()))
			numbers, limit = out.Indices, 2
		}
		if err == nil && slices.ContainsFunc(numbers, func(v uint32) bool { return int(v) >= limit }) {
			t.Errorf("%v are taken, of %d", numbers, limit)
		}
	})
}

// FuzzNumbers: lists of any length are read as far as they go.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0}, uint32(2))
	f.Add([]byte{1, 0, 0}, uint32(1<<31))
	f.Fuzz(func(t *testing.T, b []byte, n uint32) {
		if got := Numbers(b); len(got) != len(b)/4 {
			t.Errorf("%d numbers of %d bytes", len(got), len(b))
		}
		r := NewReader(b)
		if list := r.Numbers(int(n)); r.Err() == nil && len(list) != int(n) {
			t.Errorf("%d numbers, expected %d", len(list), n)
		}
		r = NewReader(b)
		r.Vertex()
	})
}
