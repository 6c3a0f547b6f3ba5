package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	"starling/internal/testseed"
	"starling/wire"
)

// flock runs f on every rank of a group, each on its goroutine, and joins the errors.
func flock(comms []*Comm, f func(c *Comm) error) error {
	errs := make([]error, len(comms))
	var all sync.WaitGroup
	for r, c := range comms {
		all.Go(func() { errs[r] = f(c) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// group is n Comms in this process.
func group(t testing.TB, n int, opt wire.Options) []*Comm {
	var comms []*Comm
	for _, ep := range wire.NewGroup(n, opt) {
		comms = append(comms, New(ep))
	}
	t.Cleanup(func() { closeAll(comms) })
	return comms
}

func closeAll(comms []*Comm) {
	for _, c := range comms {
		c.ep.Close()
	}
}

// drive runs a rank's part of a case over the wire.
func (f *fakeCase) drive(ctx context.Context, c *Comm, id coflow.ID, start bool) error {
	number, err := c.steps.take(id, 1)
	if err != nil {
		return err
	}
	l := c.numbered(number, opName{op: f.name}, id, wire.Parameter)
	f.write(&l.program)
	l.sum = f.sum
	l.bufs = append(l.bufs, f.bufs[c.Rank()]...)
	c.load(l)
	if start {
		return c.start(ctx, l).Wait(ctx)
	}
	return c.drive(ctx, l)
}

// TestLedger: over the wire the results are right too, and the ledger counts what
// was planned.
func TestLedger(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 17; n++ {
		comms := group(t, n, wire.Options{})
		id := coflow.ID{Type: coflow.Params, Layer: -1}
		eachCase(n, func(f *fakeCase) {
			before := make([][2]wire.Count, n)
			for r, c := range comms {
				before[r] = [2]wire.Count{c.ep.Ledger().Sent(), c.ep.Ledger().Received()}
			}
			start := len(f.name)%2 == 0
			if err := flock(comms, func(c *Comm) error { return f.drive(t.Context(), c, id, start) }); err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
			if err := f.check(); err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
			for r, c := range comms {
				plan := f.plan(r)
				expectCount(t, f.name, r, before[r][0], c.ep.Ledger().Sent(), plan.Sent)
				expectCount(t, f.name, r, before[r][1], c.ep.Ledger().Received(), plan.Received)
			}
		})
	}
}

func expectCount(t *testing.T, name string, rank int, before, after wire.Count, plan Traffic) {
	t.Helper()
	if after.Messages-before.Messages != int64(plan.Messages) || after.Bytes-before.Bytes != plan.Bytes {
		t.Fatalf("%s, rank %d: from %+v to %+v, planned %+v", name, rank, before, after, plan)
	}
}

// slowEndpoint takes a random time, of a fake clock, over every message.
type slowEndpoint struct {
	wire.Endpoint
	mu  sync.Mutex
	rng *rand.Rand
}

func (e *slowEndpoint) dawdle() {
	e.mu.Lock()
	d := time.Duration(e.rng.IntN(4)) * time.Duration(e.rng.IntN(50)) * time.Millisecond
	e.mu.Unlock()
	time.Sleep(d)
}

func (e *slowEndpoint) Send(to int, key wire.Key, kind wire.Kind, b []byte) *wire.Pending {
	e.dawdle()
	return e.Endpoint.Send(to, key, kind, b)
}

func (e *slowEndpoint) Recv(from int, key wire.Key, kind wire.Kind, b []byte) *wire.Pending {
	e.dawdle()
	return e.Endpoint.Recv(from, key, kind, b)
}

func (e *slowEndpoint) RecvAdd(from int, key wire.Key, kind wire.Kind, b []byte,
	add func(into, part []byte)) *wire.Pending {
	e.dawdle()
	return e.Endpoint.RecvAdd(from, key, kind, b, add)
}

// TestSchedules: the driver and the wire together, under random schedules of
// goroutines and with hardly any space for early messages, always finish.
func TestSchedules(t *testing.T) {
	first, count := testseed.New(t), runs(t, 2500)/5
	if _, given := testseed.Given(t); given {
		count = 1
	}
	for i := range count {
		seed := first + i
		synctest.Test(t, func(t *testing.T) { randomSchedule(t, seed) })
		if t.Failed() {
			t.Fatalf("run it again with STARLING_SEED=%d", seed)
		}
	}
}

func randomSchedule(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	n := 1 + rng.IntN(9)
	opt := wire.Options{Timeout: time.Hour}
	if rng.IntN(2) == 0 {
		opt.UnexpectedLimit = 1
	}
	var comms []*Comm
	for r, ep := range wire.NewGroup(n, opt) {
		comms = append(comms, New(&slowEndpoint{Endpoint: ep, rng: rand.New(rand.NewPCG(seed, uint64(r)))}))
	}
	defer closeAll(comms)
	cases := make([]*fakeCase, 1+rng.IntN(4))
	for i := range cases {
		cases[i] = drawCase(rng, n)
	}
	err := flock(comms, func(c *Comm) error {
		errs := make(chan error, len(cases))
		for i, f := range cases {
			id := coflow.ID{Type: coflow.Rows, Layer: int16(i)}
			go func() { errs <- f.drive(t.Context(), c, id, i%2 == 0) }()
		}
		var all error
		for range cases {
			all = errors.Join(all, <-errs)
		}
		return all
	})
	for _, f := range cases {
		if err == nil {
			err = f.check()
		}
	}
	if err != nil {
		t.Errorf("seed %d, %s: %v", seed, names(cases), err)
	}
}

// TestTimeoutNames: a rank that waits in vain says for whom, for what, how long.
func TestTimeoutNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		comms := group(t, 3, wire.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		id := coflow.ID{Type: coflow.Params, Epoch: 12, Layer: -1}
		x := make([]float32, 5)
		blocking := comms[1].AllReduce(ctx, id, wire.Parameter, x, Whole)
		id.Layer = 3
		started := comms[2].StartAllReduce(t.Context(), id, wire.Parameter, slices.Clone(x), Ring)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for _, err := range []error{blocking, started.Wait(ctx)} {
			timeout, ok := errors.AsType[*wire.Timeout](err)
			if !ok || timeout.Waited != 10*time.Second {
				t.Fatalf("got %v, expected a timeout after 10s", err)
			}
			for _, part := range []string{"all-reduce (", "of 20 bytes", "epoch 12", "waited 10s", "from rank",
				"parameter"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		}
	})
}

// TestFailures: a rank that fails, or leaves, ends what the others wait for, and no
// goroutine stays behind (or synctest would say so).
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("out of cake")
		comms := group(t, 3, wire.Options{})
		id := coflow.ID{Type: coflow.Params, Layer: -1}
		var handles []*Handle
		for _, c := range comms[1:] {
			handles = append(handles, c.StartAllReduce(t.Context(), id, wire.Parameter, make([]float32, 1<<20), Auto))
		}
		comms[0].ep.Fail(cause)
		for _, h := range handles {
			if err := h.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "out of cake") {
				t.Errorf("got %v, expected the cause", err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		comms := group(t, 2, wire.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		h := comms[0].StartAllToAll(ctx, coflow.ID{}, wire.Activation, [][]byte{nil, {1}}, [][]byte{nil, {0}})
		g := comms[0].StartAllReduce(ctx, coflow.ID{Layer: 1}, wire.Activation, make([]float32, 10), Ordered)
		cancel(errors.New("interrupted"))
		if err := h.Wait(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("got %v, expected an interruption", err)
		}
		if err := g.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("got %v, expected an interruption", err)
		}
	})
}

// idleEndpoint has sent and received everything already.
type idleEndpoint struct {
	wire.Endpoint
	rank, size int
	done       *wire.Pending
}

func (e *idleEndpoint) Rank() int                                                      { return e.rank }
func (e *idleEndpoint) Size() int                                                      { return e.size }
func (e *idleEndpoint) Send(int, wire.Key, wire.Kind, []byte) *wire.Pending            { return e.done }
func (e *idleEndpoint) Recv(from int, _ wire.Key, _ wire.Kind, _ []byte) *wire.Pending { return e.done }
func (e *idleEndpoint) RecvAdd(int, wire.Key, wire.Kind, []byte, func(into, part []byte)) *wire.Pending {
	return e.done
}

// TestNoGarbage: beside what the wire needs for a message, a call takes no memory.
func TestNoGarbage(t *testing.T) {
	alone := wire.NewGroup(1, wire.Options{})[0]
	defer alone.Close()
	done := alone.Send(0, wire.Key{}, wire.Control, nil)
	alone.Recv(0, wire.Key{}, wire.Control, nil)
	c := New(&idleEndpoint{Endpoint: alone, rank: 2, size: 6, done: done})
	x, bufs := make([]float32, 200_000), make([][]byte, 6)
	for i := range bufs {
		bufs[i] = make([]byte, 10)
	}
	id := coflow.ID{}
	calls := map[string]func() error{
		"all-gather": func() error { return c.AllGather(t.Context(), id, wire.Control, bufs) },
		"all-to-all": func() error { return c.AllToAll(t.Context(), id, wire.Control, bufs, bufs) },
		"barrier":    func() error { return c.Barrier(t.Context(), id) },
		"broadcast":  func() error { return c.Broadcast(t.Context(), id, wire.Control, 0, bufs[0]) },
	}
	for _, alg := range reducers {
		calls[fmt.Sprint("all-reduce ", alg)] = func() error {
			return c.AllReduce(t.Context(), id, wire.Parameter, x,
				alg)
		}
	}
	for name, call := range calls {
		if allocs := testing.AllocsPerRun(20, func() {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}); allocs > 2 {
			t.Errorf("%s allocates %v times", name, allocs)
		}
	}
}
