package wiretest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"starling/coflow"
	"starling/wire"
)

// sized is a handler that answers with as many bytes as the request says, made from the
// request's step and who asks, and counts what of it was released.
type sized struct {
	rank     int
	out      atomic.Int64 // bytes of responses that were not released
	most     atomic.Int64 // of them at any time
	released atomic.Int64 // responses
	answered atomic.Int64
}

// want is a request for a number of bytes, padded to a length.
func want(step, bytes, length int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(step))
	b = binary.LittleEndian.AppendUint32(b, uint32(bytes))
	return append(b, Payload(0, 0, step, max(length-len(b), 0))...)
}

func (s *sized) handle(_ context.Context, r *wire.Request) (wire.Response, error) {
	step, n := int(binary.LittleEndian.Uint32(r.Body)), int(binary.LittleEndian.Uint32(r.Body[4:]))
	if !bytes.Equal(r.Body, want(step, n, len(r.Body))) {
		return wire.Response{}, fmt.Errorf("request %d of rank %d is not what it sent", step, r.From)
	}
	s.answered.Add(1)
	return wire.Response{Kind: wire.Feature, Body: Payload(s.rank, r.From, step, n), Release: s.borrow(n)}, nil
}

// borrow counts bytes until they are released.
func (s *sized) borrow(n int) func() {
	for now := s.out.Add(int64(n)); ; {
		most := s.most.Load()
		if now <= most || s.most.CompareAndSwap(most, now) {
			break
		}
	}
	return func() {
		s.out.Add(int64(-n))
		s.released.Add(1)
	}
}

