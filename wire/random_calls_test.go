package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	"starling/internal/testseed"
	"starling/wire"
	"starling/wire/wiretest"
)

// TestRandomCalls makes random calls in virtual time, over links on which frames overtake
// each other, to services that come at any time or never, with handlers that take their
// time, fail and panic, by callers that give up, while a rank may end; and compares every
// outcome with what the model says of it. STARLING_SEED repeats one.
func TestRandomCalls(t *testing.T) {
	first, seeds := testseed.New(t), 60
	if _, given := testseed.Given(t); given {
		seeds = 1
	}
	for i := range seeds {
		seed := first + uint64(i)
		if !t.Run(fmt.Sprintf("STARLING_SEED=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newCallModel(t, seed).run() })
		}) {
			return
		}
	}
}

// callModel is a group of ranks that serve and call at random.
type callModel struct {
	t       *testing.T
	rng     *rand.Rand
	clock   wire.Clock
	opt     wire.Options
	eps     []wire.Endpoint
	served  []map[string]*modelService // by rank
	ending  int                        // the rank that ends before the others; -1: none
	fails   bool                       // it does not close in good order
	mu      sync.Mutex
	holding map[string]int64 // bytes of responses that were not released, by server, service and caller
}

// modelService is a service as the model knows it.
type modelService struct {
	wire.Service
	after   time.Duration // when it is served; -1: never
	mu      sync.Mutex
	running int
	of      map[int]int // running, by caller
}

// plan is what a request tells its handler to do.
type plan struct {
	sleep  time.Duration
	size   int
	does   uint8 // 0: answer, 1: fail, 2: panic
	ignore bool  // that its context ends
}

func (p plan) encode(pad int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(p.sleep))
	b = binary.LittleEndian.AppendUint32(b, uint32(p.size))
	b = append(b, p.does, 0)
	if p.ignore {
		b[13] = 1
	}
	return append(b, make([]byte, pad)...)
}

func decodePlan(b []byte) plan {
	return plan{time.Duration(binary.LittleEndian.Uint64(b)), int(binary.LittleEndian.Uint32(b[8:])), b[12], b[13] == 1}
}

// answer is what a rank answers.
func (p plan) answer(server, caller int) []byte {
	b := make([]byte, p.size)
	for i := range b {
		b[i] = byte(server*31 + caller*7 + i + i>>8 + p.size)
	}
	return b
}

func newCallModel(t *testing.T, seed uint64) *callModel {
	m := &callModel{t: t, rng: rand.New(rand.NewPCG(seed, 5)), ending: -1, holding: map[string]int64{}}
	m.opt = wire.DefaultOptions()
	m.opt.Timeout = 20 * time.Millisecond
	m.opt.ResponseLimit = int64(m.between(1<<10, 1<<19))
	m.opt.Order = coflow.Orders()[m.rng.IntN(2)]
	n := 2 + m.rng.IntN(3)
	jitter := rand.New(rand.NewPCG(seed, 6)) // the clock's goroutine draws from it, not the model's
	link := wiretest.SimulatedLink{Latency: 5 * time.Microsecond, Rate: 1 << 30,
		Jitter: func() time.Duration { return time.Duration(jitter.IntN(200)) * time.Microsecond }}
	m.eps = wiretest.Simulate(t, n, m.opt, func(int, int) wiretest.SimulatedLink { return link })
	m.clock = m.eps[0].Clock()
	for range n {
		m.served = append(m.served, m.services())
	}
	if m.rng.IntN(3) == 0 {
		m.ending, m.fails = m.rng.IntN(n), m.rng.IntN(2) == 0
	}
	return m
}

func (m *callModel) between(lo, hi int) int { return lo + m.rng.IntN(hi-lo) }

func (m *callModel) services() map[string]*modelService {
	out := map[string]*modelService{}
	for _, name := range []string{"a", "b", "c"} {
		s := &modelService{after: time.Duration(m.rng.IntN(3000)) * time.Microsecond, of: map[int]int{}}
		if m.rng.IntN(5) == 0 {
			s.after = -1
		}
		s.Service = wire.Service{Name: name, MaxRequest: m.between(100, 1<<17), MaxResponse: m.between(1, 1<<18),
			Handlers: m.between(1, 4), Window: m.between(1, 5)}
		out[name] = s
	}
	return out
}

func (m *callModel) run() {
	var wg sync.WaitGroup
	for rank, e := range m.eps {
		for _, name := range []string{"a", "b", "c"} {
			if s := m.served[rank][name]; s.after >= 0 {
				wg.Go(func() {
					wire.Sleep(context.Background(), m.clock, s.after)
					if _, err := e.Serve(s.Service, m.handler(rank, s)); err != nil && e.Err() == nil {
						m.t.Error(err)
					}
				})
			}
		}
		for range 4 {
			random := rand.New(rand.NewPCG(m.rng.Uint64(), m.rng.Uint64()))
			wg.Go(func() {
				for range 12 {
					m.call(e, random)
				}
			})
		}
	}
	if m.ending >= 0 {
		after := time.Duration(m.rng.IntN(8000)) * time.Microsecond
		wg.Go(func() {
			wire.Sleep(context.Background(), m.clock, after)
			if m.fails {
				m.eps[m.ending].Fail(errors.New("the disk is full"))
			}
			m.eps[m.ending].Close()
		})
	}
	wg.Wait()
	for _, e := range m.eps {
		wg.Go(func() { e.Close() })
	}
	wg.Wait()
	for of, bytes := range m.holding {
		if bytes != 0 {
			m.t.Errorf("%s: %d bytes were not released", of, bytes)
		}
	}
}

