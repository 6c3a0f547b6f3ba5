package mpi

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"starling/wire"
	"starling/wire/wiretest"
)

// fakeMPI is a library of MPI for ranks of this process: what MPI promises, and no
// more. Messages of one tag between two ranks keep their order, others do not; small
// ones leave at once, large ones when they are received; things move only when test
// is called, and not every time.
type fakeMPI struct {
	sync.Mutex
	ranks  []*fakeRank
	random *rand.Rand
	broken error // what all calls return from now on
}

type fakeRank struct {
	net     *fakeMPI
	rank    int
	next    request
	done    map[request]bool
	arrived []*fakeSend
	posted  []*fakeReceive
}

type fakeSend struct {
	from, tag int
	bytes     []byte
	by        *fakeRank
	request   request
}

type fakeReceive struct {
	from, tag int
	into      []byte
	request   request
}

// fakeEager is how large a small message is.
const fakeEager = 5000

func newFakeMPI(n int) *fakeMPI {
	f := &fakeMPI{random: rand.New(rand.NewPCG(1, uint64(n)))}
	for r := range n {
		f.ranks = append(f.ranks, &fakeRank{net: f, rank: r, done: map[request]bool{}})
	}
	return f
}

func (r *fakeRank) request() request {
	r.next++
	return r.next
}

func (r *fakeRank) send(buf []byte, to, tag int, sync bool) (request, error) {
	r.net.Lock()
	defer r.net.Unlock()
	s := &fakeSend{from: r.rank, tag: tag, bytes: buf, by: r, request: r.request()}
	if len(buf) <= fakeEager && !sync {
		s.bytes = append([]byte(nil), buf...)
		r.done[s.request] = true
	}
	peer := r.net.ranks[to]
	peer.arrived = append(peer.arrived, s)
	return s.request, r.net.broken
}

func (r *fakeRank) receive(buf []byte, from, tag int) (request, error) {
	r.net.Lock()
	defer r.net.Unlock()
	p := &fakeReceive{from: from, tag: tag, into: buf, request: r.request()}
	r.posted = append(r.posted, p)
	return p.request, r.net.broken
}

func (r *fakeRank) test(reqs []request) (out []int32, err error) {
	r.net.Lock()
	defer r.net.Unlock()
	if r.net.broken != nil {
		return nil, r.net.broken
	}
	for range r.net.random.IntN(3) {
		if err := r.match(); err != nil {
			return nil, err
		}
	}
	for i, q := range reqs {
		if r.done[q] && r.net.random.IntN(4) > 0 {
			delete(r.done, q)
			out = append(out, int32(i))
		}
	}
	return out, nil
}

// match brings together one send and one receive.
func (r *fakeRank) match() error {
	type lane struct{ from, tag int }
	first := map[lane]int{} // only the first of a lane may be received
	for i, s := range r.arrived {
		if _, later := first[lane{s.from, s.tag}]; !later {
			first[lane{s.from, s.tag}] = i
		}
	}
	for j, p := range r.posted {
		i, ok := first[lane{p.from, p.tag}]
		if !ok {
			continue
		}
		s := r.arrived[i]
		if len(s.bytes) > len(p.into) {
			return errors.New("message truncated")
		}
		copy(p.into, s.bytes)
		s.by.done[s.request], r.done[p.request] = true, true
		r.arrived = append(r.arrived[:i:i], r.arrived[i+1:]...)
		r.posted = append(r.posted[:j:j], r.posted[j+1:]...)
		return nil
	}
	return nil
}

func (r *fakeRank) stop(q request) error {
	r.net.Lock()
	defer r.net.Unlock()
	for j, p := range r.posted {
		if p.request == q {
			r.posted = append(r.posted[:j:j], r.posted[j+1:]...)
			r.done[q] = true
			return nil
		}
	}
	return nil
}

// join joins all ranks over MPI.
func (f *fakeMPI) join(t testing.TB, change func(*wire.Config)) ([]wire.Endpoint, []error) {
	n := len(f.ranks)
	out, errs := make([]wire.Endpoint, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		cfg := wire.Config{Options: wire.DefaultOptions(), Rank: r, Job: t.Name()}
		change(&cfg)
		wg.Go(func() {
			w := &world{api: f.ranks[r], rank: r, size: n}
			out[r], errs[r] = w.join(wiretest.Soon(t), cfg)
		})
	}
	wg.Wait()
	return out, errs
}

func openFakeMPI(t testing.TB, n int, opt wire.Options) []wire.Endpoint {
	t.Helper()
	out, errs := newFakeMPI(n).join(t, func(c *wire.Config) { c.Options = opt })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return out
}
