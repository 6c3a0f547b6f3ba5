package store

import (
	"context"
	"slices"
	"strings"
	"testing"

	"starling/sample"
	"starling/train/traintest"
	"starling/wire"
)

// newFuzzedTyped is newFuzzed on a typed graph.
func newFuzzedTyped(t testing.TB) *fuzzed {
	parts := traintest.Cut(t, traintest.Typed(t, 60), "random", 3)
	ends := wire.NewGroup(3, wire.DefaultOptions())
	t.Cleanup(func() { traintest.Close(ends) })
	s, err := Open(context.Background(), parts[0], ends[0], Options{RemoteOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &fuzzed{s: s}
	for v := range uint32(parts[0].Core()) {
		if s.Book.TypeOf(v) == 0 {
			f.numbers = append(f.numbers, v)
		}
	}
	return f
}

func (f *fuzzed) typedPulls() message {
	return f.request((&pullForm{}).request(f.numbers, upTo(5)), f.s.servePull)
}

func (f *fuzzed) typedDraws() message {
	q := &query{key: 7, fanout: 2, seeds: true, fanouts: make([]int, f.s.relations())}
	q.fanouts[1] = sample.All
	return f.request(q.request(f.numbers, upTo(9)), f.s.serveDraw)
}

// typedDrawn is the reply to draws.
func (f *fuzzed) typedDrawn() message {
	q := &query{key: 7, fanout: 2, seeds: true}
	reply, err := f.s.serveDraw(context.Background(), &wire.Request{From: 1, Body: q.request(f.numbers, upTo(9))})
	if err != nil {
		panic(err)
	}
	shape := drawShape{query: q, nodes: f.s.Book.Nodes, book: f.s.Book}
	return message{slices.Clone(reply.Body), func(b []byte) error {
		d := &drawn{}
		err := d.decode(b, 9, shape)
		if err == nil {
			err = d.checkTypes(f.s.Book, func(k int) uint32 { return f.numbers[k] })
		}
		for k := 0; err == nil && k < 9; k++ {
			d.appendTo(&sample.Block{}, nil, k, 0, func(at uint32) uint32 { return d.source(at) })
		}
		return err
	}}
}

func fuzzTyped(f *testing.F, kind func(*fuzzed) message) { fuzzOn(f, newFuzzedTyped(f), kind) }

func FuzzTypedPullRequest(f *testing.F) { fuzzTyped(f, (*fuzzed).typedPulls) }
func FuzzTypedDrawRequest(f *testing.F) { fuzzTyped(f, (*fuzzed).typedDraws) }
func FuzzTypedDrawReply(f *testing.F)   { fuzzTyped(f, (*fuzzed).typedDrawn) }

// TestTypedMessagesAreChecked: valid messages of a typed graph are taken; types, relations and fanouts that cannot be
// are refused.
func TestTypedMessagesAreChecked(t *testing.T) {
	w := newFuzzedTyped(t)
	for i, kind := range []func(*fuzzed) message{(*fuzzed).typedPulls, (*fuzzed).typedDraws, (*fuzzed).typedDrawn} {
		if m := kind(w); m.take(m.valid) != nil {
			t.Errorf("message %d: %v", i, m.take(m.valid))
		}
	}
	other := slices.IndexFunc(upTo(w.s.Part.Core()), func(v uint32) bool { return w.s.Book.TypeOf(v) == 2 })
	learnt := slices.IndexFunc(upTo(w.s.Part.Core()), func(v uint32) bool { return w.s.Book.TypeOf(v) == 1 })
	pull := func(v ...uint32) error { return w.handler(w.s.servePull)((&pullForm{}).request(v, upTo(len(v)))) }
	draw := func(fanouts ...int) error {
		return w.handler(w.s.serveDraw)((&query{fanout: 1, fanouts: fanouts}).request(w.numbers, upTo(3)))
	}
	reply := w.typedDrawn()
	last := func(relation byte) error {
		b := slices.Clone(reply.valid)
		b[len(b)-1] = relation
		return reply.take(b)
	}
	for _, c := range []struct {
		want string
		err  error
	}{
		{"is not worker 0's", pull(uint32(other), w.numbers[0])},
		{"is not worker 0's", pull(w.numbers[0], 1<<31)},
		{"type 1 has no features", pull(uint32(learnt))},
		{"a fanout of -7 for relation 1", draw(0, -7, 0, 0, 0, 0, 0)},
		{"fewer than its lists take", draw(1)},
		{"an edge of relation 200", last(200)},
		{"an edge of relation 0", last(0)},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
}
