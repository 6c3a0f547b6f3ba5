// Package wiretest holds the tests that every transport of package wire must pass (Run), and a
// simulated network in virtual time on which tests of other packages run (Simulate).
package wiretest

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"starling/coflow"
	"starling/internal/testseed"
	"starling/wire"
)

// Transport is one to be tested.
type Transport struct {
	Name string
	// Open returns n connected endpoints, which the test closes.
	Open func(t testing.TB, n int, opt wire.Options) []wire.Endpoint
	// Streams: messages take time, so that one may overtake another.
	Streams bool
	// Around, if set, runs each test: in fake time, say, or with a check for leaks.
	Around func(t *testing.T, test func(t *testing.T))
}

// Run runs all tests over a transport.
func Run(t *testing.T, tr Transport) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Transport)
	}{
		{"RandomOrder", testRandomOrder}, {"OneProcessor", testOneProcessor},
		{"UnexpectedAndBackPressure", testUnexpected}, {"LargerThanTheLimit", testLargerThanTheLimit},
		{"Disagreements", testDisagreements}, {"TwoReceives", testTwoReceives}, {"Deadline", testDeadline},
		{"PeerCloses", testPeerCloses}, {"FailureReachesAll", testFailureReachesAll}, {"Overtaking",
			testOvertaking}, {"FIFO", testFIFO},
		{"CloseUnread", testCloseUnread},
		{"Calls", testCalls}, {"CallNotServed", testNotServed}, {"CallSlowHandler", testSlowHandler},
		{"CallDeadline", testCallDeadline}, {"CallErrors", testCallErrors}, {"CallBackPressure", testCallBackPressure},
		{"CallServerEnds", testServerEnds}, {"CallCallerEnds", testCallerEnds}, {"CallServiceStops", testServiceStops},
		{"CallOrder", testCallOrder}, {"CallCancelStorm", testCancelStorm},
	} {
		t.Run(c.name, func(t *testing.T) {
			test := func(t *testing.T) { c.test(t, tr) }
			if tr.Around != nil {
				tr.Around(t, test)
				return
			}
			test(t)
		})
	}
}

// group opens n endpoints, which are closed when the test ends.
func (tr Transport) group(t *testing.T, n int, opt wire.Options) []wire.Endpoint {
	t.Helper()
	eps := tr.Open(t, n, opt)
	t.Cleanup(func() { CloseAll(eps) })
	return eps
}

// CloseAll closes endpoints at the same time, as workers do.
func CloseAll(eps []wire.Endpoint) {
	var wg sync.WaitGroup
	for _, e := range eps {
		wg.Go(func() { e.Close() })
	}
	wg.Wait()
}

func isDone(p *wire.Pending) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// Sizes are those at which some transport changes its ways.
var Sizes = []int{0, 1, 55, 1000, 64<<10 - 1, 64 << 10, 64<<10 + 1, 192<<10 + 7, 256 << 10, 256<<10 + 1, 1 << 20,
	8 << 20}

// Key is a different one for every step.
func Key(step int) wire.Key {
	return wire.Key{Coflow: coflow.ID{Type: coflow.Rows, Epoch: 1, Layer: int16(step / 4)}, Step: uint32(step)}
}

// Payload is bytes that depend on everything that could be mixed up.
func Payload(from, to, step, size int) []byte {
	b := make([]byte, size+8)
	x := rand.NewPCG(uint64(from)<<32|uint64(to), uint64(step)).Uint64() | 1
	for i := 0; i < size; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], x*uint64(i+1))
	}
	return b[:size:size]
}

// hang is how long a test waits for what must come: a slow machine takes its time.
const hang = 3 * time.Minute

// Soon is a context that ends only if a test hangs.
func Soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := wire.WithTimeout(context.Background(), wire.Real, hang)
	t.Cleanup(cancel)
	return ctx
}

// testRandomOrder: messages come whole, in whatever order they are sent and asked for.
// STARLING_SEED repeats an order.
func testRandomOrder(t *testing.T, tr Transport) {
	seed := testseed.New(t)
	for _, n := range []int{1, 2, 3, 5} {
		exchange(t, tr.group(t, n, wire.DefaultOptions()), rand.New(rand.NewPCG(seed, uint64(n))))
	}
}

