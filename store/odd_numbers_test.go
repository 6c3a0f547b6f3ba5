package store

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/sample"
	"starling/wire"
)

// TestNumbersOfAPeerAreChecked: what a message announces or names is refused where it is decoded, before there is
// memory for it, in a sentence that says what is wrong.
func TestNumbersOfAPeerAreChecked(t *testing.T) {
	w := newFuzzed(t)
	take := func(h wire.Handler, b []byte) error { return w.handler(h)(b) }
	reply := func(spoil func(d *drawn)) error {
		shape := drawShape{query: &query{fanout: 3, seeds: true}, weighted: true, nodes: 60}
		d := randomDraw(w.rand, 7, shape)
		spoil(d)
		return new(drawn).decode(d.encode(nil, true), 7, shape)
	}
	sums := sumsOf(0, w.numbers[:2], make([]sample.Sum, 2))
	masks := (&guideMessage{deviates: 0.5, vertices: w.numbers[:2]}).encode()
	twice := func(h wire.Handler, b []byte) error {
		w.reset()
		if err := take(h, b); err != nil {
			return err
		}
		return take(h, b)
	}
	pushed := func(b []byte) error { _, err := w.e.parsePush(b); return err }
	rows := slices.Repeat(w.numbers[:1], sparseRows+1)
	for _, c := range []struct {
		want string
		err  error
	}{
		{"a walk of 1048576 vertices", take(w.s.serveCount, bytesOf([]uint32{1 << 20}))},
		{"a walk of 0 vertices", take(w.s.serveCount, make([]byte, 64))},
		{"16777216 negatives at once", w.negatives().take((&Negative{Count: 1 << 24}).append([]byte{0}))},
		{"table 7, where the next one is 0", take(w.s.serveSums, sumsOf(7, nil, nil))},
		{"sums that worker 1 has sent before", twice(w.s.serveSums, sums)},
		{"worker 1 sends the vertices of its masks twice", twice(w.s.serveGuide, masks)},
		{"vertex 99 of 60", take(w.s.serveGuide, (&guideMessage{deviates: 0.5, vertices: []uint32{99}}).encode())},
		{"a learning rate of NaN", pushed(w.e.pushOf(1, math.NaN(), nil, nil, nil))},
		{"16385 rows of features at once", take(w.s.servePull, (&pullForm{}).request(rows, upTo(len(rows))))},
		{"vertex 60 of 60", reply(func(d *drawn) { d.own[3] = 60 })},
		{"NaN where a degree", reply(func(d *drawn) { d.all[3] = math.NaN() })},
		{"-1 where a degree", reply(func(d *drawn) { d.ownNoLoops[0] = -1 })},
		{"which has number 0 already", (&Vertices{Number: []uint32{nowhere, 0}}).take(bytesOf([]uint32{1}), 0, 1)},
		{"more than 1048576 edges", w.s.own().checkEdges(slices.Repeat(w.numbers[1:], 1<<16), &query{fanout: sample.All})},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
}

// TestARefusedPushNamesItsWorker: all workers of a step learn that a push was refused, and whose it was: the one that
// answers them is not to blame.
func TestARefusedPushNamesItsWorker(t *testing.T) {
	w := newFuzzed(t)
	ended := make(chan error)
	for rank, numbers := range [][]uint32{{0}, {59}, {1}} { // the second is no row of worker 0
		body := w.e.pushOf(1, 0.1, numbers, make([]byte, 2*w.e.Size), []uint32{0})
		p, err := w.e.parsePush(body)
		go func() { ended <- w.e.arrive(context.Background(), rank, p, err) }()
	}
	for range 3 {
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "worker 1 pushed embeddings: row 59 is not worker 0's") {
			t.Error(err)
		}
	}
}