func serve(t *testing.T, e wire.Endpoint, s wire.Service, h wire.Handler) func() error {
	t.Helper()
	stop, err := e.Serve(s, h)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// testCalls: requests and responses of all sizes, between all ranks and each with itself,
// many at once, land where the caller says, and are counted on both ends.
func testCalls(t *testing.T, tr Transport) {
	const n, calls = 3, 27 * 3 // each rank calls each with all pairs of sizes that callOnce has
	eps := tr.group(t, n, wire.DefaultOptions())
	ctx := Soon(t)
	servers := make([]*sized, n)
	var wg sync.WaitGroup
	for rank, e := range eps {
		servers[rank] = &sized{rank: rank}
		wg.Go(func() {
			for i := range calls {
				callOnce(t, ctx, e, i%n, i/n)
			}
		})
		serve(t, e, wire.Service{Name: "sized", MaxRequest: 4 << 20, MaxResponse: 4 << 20}, servers[rank].handle)
	}
	wg.Wait()
	for rank, s := range servers {
		if s.answered.Load() != calls {
			t.Errorf("rank %d answered %d calls", rank, s.answered.Load())
		}
	}
	CloseAll(eps)
	for rank, s := range servers {
		if s.out.Load() != 0 || s.released.Load() != calls {
			t.Errorf("rank %d: %d bytes and %d of %d responses released", rank, s.out.Load(), s.released.Load(), calls)
		}
	}
	sameOnBothEnds(t, eps)
}

var callSizes = []int{0, 1, 100, 4 << 10, 5000, 64 << 10, 200 << 10, 1 << 20, 3<<20 + 5}

// callOnce makes the i-th call of a rank to another, whose response is to be returned, put
// into a buffer, or given part by part.
func callOnce(t *testing.T, ctx context.Context, e wire.Endpoint, to, i int) {
	n, length := callSizes[i%len(callSizes)], 8+callSizes[(i/3)%len(callSizes)]
	expect := Payload(to, e.Rank(), i, n)
	c := wire.Call{Service: "sized", Coflow: coflow.ID{Type: coflow.Rows, Epoch: 3, Layer: int16(i % 2)},
		Kind: wire.Topology, Request: want(i, n, length), Limit: n + i%2}
	into, parts := make([]byte, n), make([]byte, n)
	switch i % 3 {
	case 1:
		c.Into = func(bytes int) []byte { return into[:bytes] }
	case 2:
		c.Each = func(offset int64, part []byte) { copy(parts[offset:], part) }
	}
	got, err := e.Call(to, c).Wait(ctx)
	if i%3 == 2 && got == nil {
		got = parts
	}
	if err != nil || !bytes.Equal(got, expect) || i%3 == 1 && !bytes.Equal(into, expect) {
		t.Errorf("rank %d: call %d to rank %d: %v, %d bytes of %d", e.Rank(), i, to, err, len(got), n)
	}
}

// sameOnBothEnds compares what all have sent with what all have received.
func sameOnBothEnds(t *testing.T, eps []wire.Endpoint) {
	t.Helper()
	sent, received := wire.Counts{}, wire.Counts{}
	for _, e := range eps {
		for entry, c := range e.Ledger().Counts() {
			into := received
			if entry.Sent {
				into = sent
			}
			entry.Sent = false
			n := into[entry]
			into[entry] = wire.Count{Messages: n.Messages + c.Messages, Bytes: n.Bytes + c.Bytes}
		}
	}
	if d := sent.Sub(received); len(d) > 0 {
		t.Errorf("sent but not received: %v", d)
	}
	if d := received.Sub(sent); len(d) > 0 {
		t.Errorf("received but not sent: %v", d)
	}
}

// awaitSent returns when that many messages of a kind have been sent. Calls are, as soon as the window has a place: if
// all its places are taken while none of these calls is answered, no earlier one is under way, also none that was
// cancelled.
func awaitSent(t *testing.T, ctx context.Context, e wire.Endpoint, kind wire.Kind, count int64) {
	t.Helper()
	for sent := int64(0); sent != count; {
		if wire.Sleep(ctx, e.Clock(), 100*time.Microsecond); ctx.Err() != nil {
			t.Fatalf("%d of %d calls are sent", sent, count)
		}
		sent = 0
		for entry, c := range e.Ledger().Counts() {
			if entry.Sent && entry.Kind == kind {
				sent += c.Messages
			}
		}
	}
}

// testNotServed: a call waits for its service; when none is served in time, it says so.
func testNotServed(t *testing.T, tr Transport) {
	eps := tr.group(t, 2, wire.DefaultOptions())
	r := eps[0].Call(1, wire.Call{Service: "late", Kind: wire.Topology, Request: want(0, 10, 0)})
	ctx, cancel := wire.WithTimeout(context.Background(), eps[0].Clock(), 5*time.Millisecond)
	defer cancel()
	_, err := eps[0].Call(1, wire.Call{Service: "none", Kind: wire.Topology}).Wait(ctx)
	timeout, ok := errors.AsType[*wire.Timeout](err)
	if !ok || timeout.Rank != 0 || timeout.Peer != 1 || timeout.Service != "none" ||
		!strings.Contains(err.Error(), `"none" is not served there`) {
		t.Error(err)
	}
	serve(t, eps[1], wire.Service{Name: "late"}, (&sized{rank: 1}).handle)
	if b, err := r.Wait(Soon(t)); err != nil || len(b) != 10 {
		t.Error(len(b), err)
	}
}

// testSlowHandler: a handler that waits holds up neither another service nor messages; when
// its caller gives up, its context ends, and what it answers is dropped.
func testSlowHandler(t *testing.T, tr Transport) {
	eps := tr.group(t, 2, wire.DefaultOptions())
	ctx := Soon(t)
	entered, ended := make(chan struct{}, 10), make(chan error, 10)
	var freed atomic.Int32
	serve(t, eps[1], wire.Service{Name: "slow", Handlers: 1, Window: 2},
		func(ctx context.Context, r *wire.Request) (wire.Response, error) {
			if len(r.Body) > 0 {
				return wire.Response{Body: r.Body}, nil
			}
			entered <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return wire.Response{Body: make([]byte, 1<<20), Release: func() { freed.Add(1) }}, nil
		})
	serve(t, eps[1], wire.Service{Name: "quick"}, (&sized{rank: 1}).handle)
	late, cancel := context.WithCancel(ctx)
	slow := eps[0].Call(1, wire.Call{Service: "slow"})
	<-entered
	behind := eps[0].Call(1, wire.Call{Service: "slow"})
	outside := eps[0].Call(1, wire.Call{Service: "slow", Request: []byte("third")}) // beyond the window
	callOther(t, ctx, eps)
	cancel()
	if _, err := slow.Wait(late); !errors.Is(err, context.Canceled) {
		t.Error("cancelled:", err)
	}
	if err := <-ended; err == nil {
		t.Error("the handler's context has not ended")
	}
	<-entered
	behind.Cancel()
	if _, err := behind.Wait(ctx); err == nil {
		t.Error("a call that was cancelled was answered")
	}
	<-ended
	if b, err := outside.Wait(ctx); err != nil || string(b) != "third" {
		t.Errorf("the call behind those that were cancelled: %q, %v", b, err)
	}
	<-slow.Done()
	<-behind.Done()
	CloseAll(eps)
	if freed.Load() != 2 {
		t.Errorf("%d of 2 responses released", freed.Load())
	}
}

// callOther uses what a slow handler must not hold up.
func callOther(t *testing.T, ctx context.Context, eps []wire.Endpoint) {
	t.Helper()
	sized := &sized{rank: 0}
	stop := serve(t, eps[0], wire.Service{Name: "back"}, sized.handle)
	for i := range 20 {
		eps[1].Send(0, Key(i), wire.Activation, Payload(1, 0, i, 1000))
		into := make([]byte, 1000)
		if err := eps[0].Recv(1, Key(i), wire.Activation, into).Wait(ctx); err != nil ||
			!bytes.Equal(into, Payload(1, 0, i, 1000)) {
			t.Error("message:", err)
		}
		if b, err := eps[0].Call(1, wire.Call{Service: "quick", Request: want(i, 100, 0)}).Wait(ctx); err != nil ||
			!bytes.Equal(b, Payload(1, 0, i, 100)) {
			t.Error("another service:", err)
		}
		if _, err := eps[1].Call(0, wire.Call{Service: "back", Request: want(i, 100, 0)}).Wait(ctx); err != nil {
			t.Error("the other way:", err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// testCallDeadline: who waited for whom, for which service and how long.
func testCallDeadline(t *testing.T, tr Transport) {
	opt := wire.DefaultOptions()
	opt.Timeout = 20 * time.Millisecond
	eps := tr.group(t, 2, opt)
	entered := make(chan struct{}, 4)
	serve(t, eps[1], wire.Service{Name: "slow", Window: 1}, func(ctx context.Context, r *wire.Request) (wire.Response,
		error) {
		entered <- struct{}{}
		<-ctx.Done()
		return wire.Response{}, nil
	})
	first := eps[0].Call(1, wire.Call{Service: "slow", Kind: wire.Topology,
		Coflow: coflow.ID{Type: coflow.Rows, Epoch: 4, Layer: -1}})
	<-entered
	second := eps[0].Call(1, wire.Call{Service: "slow"})
	for _, c := range []struct {
		*wire.Reply
		want string
	}{{second, `: 1 call of "slow" under way`}, {first, `: "slow", topology (rows, epoch 4)`}} {
		_, err := c.Wait(context.Background())
		late, ok := errors.AsType[*wire.Timeout](err)
		if !ok || late.Rank != 0 || late.Peer != 1 || late.Service != "slow" || late.Waited < opt.Timeout ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %s", err, c.want)
		}
	}
}

// testCallErrors: what a handler says is wrong reaches the caller, with who said it.
func testCallErrors(t *testing.T, tr Transport) {
	eps := tr.group(t, 3, wire.DefaultOptions())
	ctx := Soon(t)
	serve(t, eps[2], wire.Service{Name: "odd", MaxRequest: 100, MaxResponse: 1000},
		func(_ context.Context, r *wire.Request) (wire.Response, error) {
			switch string(r.Body) {
			case "panic":
				panic("out of range")
			case "long":
				return wire.Response{Body: make([]byte, 1001)}, nil
			case "500":
				return wire.Response{Body: make([]byte, 500)}, nil
			}
			return wire.Response{}, fmt.Errorf("no vertex %s", r.Body)
		})
	for _, c := range []struct {
		request string
		limit   int
		into    func(int) []byte
		want    string
	}{
		{"12", 0, nil, "no vertex 12"},
		{"panic", 0, nil, "its handler panicked: out of range"},
		{"long", 0, nil, "a response of 1001 bytes, more than the 1000"},
		{"500", 499, nil, "a response of 500 bytes, more than the 499"},
		{"500", 500, func(int) []byte { return nil }, "no buffer for a response of this length"},
		{strings.Repeat("x", 101), 0, nil, "a request of 101 bytes"},
	} {
		for _, e := range eps {
			_, err := e.Call(2, wire.Call{Service: "odd", Request: []byte(c.request), Limit: c.limit,
				Into: c.into}).Wait(ctx)
			answered, ok := errors.AsType[*wire.CallError](err)
			if err == nil || !strings.Contains(err.Error(), c.want) || ok &&
				(answered.Peer != 2 || answered.Rank != e.Rank() || answered.Service != "odd") {
				t.Errorf("rank %d: %.20q: %v, expected %s", e.Rank(), c.request, err, c.want)
			}
		}
	}
	for _, bad := range []wire.Call{{}, {Service: strings.Repeat("s", 65)}, {Service: "odd", Limit: -1}} {
		if _, err := eps[0].Call(2, bad).Wait(ctx); err == nil {
			t.Errorf("%+v was answered", bad)
		}
	}
	if _, err := eps[0].Call(3, wire.Call{Service: "odd"}).Wait(ctx); err == nil ||
		err.Error() != "wire: there is no rank 3 among 3" {
		t.Error(err)
	}
	if _, err := eps[2].Serve(wire.Service{Name: "odd"}, nil); err == nil {
		t.Error("a service was served twice")
	}
	if err := eps[1].Err(); err != nil {
		t.Error(err)
	}
}

// testCallBackPressure: however many call at once, a service runs at most its handlers and has
// at most the limit of responses, and all are answered.
func testCallBackPressure(t *testing.T, tr Transport) {
	opt := wire.DefaultOptions()
	opt.ResponseLimit = 2 << 20
	eps := tr.group(t, 3, opt)
	ctx := Soon(t)
	s := &sized{rank: 0}
	var running, most atomic.Int32
	serve(t, eps[0], wire.Service{Name: "large", MaxResponse: 1 << 20, Handlers: 2, Window: 3},
		func(ctx context.Context, r *wire.Request) (wire.Response, error) {
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			defer running.Add(-1)
			return s.handle(ctx, r)
		})
	var wg sync.WaitGroup
	for _, e := range eps {
		for i := range 20 {
			wg.Go(func() {
				if b, err := e.Call(0, wire.Call{Service: "large", Request: want(i, 1<<20, 0)}).Wait(ctx); err != nil ||
					!bytes.Equal(b, Payload(0, e.Rank(), i, 1<<20)) {
					t.Errorf("rank %d: %v", e.Rank(), err)
				}
			})
		}
	}
	wg.Wait()
	if most.Load() > 2 || s.most.Load() > int64(len(eps))*opt.ResponseLimit {
		t.Errorf("%d handlers and %d bytes at once", most.Load(), s.most.Load())
	}
}

// testServerEnds: calls to a rank that closes or fails end, with its name.
func testServerEnds(t *testing.T, tr Transport) {
	for _, fails := range []bool{false, true} {
		eps := tr.group(t, 3, wire.DefaultOptions())
		entered := make(chan struct{}, 3)
		serve(t, eps[2], wire.Service{Name: "slow", Window: 1},
			func(ctx context.Context, r *wire.Request) (wire.Response, error) {
				entered <- struct{}{}
				<-ctx.Done()
				return wire.Response{Body: make([]byte, 100)}, nil
			})
		replies := []*wire.Reply{eps[0].Call(2, wire.Call{Service: "slow"})}
		<-entered
		replies = append(replies, eps[0].Call(2, wire.Call{Service: "slow"}),
			eps[0].Call(2, wire.Call{Service: "none"}))
		if fails {
			eps[2].Fail(errors.New("disk full"))
		} else if err := eps[2].Close(); err != nil {
			t.Error(err)
		}
		for i, r := range replies {
			_, err := r.Wait(Soon(t))
			lost, closed := errors.AsType[*wire.PeerLost](err)
			failure, failed := errors.AsType[*wire.Failure](err)
			switch {
			case fails && failed && failure.Rank == 2 && strings.Contains(err.Error(), "disk full"):
			case fails && closed && lost.Peer == 2: // the request was on its way
			case !fails && closed && lost.Peer == 2 && errors.Is(err, wire.ErrPeerClosed):
			default:
				t.Errorf("fails=%v, call %d: %v", fails, i, err)
			}
		}
		if _, err := eps[0].Call(2, wire.Call{Service: "slow"}).Wait(Soon(t)); err == nil {
			t.Error("a rank that has ended answers")
		}
		if !fails {
			serve(t, eps[1], wire.Service{Name: "sized"}, (&sized{rank: 1}).handle)
			callOnce(t, Soon(t), eps[0], 1, 2)
		}
		CloseAll(eps)
	}
}

// testCallerEnds: the handlers of a caller that has gone end, and others are answered.
func testCallerEnds(t *testing.T, tr Transport) {
	eps := tr.group(t, 3, wire.DefaultOptions())
	entered, ended := make(chan struct{}), make(chan struct{})
	serve(t, eps[0], wire.Service{Name: "slow"}, func(ctx context.Context, r *wire.Request) (wire.Response, error) {
		close(entered)
		<-ctx.Done()
		close(ended)
		return wire.Response{Body: make([]byte, 1<<20)}, nil
	})
	serve(t, eps[0], wire.Service{Name: "sized"}, (&sized{rank: 0}).handle)
	eps[1].Call(0, wire.Call{Service: "slow"})
	<-entered
	if err := eps[1].Close(); err != nil {
		t.Error(err)
	}
	<-ended
	callOnce(t, Soon(t), eps[2], 0, 2)
	if err := eps[0].Err(); err != nil {
		t.Error(err)
	}
}

// testServiceStops: calls to a service that was stopped are refused, until it is served anew.
func testServiceStops(t *testing.T, tr Transport) {
	eps := tr.group(t, 2, wire.DefaultOptions())
	ctx := Soon(t)
	s := &sized{rank: 1}
	for range 3 {
		entered := make(chan struct{}, 1)
		stop := serve(t, eps[1], wire.Service{Name: "sized", Handlers: 1},
			func(ctx context.Context, r *wire.Request) (wire.Response, error) {
				if len(r.Body) > 0 {
					return s.handle(ctx, r)
				}
				entered <- struct{}{}
				<-ctx.Done()
				return wire.Response{}, context.Cause(ctx)
			})
		if _, err := eps[0].Call(1, wire.Call{Service: "sized", Request: want(1, 10, 0)}).Wait(ctx); err != nil {
			t.Error(err)
		}
		running := eps[0].Call(1, wire.Call{Service: "sized"})
		<-entered
		behind := eps[0].Call(1, wire.Call{Service: "sized"})
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, r := range []*wire.Reply{running, behind} {
			if _, err := r.Wait(ctx); err == nil || !strings.Contains(err.Error(), "it is not served any more") {
				t.Error(err)
			}
		}
	}
}

// testCallOrder: of requests that wait for a handler, the most urgent is answered first.
func testCallOrder(t *testing.T, tr Transport) {
	for _, order := range coflow.Orders() {
		opt := wire.DefaultOptions()
		opt.Order = order
		eps := tr.group(t, 2, opt)
		ctx := Soon(t)
		var mu sync.Mutex
		var got []string
		entered, gate := make(chan struct{}), make(chan struct{})
		serve(t, eps[1], wire.Service{Name: "list", Handlers: 1},
			func(_ context.Context, r *wire.Request) (wire.Response, error) {
				if len(r.Body) == 0 {
					close(entered)
					<-gate
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, string(r.Body))
				return wire.Response{}, nil
			})
		serve(t, eps[1], wire.Service{Name: "sync", Window: 1}, (&sized{rank: 1}).handle)
		replies := []*wire.Reply{eps[0].Call(1, wire.Call{Service: "list"})}
		<-entered
		sent := []coflow.ID{{Type: coflow.Bulk}, {Type: coflow.Rows, Layer: 2}, {Type: coflow.Rows},
			{Type: coflow.Control}, {Type: coflow.Bulk}}
		for i, id := range sent {
			replies = append(replies, eps[0].Call(1, wire.Call{Service: "list", Coflow: id,
				Request: fmt.Append(nil, i, id)}))
			// The next is sent when this one has come, which is when one of the same urgency
			// that was sent after it is answered.
			if _, err := eps[0].Call(1, wire.Call{Service: "sync", Coflow: id,
				Request: want(0, 0, 0)}).Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		close(gate)
		for _, r := range replies {
			if _, err := r.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		var expect []string
		at := []int{0, 1, 2, 3, 4}
		slices.SortStableFunc(at, func(a, b int) int {
			switch {
			case order.Before(sent[a], sent[b]):
				return -1
			case order.Before(sent[b], sent[a]):
				return 1
			}
			return 0
		})
		for _, i := range at {
			expect = append(expect, fmt.Sprint(i, sent[i]))
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(got[1:], expect) {
			t.Errorf("%v: answered %q\nexpected %q", order, got, expect)
		}
		CloseAll(eps)
	}
}

// testCancelStorm: calls are cancelled at any time, before and while they are sent and
// answered, and the window has all its places afterwards.
func testCancelStorm(t *testing.T, tr Transport) {
	const window = 4
	eps := tr.group(t, 2, wire.DefaultOptions())
	ctx := Soon(t)
	s := &sized{rank: 1}
	held := make(chan struct{})
	serve(t, eps[1], wire.Service{Name: "sized", MaxRequest: 4 << 20, MaxResponse: 4 << 20, Window: window,
		Handlers: window / 2}, func(ctx context.Context, r *wire.Request) (wire.Response, error) {
		if r.Kind == wire.Topology {
			<-held
		}
		return s.handle(ctx, r)
	})
	r := rand.New(rand.NewPCG(11, 12))
	var wg sync.WaitGroup
	for range 4 {
		random := rand.New(rand.NewPCG(r.Uint64(), 1))
		wg.Go(func() {
			for i := range 100 {
				n := callSizes[random.IntN(7)]
				reply := eps[0].Call(1, wire.Call{Service: "sized", Request: want(i, n, 0)})
				for range random.IntN(4) {
					wire.Sleep(ctx, eps[0].Clock(), time.Duration(random.IntN(30))*time.Microsecond)
				}
				if random.IntN(2) == 0 {
					reply.Cancel()
				}
				b, err := reply.Wait(ctx)
				if err == nil && !bytes.Equal(b, Payload(1, 0, i, n)) {
					t.Error("a response is not what was sent")
				}
				<-reply.Done()
			}
		})
	}
	wg.Wait()
	for i := range window {
		wg.Go(func() { callOnce(t, ctx, eps[0], 1, i*3) })
	}
	awaitSent(t, ctx, eps[0], wire.Topology, window)
	close(held)
	wg.Wait()
	CloseAll(eps)
	if s.out.Load() != 0 || s.released.Load() != s.answered.Load() {
		t.Errorf("%d bytes left, %d of %d responses released", s.out.Load(), s.released.Load(), s.answered.Load())
	}
	sameOnBothEnds(t, eps)
}