// handler does what requests say, and checks the bounds of its service.
func (m *callModel) handler(rank int, s *modelService) wire.Handler {
	return func(ctx context.Context, r *wire.Request) (wire.Response, error) {
		s.mu.Lock()
		s.running++
		s.of[r.From]++
		if s.running > s.Handlers || s.of[r.From] > s.Window {
			m.t.Errorf("%d handlers run, %d for rank %d; there may be %d and %d", s.running, s.of[r.From], r.From,
				s.Handlers, s.Window)
		}
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.running--
			s.of[r.From]--
			s.mu.Unlock()
		}()
		p := decodePlan(r.Body)
		if p.ignore {
			ctx = context.Background()
		}
		if err := wire.Sleep(ctx, m.clock, p.sleep); err != nil {
			return wire.Response{}, err
		}
		switch p.does {
		case 1:
			return wire.Response{}, errors.New("it was told to fail")
		case 2:
			panic("it was told to panic")
		}
		return wire.Response{Kind: wire.Feature, Body: p.answer(rank, r.From),
			Release: m.hold(rank, s, r.From, p.size)}, nil
	}
}

// hold counts the bytes of a response until they are released.
func (m *callModel) hold(rank int, s *modelService, caller, size int) func() {
	of := fmt.Sprintf("rank %d, service %s, for rank %d", rank, s.Name, caller)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holding[of] += int64(size)
	if now := m.holding[of]; size <= s.MaxResponse && now > max(m.opt.ResponseLimit, int64(s.MaxResponse)) {
		m.t.Errorf("%s: %d bytes of responses wait, with a limit of %d and responses of at most %d", of, now,
			m.opt.ResponseLimit, s.MaxResponse)
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.holding[of] -= int64(size)
	}
}

// call makes one call and compares its outcome with the model's.
func (m *callModel) call(e wire.Endpoint, r *rand.Rand) {
	to, name := r.IntN(len(m.eps)), []string{"a", "b", "c"}[r.IntN(3)]
	s := m.served[to][name]
	p := plan{sleep: time.Duration(r.IntN(1500)) * time.Microsecond, size: r.IntN(s.MaxResponse + s.MaxResponse/8 + 1),
		does: uint8(max(r.IntN(12)-9, 0)), ignore: r.IntN(4) == 0}
	request := p.encode(max(0, r.IntN(s.MaxRequest+s.MaxRequest/8)-14))
	limit := 0
	if r.IntN(2) == 0 {
		limit = max(1, p.size-r.IntN(2))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	within := m.opt.Timeout
	switch r.IntN(4) {
	case 0:
		within = time.Duration(r.IntN(3000)) * time.Microsecond
		var stop context.CancelFunc
		ctx, stop = wire.WithTimeout(ctx, m.clock, within)
		defer stop()
	case 1:
		timer := m.clock.AfterFunc(time.Duration(r.IntN(3000))*time.Microsecond, cancel)
		defer timer.Stop()
	}
	begin := m.clock.Now()
	reply := e.Call(to, wire.Call{Service: name, Coflow: coflow.ID{Type: coflow.Type(r.IntN(4))}, Kind: wire.Topology,
		Request: request, Limit: limit})
	got, err := reply.Wait(ctx)
	took := wire.Since(m.clock, begin)
	if problem := m.judge(e, to, s, p, request, limit, within, took, got, err); problem != "" {
		m.t.Errorf("rank %d, service %s of rank %d, %+v: %s: %v", e.Rank(), name, to, p, problem, err)
	}
	late, stop := wire.WithTimeout(context.Background(), m.clock, m.opt.Timeout+time.Second)
	defer stop()
	select {
	case <-reply.Done():
	case <-late.Done():
		m.t.Errorf("the buffers of a call to rank %d are not free", to)
	}
}

// check says what is wrong with the outcome of a call.
func (m *callModel) judge(e wire.Endpoint, to int, s *modelService, p plan, request []byte, limit int, within,
	took time.Duration, got []byte, err error) string {
	timeout, late := errors.AsType[*wire.Timeout](err)
	answered, refused := errors.AsType[*wire.CallError](err)
	lost, gone := errors.AsType[*wire.PeerLost](err)
	failure, failed := errors.AsType[*wire.Failure](err)
	most := s.MaxResponse
	if limit > 0 {
		most = min(most, limit)
	}
	tooLong, tooMuch := len(request) > s.MaxRequest, p.size > most
	switch {
	case late:
		if timeout.Rank != e.Rank() || timeout.Peer != to || timeout.Service != s.Name || took < within {
			return fmt.Sprintf("a timeout after %v of %v", took, within)
		}
	case errors.Is(err, context.Canceled):
	case gone || failed || err == wire.ErrClosed || err != nil && strings.Contains(err.Error(), "disk is full"):
		if m.ending < 0 || gone && !failed && lost.Peer != m.ending || failed && failure.Rank != m.ending {
			return "no rank has ended, or another"
		}
	case s.after < 0:
		return "a service that there is not has answered"
	case tooLong:
		if err == nil || !strings.Contains(err.Error(), "a request of") {
			return "a request that is too long"
		}
	case refused:
		if answered.Peer != to || answered.Rank != e.Rank() || answered.Service != s.Name {
			return "the error of another call"
		}
		text := answered.Cause.Error()
		switch {
		case p.does == 1 && strings.Contains(text, "told to fail"), p.does == 2 &&
			strings.Contains(text, "told to panic"):
		case p.does == 0 && tooMuch && strings.Contains(text, "a response of"):
		default:
			return "a handler that was not told to"
		}
	case err != nil:
		return "an error of another kind"
	case p.does != 0 || tooMuch || !bytes.Equal(got, p.answer(to, e.Rank())):
		return fmt.Sprintf("another answer, of %d bytes", len(got))
	}
	return ""
}