// testOneProcessor: ranks exchange messages in turn where Go runs one goroutine at a time,
// so that a goroutine that polls for a message must let the senders run.
func testOneProcessor(t *testing.T, tr Transport) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx := Soon(t)
	var wg sync.WaitGroup
	for me, e := range tr.group(t, 2, wire.DefaultOptions()) {
		wg.Go(func() {
			for step := range 30 {
				size := Sizes[step%6]
				left := e.Send(1-me, Key(step), wire.Activation, Payload(me, 1-me, step, size))
				into := make([]byte, size)
				err := errors.Join(e.Recv(1-me, Key(step), wire.Activation, into).Wait(ctx), left.Wait(ctx))
				if err != nil || !bytes.Equal(into, Payload(1-me, me, step, size)) {
					t.Errorf("rank %d, message %d of %d bytes: %v", me, step, size, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// exchange sends messages of all sizes between all ranks, asked for and sent in
// random order, to be written, with a longer buffer or an exact one, or added, and checks bytes and ledgers.
func exchange(t *testing.T, eps []wire.Endpoint, r *rand.Rand) {
	t.Helper()
	ctx := Soon(t)
	n := len(eps)
	sizes := Sizes
	if n > 2 {
		sizes = sizes[:len(sizes)-1] // the largest takes its time
	}
	type op struct{ from, to, step, size int }
	var ops []op
	for from := range n {
		for to := range n {
			for step, i := range r.Perm(len(sizes)) {
				ops = append(ops, op{from, to, step, sizes[i]})
			}
		}
	}
	var wg sync.WaitGroup
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for rank, e := range eps {
		order := r.Perm(2 * len(ops))
		wg.Go(func() {
			var sends, recvs []*wire.Pending
			var got, want [][]byte
			for _, i := range order {
				o := ops[i%len(ops)]
				if i < len(ops) && o.from == rank {
					sends = append(sends, e.Send(o.to, Key(o.step), wire.Activation,
						Payload(o.from, o.to, o.step, o.size)))
				}
				if i >= len(ops) && o.to == rank {
					p, into, expected := ask(t, e, o.from, o.step, o.size)
					recvs, got, want = append(recvs, p), append(got, into), append(want, expected)
				}
			}
			for _, p := range sends {
				fail(p.Wait(ctx))
			}
			for i, p := range recvs {
				if err := p.Wait(ctx); err != nil || p.Bytes() != len(want[i]) || !bytes.Equal(got[i], want[i]) {
					t.Errorf("%d ranks: rank %d: %v, %d bytes equal: %v", n, rank, err, len(want[i]),
						bytes.Equal(got[i], want[i]))
				}
			}
		})
	}
	wg.Wait()
	checkLedgers(t, eps, sizes)
}

// ask asks for a message of exchange, every third one into a longer buffer, and every third to
// be added to what is there.
func ask(t *testing.T, e wire.Endpoint, from, step, size int) (p *wire.Pending, into, want []byte) {
	want = Payload(from, e.Rank(), step, size)
	switch (from + step) % 3 {
	case 0:
		into = make([]byte, size)
		return e.Recv(from, Key(step), wire.Activation, into), into, want
	case 1:
		into = make([]byte, size+size/3)
		return e.RecvAtMost(from, Key(step), wire.Activation, into), into[:size], want
	}
	into = Payload(1000, e.Rank(), step, size)
	subtle.XORBytes(want, want, into) // a sum that is quickly made
	return e.RecvAdd(from, Key(step), wire.Activation, into, func(into, part []byte) {
		if at := cap(into) % 8; size%8 == 0 && at != 0 {
			t.Errorf("a piece begins %d bytes before a number", at)
		}
		subtle.XORBytes(into, into, part)
	}), into, want
}

// checkLedgers compares what was sent with what was received, entry by entry.
func checkLedgers(t *testing.T, eps []wire.Endpoint, sizes []int) {
	t.Helper()
	messages, bytes := len(eps)*len(sizes), 0
	for _, s := range sizes {
		bytes += s * len(eps)
	}
	for _, e := range eps {
		if got := e.Ledger().Sent(); got != (wire.Count{Messages: int64(messages), Bytes: int64(bytes)}) {
			t.Errorf("rank %d of %d sent %+v, expected %d messages of %d bytes", e.Rank(), len(eps), got, messages,
				bytes)
		}
	}
	sameOnBothEnds(t, eps)
}

// Messages without a receive wait; beyond the limit, on the sender's side,
// and they all arrive when they are asked for.
func testUnexpected(t *testing.T, tr Transport) {
	opt := wire.DefaultOptions()
	opt.UnexpectedLimit = 1 << 20
	eps := tr.group(t, 2, opt)
	ctx := Soon(t)
	const size, count = 300 << 10, 40
	var sends []*wire.Pending
	for i := range count {
		sends = append(sends, eps[0].Send(1, Key(i), wire.Feature, Payload(0, 1, i, size)))
	}
	if err := sends[0].Wait(ctx); err != nil {
		t.Fatal("an early message within the limit did not leave:", err)
	}
	// Asked for in the order of urgency, as a program does.
	for i := range count {
		into := make([]byte, size)
		if err := eps[1].Recv(0, Key(i), wire.Feature, into).Wait(ctx); err != nil ||
			!bytes.Equal(into, Payload(0, 1, i, size)) {
			t.Fatal(i, err)
		}
	}
	for _, p := range sends {
		if err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// A message larger than the limit takes no memory until it is asked for.
func testLargerThanTheLimit(t *testing.T, tr Transport) {
	opt := wire.DefaultOptions()
	opt.UnexpectedLimit = 1000
	eps := tr.group(t, 2, opt)
	ctx := Soon(t)
	want := Payload(0, 1, 0, 1<<20)
	sent := eps[0].Send(1, Key(0), wire.Feature, want)
	small := eps[0].Send(1, Key(1), wire.Feature, want[:10])
	into := make([]byte, len(want))
	if err := eps[1].Recv(0, Key(0), wire.Feature, into).Wait(ctx); err != nil || !bytes.Equal(into, want) {
		t.Fatal(err)
	}
	if err := eps[1].Recv(0, Key(1), wire.Feature, into[:10]).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sent.Wait(ctx), small.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
}

// What does not fit is a mistake in the program, and ends all ranks with the same words.
func testDisagreements(t *testing.T, tr Transport) {
	send := func(e wire.Endpoint, step, size int, kind wire.Kind) *wire.Pending {
		return e.Send(1, Key(step), kind, make([]byte, size))
	}
	cases := []struct {
		name, want string
		do         func(a, b wire.Endpoint)
	}{
		{"size, asked first", "rank 0 sent 10 bytes where rank 1 asked for 20", func(a, b wire.Endpoint) {
			b.Recv(0, Key(0), wire.Feature, make([]byte, 20))
			send(a, 0, 10, wire.Feature)
		}},
		{"size, sent first", "rank 0 sent 10 bytes where rank 1 asked for 0", func(a, b wire.Endpoint) {
			send(a, 0, 10, wire.Feature).Wait(context.Background())
			b.Recv(0, Key(0), wire.Feature, nil)
		}},
		{"size, more than the most", "rank 0 sent 10 bytes where rank 1 asked for at most 9", func(a, b wire.Endpoint) {
			b.RecvAtMost(0, Key(0), wire.Feature, make([]byte, 9))
			send(a, 0, 10, wire.Feature)
		}},
		{"size, more than the most, sent first", "rank 0 sent 10 bytes where rank 1 asked for at most 9",
			func(a, b wire.Endpoint) {
				send(a, 0, 10, wire.Feature).Wait(context.Background())
				b.RecvAtMost(0, Key(0), wire.Feature, make([]byte, 9))
			}},
		{"kind", "rank 0 sent gradient where rank 1 asked for feature", func(a, b wire.Endpoint) {
			b.Recv(0, Key(0), wire.Feature, make([]byte, 10))
			send(a, 0, 10, wire.Gradient)
		}},
		{"name", "two messages from rank 0 to rank 1 have the same key", func(a, b wire.Endpoint) {
			send(a, 0, 10, wire.Feature)
			send(a, 0, 10, wire.Feature)
		}},
		{"name, large", "two messages from rank 0 to rank 1 have the same key", func(a, b wire.Endpoint) {
			send(a, 0, 1<<20, wire.Feature)
			send(a, 0, 1<<20, wire.Feature)
		}},
	}
	for _, c := range cases {
		eps := tr.group(t, 3, wire.DefaultOptions())
		c.do(eps[0], eps[1])
		for _, e := range eps {
			select {
			case <-e.Done():
			case <-Soon(t).Done():
				t.Fatalf("%s: rank %d did not notice", c.name, e.Rank())
			}
			if !strings.Contains(e.Err().Error(), c.want) {
				t.Errorf("%s: rank %d: %v\nexpected %q", c.name, e.Rank(), e.Err(), c.want)
			}
			var f *wire.Failure
			if e.Rank() != 1 && (!errors.As(e.Err(), &f) || f.Rank != 1) {
				t.Errorf("%s: rank %d does not name rank 1: %v", c.name, e.Rank(), e.Err())
			}
		}
	}
}

func testTwoReceives(t *testing.T, tr Transport) {
	eps := tr.group(t, 2, wire.DefaultOptions())
	first := eps[1].Recv(0, Key(0), wire.Control, make([]byte, 1))
	if err := eps[1].Recv(0, Key(0), wire.Control, make([]byte, 1)).Wait(Soon(t)); err == nil ||
		!strings.Contains(err.Error(), "two receives for one message from rank 0") {
		t.Error(err)
	}
	eps[0].Send(1, Key(0), wire.Control, []byte{7})
	if err := first.Wait(Soon(t)); err != nil {
		t.Error(err)
	}
	if err := eps[0].Send(2, Key(0), wire.Control, nil).Wait(Soon(t)); err == nil ||
		err.Error() != "wire: there is no rank 2 among 2" {
		t.Error(err)
	}
}

func testDeadline(t *testing.T, tr Transport) {
	opt := wire.DefaultOptions()
	opt.Timeout = time.Millisecond
	eps := tr.group(t, 2, opt)
	k := wire.Key{Coflow: coflow.ID{Type: coflow.Rows, Epoch: 12, Layer: 1}, Step: 3}
	err := eps[1].Recv(0, k, wire.Activation, make([]byte, 8)).Wait(context.Background())
	var late *wire.Timeout
	if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) || late.Rank != 1 || late.Peer != 0 {
		t.Fatal(err)
	}
	want := fmt.Sprintf("rank 1 waited %v to receive from %s: activation (rows, epoch 12, layer 1, step 3)",
		late.Waited.Round(time.Millisecond), peerName(0, late.PeerAddr))
	if err.Error() != want {
		t.Errorf("%v\nexpected %s", err, want)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("interrupted by the user")
	cancel(cause)
	if err := eps[1].Recv(0, Key(9), wire.Activation, make([]byte, 8)).Wait(ctx); err != cause {
		t.Error(err)
	}
}

// A rank that closes in good order is missed only by those who still want something.
func testPeerCloses(t *testing.T, tr Transport) {
	eps := tr.group(t, 3, wire.DefaultOptions())
	ctx := Soon(t)
	last := Payload(0, 1, 0, 3<<20)
	eps[0].Send(1, Key(0), wire.Feature, last)
	missing := eps[1].Recv(0, Key(1), wire.Feature, make([]byte, 1))
	if err := eps[0].Close(); err != nil {
		t.Fatal(err)
	}
	var lost *wire.PeerLost
	if err := missing.Wait(ctx); !errors.As(err, &lost) || lost.Peer != 0 || !errors.Is(err, wire.ErrPeerClosed) {
		t.Error(err)
	}
	into := make([]byte, len(last))
	if err := eps[1].Recv(0, Key(0), wire.Feature, into).Wait(ctx); err != nil || !bytes.Equal(into, last) {
		t.Error("the last words of a rank were lost:", err)
	}
	if err := eps[1].Recv(0, Key(2), wire.Feature, into).Wait(ctx); !errors.Is(err, wire.ErrPeerClosed) {
		t.Error(err)
	}
	if err := eps[1].Send(0, Key(3), wire.Feature, into).Wait(ctx); !errors.Is(err, wire.ErrPeerClosed) {
		t.Error(err)
	}
	if err := eps[0].Send(1, Key(3), wire.Feature, into).Wait(ctx); err != wire.ErrClosed {
		t.Error(err)
	}
	eps[1].Send(2, Key(4), wire.Feature, last)
	if err := eps[2].Recv(1, Key(4), wire.Feature, into).Wait(ctx); err != nil {
		t.Error("the others are disturbed:", err)
	}
	if err := eps[1].Err(); err != nil {
		t.Error(err)
	}
}

// The first cause is everybody's, whatever else breaks in its wake.
func testFailureReachesAll(t *testing.T, tr Transport) {
	for range 5 {
		eps := tr.group(t, 4, wire.DefaultOptions())
		var pending []*wire.Pending
		for _, e := range eps {
			for p := range eps {
				pending = append(pending, e.Recv(p, Key(0), wire.Feature, make([]byte, 5<<20)))
				if p != 3 { // a message half-way, or not begun
					pending = append(pending, e.Send(p, Key(1), wire.Feature, make([]byte, 5<<20)))
				}
			}
		}
		cause := errors.New("disk full: part-3/features.npy")
		eps[3].Fail(cause)
		eps[3].Fail(errors.New("too late"))
		for _, e := range eps {
			<-e.Done()
		}
		for _, p := range pending {
			select {
			case <-p.Done():
			case <-Soon(t).Done():
				t.Fatal("something is still pending")
			}
		}
		if err := eps[3].Err(); err != cause {
			t.Error(err)
		}
		for _, e := range eps[:3] {
			if err := e.Err(); err.Error() != "rank 3 failed: disk full: part-3/features.npy" {
				t.Errorf("rank %d: %v", e.Rank(), err)
			}
			if err := e.Send(0, Key(7), wire.Feature, nil).Wait(Soon(t)); err != e.Err() {
				t.Error(err)
			}
			if err := e.Close(); err != e.Err() {
				t.Error(err)
			}
		}
	}
}

// An urgent message does not wait for a large one that left before it. On a busy machine
// the large one may be there before the urgent one is sent, so there are several of them.
func testOvertaking(t *testing.T, tr Transport) {
	if !tr.Streams {
		t.Skip("messages take no time")
	}
	eps := tr.group(t, 2, wire.DefaultOptions())
	ctx := Soon(t)
	large := make([]byte, 64<<20)
	for i := range uint32(50) {
		bulk, urgent := wire.Key{Coflow: coflow.ID{Type: coflow.Bulk},
			Step: i}, wire.Key{Coflow: coflow.ID{Type: coflow.Control}, Step: i}
		slow := eps[1].Recv(0, bulk, wire.Topology, make([]byte, len(large)))
		quick := eps[1].Recv(0, urgent, wire.Control, make([]byte, 100))
		eps[0].Send(1, bulk, wire.Topology, large)
		eps[0].Send(1, urgent, wire.Control, make([]byte, 100))
		if err := quick.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		first := !isDone(slow)
		if err := slow.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if first {
			return
		}
	}
	t.Error("large messages always came first")
}

// In the order of sending nothing overtakes: when the small message is there, all of the
// large one has left. What the network holds of it is far less than half.
func testFIFO(t *testing.T, tr Transport) {
	opt := wire.DefaultOptions()
	opt.Order = coflow.FIFO
	eps := tr.group(t, 2, opt)
	ctx := Soon(t)
	large := make([]byte, 64<<20)
	for i := range uint32(3) {
		bulk, urgent := wire.Key{Coflow: coflow.ID{Type: coflow.Bulk},
			Step: i}, wire.Key{Coflow: coflow.ID{Type: coflow.Control}, Step: i}
		var arrived atomic.Int64
		slow := eps[1].RecvAdd(0, bulk, wire.Topology, make([]byte, len(large)),
			func(into, part []byte) { arrived.Add(int64(len(part))) })
		quick := eps[1].Recv(0, urgent, wire.Control, make([]byte, 100))
		eps[0].Send(1, bulk, wire.Topology, large)
		eps[0].Send(1, urgent, wire.Control, make([]byte, 100))
		if err := quick.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if n := arrived.Load(); n < int64(len(large))/2 {
			t.Errorf("a small message came when %d of %d bytes sent before it had", n, len(large))
		}
		if err := slow.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// Close ends though the peer never takes what was sent to it.
func testCloseUnread(t *testing.T, tr Transport) {
	opt := wire.DefaultOptions()
	opt.UnexpectedLimit, opt.Timeout, opt.Linger = 1<<10, 50*time.Millisecond, 50*time.Millisecond
	eps := tr.Open(t, 2, opt)
	for step := range 8 {
		eps[0].Send(1, Key(step), wire.Feature, make([]byte, 1<<20))
	}
	closed := make(chan struct{})
	go func() {
		eps[0].Close()
		close(closed)
	}()
	select {
	case <-closed:
		CloseAll(eps)
	case <-Soon(t).Done():
		t.Error("Close waits for ever")
	}
}

func peerName(rank int, addr string) string {
	if addr == "" {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d (%s)", rank, addr)
}
