package store

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"starling/graph"
	"starling/rng"
	"starling/sample"
	"starling/train/traintest"
	"starling/wire"
)

// fuzzed is a worker of three, on a small graph, that takes what a peer sends. The peer is authenticated: whatever it
// sends, the worker neither panics nor takes much memory.
type fuzzed struct {
	s       *Store
	e       *Embeddings
	numbers []uint32 // of its own vertices
	rand    *rand.Rand
}

// fuzzBytes is more memory than any message to a worker of the small graph takes.
const fuzzBytes = 128 << 20

func newFuzzed(t testing.TB) *fuzzed {
	parts := traintest.Cut(t, traintest.Communities(t, 60, true), "random", 3)
	ends := wire.NewGroup(3, wire.DefaultOptions())
	t.Cleanup(func() { traintest.Close(ends) })
	s, err := Open(context.Background(), parts[0], ends[0], Options{RemoteOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &fuzzed{s: s, rand: rand.New(rand.NewPCG(1, 2))}
	if f.e, err = s.AddEmbeddings(2, 4, false, 1); err != nil {
		t.Fatal(err)
	}
	some := func(key rng.Key, kept uint32) uint32 { return kept }
	odd := func(kept, other uint32) bool { return (kept+other)%2 > 0 }
	if err := errors.Join(s.ServeNegatives(some), s.ServeChecks(odd), s.ServeGuides()); err != nil {
		t.Fatal(err)
	}
	for v := range uint32(parts[0].Core()) {
		f.numbers = append(f.numbers, v)
	}
	return f
}

// reset forgets what messages have left.
func (f *fuzzed) reset() {
	f.s.shared, f.s.own().guides, f.s.own().counts = sharing{}, guides{}, nil
	if f.e != nil {
		f.e.mu.rounds = map[uint32]*round{}
	}
}

// handler is what takes the requests of a service. Nothing is waited for.
func (f *fuzzed) handler(h wire.Handler) func(b []byte) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return func(b []byte) error {
		response, err := h(ended, &wire.Request{From: 1, Body: b})
		if response.Release != nil {
			response.Release()
		}
		return err
	}
}

// message is a kind of messages: one as workers send it, and what takes it.
type message struct {
	valid []byte
	take  func(b []byte) error
}

// request is a message that a handler takes.
func (f *fuzzed) request(valid []byte, h wire.Handler) message { return message{valid, f.handler(h)} }

func (f *fuzzed) pulls() message {
	form := pullForm{keep: someColumns(f.rand, f.s.Part.Features.Cols)}
	return f.request(form.request(f.numbers, upTo(5)), f.s.servePull)
}

func (f *fuzzed) draws() message {
	q := &query{key: 7, fanout: sample.All, seeds: true, only: f.numbers,
		without: newExclusions([]Excluded{{Vertex: f.numbers[1], Source: f.numbers[2], Weight: 1}})}
	return f.request(q.request(f.numbers, upTo(9)), f.s.serveDraw)
}

func (f *fuzzed) pushes() message {
	b := f.e.rows.appendPush([]byte{byte(f.e.table)}, f.numbers, make([]byte, 9*f.e.rows.PushWidth), upTo(9))
	return f.request(b, f.s.servePush)
}

func (f *fuzzed) follows() message {
	return f.request(following(byWeight, 3, f.numbers, make([]uint64, 9), upTo(9)), f.s.serveFollow)
}

func (f *fuzzed) walks() message {
	return f.request(bytesOf(appendWalk(appendWalk(nil, f.numbers[:3]), f.numbers[2:9])), f.s.serveCount)
}

func (f *fuzzed) sums() message {
	return f.request(sumsOf(0, f.numbers[:5], make([]sample.Sum, 5)), f.s.serveSums)
}

func (f *fuzzed) tables() message {
	return f.request(binary.LittleEndian.AppendUint32(nil, 0), f.s.serveTable)
}

func (f *fuzzed) masks() message {
	return f.request((&guideMessage{deviates: 0.5, vertices: f.numbers[:5]}).encode(), f.s.serveGuide)
}

func (f *fuzzed) negatives() message {
	return f.request((&Negative{f.numbers[3], 5, 0, 9}).append([]byte{0}), func(_ context.Context, r *wire.Request) (
		wire.Response, error) {
		method, list, err := parseNegatives(r.Body)
		if err == nil {
			_, err = f.s.drawNegatives(method, list)
		}
		return wire.Response{}, err
	})
}

func (f *fuzzed) checks() message {
	return f.request((Checked{f.numbers[3], 5}).append([]byte{0}), func(_ context.Context, r *wire.Request) (
		wire.Response, error) {
		method, list, err := parseChecks(r.Body)
		if err == nil {
			_, err = f.s.checkOwn(method, list)
		}
		return wire.Response{}, err
	})
}

func (f *fuzzed) gradients() message {
	return f.request(f.e.pushOf(1, 0.1, f.numbers, make([]byte, 18*4), upTo(9)), f.e.serveStep)
}

// The replies to these.

func (f *fuzzed) drawn() message {
	shape := drawShape{query: &query{fanout: 3, seeds: true}, weighted: f.s.Book.Weighted, nodes: f.s.Book.Nodes}
	return message{randomDraw(f.rand, 7, shape).encode(nil, shape.weighted), func(b []byte) error {
		d := &drawn{}
		err := d.decode(b, 7, shape)
		for k := 0; err == nil && k < 7; k++ {
			d.appendTo(&sample.Block{}, nil, k, 0, func(at uint32) uint32 {
				id, _ := d.about(at)
				return max(d.source(at), id)
			})
		}
		return err
	}}
}

func (f *fuzzed) rows() message {
	form, rows := pullForm{packed: Int8}, denseRows(f.rand, 5, 8)
	return message{form.encode(nil, &rowSource{rows: bytesOf(rows.F32), width: 32}, upTo(5)), func(b []byte) error {
		return form.decode(make([]byte, 5*32), 32, upTo(5), b)
	}}
}

func (f *fuzzed) sparse() message {
	return message{appendSparse(nil, sparseFeatures(f.rand, 5, 9), upTo(5), nil), func(b []byte) error {
		got, err := parseSparse(b, 5, 9)
		if err == nil {
			p := &sparsePull{to: &graph.Features{}}
			for i := range uint32(5) {
				p.rows = append(p.rows, sparseRow{got, i})
			}
			p.join()
		}
		return err
	}}
}

func (f *fuzzed) followed() message {
	return message{bytesOf(f.numbers[:7]), func(b []byte) error {
		_, err := parseFollowed(b, 7, f.s.Book.Nodes)
		return err
	}}
}

func (f *fuzzed) drawnNegatives() message {
	list := []Negative{{Count: 3}, {Count: 4}}
	return message{bytesOf(f.numbers[:7]), func(b []byte) error {
		return distribute(list, upTo(2), numbersOf(b), f.s.Book.Nodes, func(int, []uint32) {})
	}}
}

func (f *fuzzed) checked() message {
	return message{[]byte{1, 0, 1}, func(b []byte) error { return takeChecks(make([]bool, 3), upTo(3), b) }}
}

func (f *fuzzed) columns() message {
	b := bytesOf([]uint32{3, 1, 4})
	b = append(slices.Clone(b), bytesOf([]float64{1, 2, 0.5})...)
	return message{b, func(b []byte) error {
		v := &Vertices{Number: slices.Repeat([]uint32{nowhere}, 9), Columns: [][]float64{make([]float64, 9)}}
		return v.take(b, 0, 3)
	}}
}

// fuzz gives a worker any bytes instead of a message.
func fuzz(f *testing.F, kind func(*fuzzed) message) { fuzzOn(f, newFuzzed(f), kind) }

func fuzzOn(f *testing.F, w *fuzzed, kind func(*fuzzed) message) {
	m := kind(w)
	f.Add(m.valid)
	f.Add(m.valid[:len(m.valid)/2])
	for at := 0; at+4 <= len(m.valid); at += 4 {
		b := slices.Clone(m.valid)
		binary.LittleEndian.PutUint32(b[at:], math.MaxUint32>>(at%8))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w.reset()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m.take(slices.Clone(b)) // it may be a message; it must not panic
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > fuzzBytes+64*uint64(len(b)) {
			t.Errorf("%d bytes take %d of memory", len(b), took)
		}
	})
}

func FuzzPullRequest(f *testing.F)     { fuzz(f, (*fuzzed).pulls) }
func FuzzPushRequest(f *testing.F)     { fuzz(f, (*fuzzed).pushes) }
func FuzzDrawRequest(f *testing.F)     { fuzz(f, (*fuzzed).draws) }
func FuzzFollowRequest(f *testing.F)   { fuzz(f, (*fuzzed).follows) }
func FuzzCountRequest(f *testing.F)    { fuzz(f, (*fuzzed).walks) }
func FuzzSumsRequest(f *testing.F)     { fuzz(f, (*fuzzed).sums) }
func FuzzTableRequest(f *testing.F)    { fuzz(f, (*fuzzed).tables) }
func FuzzGuideRequest(f *testing.F)    { fuzz(f, (*fuzzed).masks) }
func FuzzNegativeRequest(f *testing.F) { fuzz(f, (*fuzzed).negatives) }
func FuzzCheckRequest(f *testing.F)    { fuzz(f, (*fuzzed).checks) }
func FuzzStepRequest(f *testing.F)     { fuzz(f, (*fuzzed).gradients) }
func FuzzDrawReply(f *testing.F)       { fuzz(f, (*fuzzed).drawn) }
func FuzzPullReply(f *testing.F)       { fuzz(f, (*fuzzed).rows) }
func FuzzSparseReply(f *testing.F)     { fuzz(f, (*fuzzed).sparse) }
func FuzzFollowReply(f *testing.F)     { fuzz(f, (*fuzzed).followed) }
func FuzzNegativeReply(f *testing.F)   { fuzz(f, (*fuzzed).drawnNegatives) }
func FuzzCheckReply(f *testing.F)      { fuzz(f, (*fuzzed).checked) }
func FuzzTableReply(f *testing.F)      { fuzz(f, (*fuzzed).columns) }

// TestValidMessagesAreTaken: what workers send is what the fuzzers begin with.
func TestValidMessagesAreTaken(t *testing.T) {
	w := newFuzzed(t)
	for i, kind := range []func(*fuzzed) message{(*fuzzed).pulls, (*fuzzed).pushes, (*fuzzed).draws, (*fuzzed).follows,
		(*fuzzed).walks, (*fuzzed).sums, (*fuzzed).masks, (*fuzzed).negatives, (*fuzzed).drawn, (*fuzzed).rows,
		(*fuzzed).sparse, (*fuzzed).followed, (*fuzzed).drawnNegatives, (*fuzzed).columns,
		(*fuzzed).checks, (*fuzzed).checked} {
		w.reset()
		if m := kind(w); m.take(m.valid) != nil {
			t.Errorf("message %d: %v", i, m.take(m.valid))
		}
	}
}
