package cluster

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"starling/internal/testseed"
	"starling/wire"
	"starling/wire/tcp"
)

// A whole cluster in one process and in fake time: the coordinator, members and wire
// as they are, over a network in memory, with processes that are killed, stopped and
// cut off at random moments. Whatever happens, every run ends, with the right result
// or an error that says why. Training is a number that all workers turn into the next
// one together, epoch by epoch, so that one lost or doubled step would show.
//
// STARLING_SIMULATIONS says how many; STARLING_SEED replays one, as far as the order
// in which goroutines run is the same.
func TestSimulation(t *testing.T) {
	runs := 300
	if n, err := strconv.Atoi(os.Getenv("STARLING_SIMULATIONS")); err == nil {
		runs = n
	}
	seed := testseed.New(t)
	if _, given := testseed.Given(t); given {
		runs = 1
	}
	ends := map[string]int{}
	faults, longest := 0, time.Duration(0)
	for i := range runs {
		s := newSimulation(seed + uint64(i))
		synctest.Test(t, func(t *testing.T) { s.run(t) })
		ends[s.outcome]++
		faults += len(s.plan)
		longest = max(longest, s.took)
	}
	t.Logf("seed %d: %d runs, %d faults, %v; the longest took %v", seed, runs, faults, ends, longest)
}

// simulation is one run, and what befalls it.
type simulation struct {
	seed                 uint64
	workers, epochs      int
	every                int // epochs between states
	delay, step, silence time.Duration
	plan                 []fault

	net     *fakeNet
	began   time.Time
	over    chan struct{} // closed when there is a result
	wg      sync.WaitGroup
	outcome string
	took    time.Duration

	mu struct {
		sync.Mutex
		disk   state1 // what checkpoints hold
		alive  []*process
		leader *process
	}
}

// fault is something that happens to a worker, or to the coordinator (-1), and how long
// it lasts.
type fault struct {
	at, lasts time.Duration
	what      string
	who       int
}

func (f fault) String() string {
	return fmt.Sprintf("%v: %s %d for %v", f.at, f.what, f.who, f.lasts)
}

func (s *simulation) String() string {
	return fmt.Sprintf("%d workers, %d epochs, a state every %d, delay %v, step %v, silence %v, faults %v", s.workers,
		s.epochs, s.every, s.delay, s.step, s.silence, s.plan)
}

// state1 is what a run goes on from.
type state1 struct {
	Epoch int    `json:"epoch"`
	Value uint64 `json:"value"`
}

// process is a worker or the coordinator, until it is killed.
type process struct {
	host *fakeHost
	ctx  context.Context
	end  context.CancelFunc
}

func newSimulation(seed uint64) *simulation {
	d := rand.New(rand.NewPCG(seed, 6))
	between := func(low, high time.Duration) time.Duration { return low + time.Duration(d.Int64N(int64(high-low))) }
	s := &simulation{seed: seed, workers: 1 + d.IntN(4), epochs: 5 + d.IntN(60), every: 1 + d.IntN(10),
		delay: between(10*time.Microsecond, 30*time.Millisecond),
		step:  between(time.Millisecond, 300*time.Millisecond), silence: between(2*time.Second, 10*time.Second)}
	for range d.IntN(6) {
		f := fault{at: between(0, 20*time.Second), lasts: between(0, 20*time.Second), who: d.IntN(s.workers)}
		f.what = []string{"kill", "kill", "stop", "cut", "vanish", "coordinator"}[d.IntN(6)]
		if f.what == "coordinator" {
			f.what, f.who = "kill", -1
		}
		switch d.IntN(8) {
		case 0, 1, 2:
			f.lasts = between(0, 200*time.Millisecond)
		case 3: // longer than anybody waits
			f.lasts = between(time.Minute, 5*time.Minute)
		}
		s.plan = append(s.plan, f)
	}
	return s
}

// next is the value of the epoch after this one: part is a worker's share of it.
func part(value uint64, rank, epoch int) uint64 {
	return (value ^ uint64(rank)*0x9E3779B97F4A7C15) * (uint64(epoch)<<1 | 1)
}

// right is the result of an undisturbed run.
func (s *simulation) right() (value uint64) {
	for e := range s.epochs {
		var sum uint64
		for r := range s.workers {
			sum += part(value, r, e)
		}
		value = sum
	}
	return value
}

// within bounds a whole run in fake time; nothing in it takes nearly so long.
const within = 2 * time.Hour

func (s *simulation) run(t *testing.T) {
	s.net, s.began, s.over = newFakeNet(s.delay), time.Now(), make(chan struct{})
	s.mu.alive = make([]*process, s.workers)
	var err error
	var value uint64
	s.wg.Go(func() {
		defer close(s.over)
		value, err = s.lead()
	})
	for r := range s.workers {
		s.wg.Go(func() { s.keepWorker(r) })
	}
	for _, f := range s.plan {
		s.wg.Go(func() { s.befall(f) })
	}
	select {
	case <-s.over:
	case <-time.After(within):
		panic(fmt.Sprintf("STARLING_SEED=%d hangs: %v", s.seed, s)) // and shows all goroutines
	}
	s.took = time.Since(s.began)
	s.wg.Wait()
	var died *Died
	var missing *Missing
	switch {
	case err == nil && value == s.right():
		s.outcome = "right"
	case err == nil:
		t.Errorf("STARLING_SEED=%d: the result is %x, of an undisturbed run %x: %v", s.seed, value, s.right(), s)
	case errors.As(err, &died) && strings.Contains(err.Error(), fmt.Sprintf("rank %d", died.Rank)) && died.Lost():
		s.outcome = "a worker that is lost too often is named"
	case errors.As(err, &missing) && len(missing.Ranks) > 0:
		s.outcome = "workers that do not come are named"
	default:
		t.Errorf("STARLING_SEED=%d: ended with %v: %v", s.seed, err, s)
	}
}

// befall is one fault.
func (s *simulation) befall(f fault) {
	if !s.sleep(f.at) {
		return
	}
	s.mu.Lock()
	p := s.mu.leader
	if f.who >= 0 {
		p = s.mu.alive[f.who]
	}
	s.mu.Unlock()
	if p == nil {
		return
	}
	h := p.host
	switch f.what {
	case "kill":
		h.kill()
		p.end()
	case "vanish": // the host is gone with the process
		h.set(func() { h.cut = true })
		h.kill()
		p.end()
	case "stop":
		h.set(func() { h.stopped = true })
		s.sleep(f.lasts)
		h.set(func() { h.stopped = false })
	case "cut":
		h.set(func() { h.cut = true })
		s.sleep(f.lasts)
		h.set(func() { h.cut = h.dead && h.cut })
	}
}

// sleep is false when the run has ended.
func (s *simulation) sleep(d time.Duration) bool {
	select {
	case <-s.over:
		return false
	case <-time.After(d):
		return true
	}
}

func (s *simulation) process() *process {
	p := &process{host: s.net.host()}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// meetingPort is the coordinator's, on whatever host it is.
const meetingPort = 7000

// lead coordinates, on another host after every death.
func (s *simulation) lead() (uint64, error) {
	for {
		p := s.process()
		s.mu.Lock()
		s.mu.leader = p
		s.mu.Unlock()
		value, err := s.coordinate(p)
		dead := p.ctx.Err() != nil
		p.end()
		p.host.kill()
		if !dead {
			return value, err
		}
		time.Sleep(500 * time.Millisecond) // a user starts it again, with --resume
	}
}

// coordinate is what run's recovery does.
func (s *simulation) coordinate(p *process) (uint64, error) {
	from, text := s.newest()
	at, tries := from.Epoch, 0
	co, err := Listen(Config{Addr: fmt.Sprintf("10.0.0.0:%d", meetingPort), Workers: s.workers, Job: NewSecret(),
		Version: "v", Token: []byte("secret"), Silence: s.silence,
		Again: true, Task: text, listen: p.host.listen, State: func(_ int, body json.RawMessage,
			_ []byte) {
			s.save(p, body)
		}})
	if err != nil {
		return 0, err
	}
	defer co.Close()
	for {
		results, err := co.Run(p.ctx, nil)
		var died *Died
		switch {
		case err == nil:
			return s.agreed(results)
		case p.ctx.Err() != nil || !errors.As(err, &died) || !died.Lost():
			co.RefuseLate(err, 2*time.Second, 0)
			return 0, err
		}
		if from, text = s.newest(); from.Epoch > at {
			at, tries = from.Epoch, 0
		}
		if tries++; tries > 5 {
			co.RefuseLate(err, 2*time.Second, 0)
			return 0, err
		}
		co.Next(text, nil, nil, nil)
	}
}

// agreed is the value that all ended with.
func (s *simulation) agreed(results []Result) (uint64, error) {
	var first uint64
	for r, res := range results {
		value := binary.LittleEndian.Uint64(res.Blob)
		if r == 0 {
			first = value
		}
		if value != first {
			return 0, fmt.Errorf("rank %d ended with %x, rank 0 with %x", r, value, first)
		}
	}
	return first, nil
}

func (s *simulation) newest() (state1, json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _ := json.Marshal(s.mu.disk)
	return s.mu.disk, text
}

// save keeps a state, as long as the process lives that does so.
func (s *simulation) save(p *process, body json.RawMessage) {
	var st state1
	if json.Unmarshal(body, &st) != nil || p.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	s.mu.disk = st
	s.mu.Unlock()
}

// keepWorker starts the worker of a rank, and again whenever it has ended.
func (s *simulation) keepWorker(rank int) {
	for {
		p := s.process()
		s.mu.Lock()
		s.mu.alive[rank] = p
		s.mu.Unlock()
		go func() { // no worker stays in a run that has ended
			select {
			case <-s.over:
				p.end()
			case <-p.ctx.Done():
			}
		}()
		s.worker(p, rank)
		p.end()
		p.host.kill()
		if !s.sleep(300 * time.Millisecond) {
			return
		}
	}
}

// worker is what run's Worker does.
func (s *simulation) worker(p *process, rank int) {
	for job := ""; ; {
		m, err := s.join(p, rank, job)
		if err != nil {
			return
		}
		value, err := s.train(p, m)
		if err != nil {
			m.Fail(err, false)
		} else {
			m.Done(json.RawMessage(`{}`), binary.LittleEndian.AppendUint64(nil, value))
		}
		switch {
		case p.ctx.Err() != nil:
			return
		case m.Again():
			job = m.Job
		case errors.Is(m.Err(), ErrLost):
			job = ""
		default:
			return
		}
	}
}

// join finds the coordinator, wherever it is now, and joins.
func (s *simulation) join(p *process, rank int, job string) (*Member, error) {
	for end := time.Now().Add(time.Minute); ; {
		s.mu.Lock()
		leader := s.mu.leader
		s.mu.Unlock()
		if leader == nil {
			leader = p // no coordinator is there yet
		}
		addr := net.JoinHostPort(leader.host.ip.String(), fmt.Sprint(meetingPort))
		m, err := Join(p.ctx, JoinRequest{Coordinator: addr, Rank: rank, Job: job, Version: "v",
			Token: []byte("secret"), Timeout: 5 * time.Second, Silence: s.silence,
			dial: p.host.dial, listen: func(addr string) (net.Listener, error) { return p.host.listen(addr) }})
		var refused *Refused
		again := errors.As(err, &refused) && refused.Taken() || errors.Is(err, io.EOF) ||
			errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) ||
			errors.Is(err, context.DeadlineExceeded)
		if err == nil || !again || time.Now().After(end) || p.ctx.Err() != nil {
			return m, err
		}
		if refused == nil {
			job = "" // it may be another by now
		}
		s.sleep(100 * time.Millisecond)
	}
}

// train goes through the epochs with the other workers.
func (s *simulation) train(p *process, m *Member) (uint64, error) {
	var st state1
	if err := json.Unmarshal(m.Task, &st); err != nil {
		return 0, err
	}
	end, err := s.connect(p, m)
	if err != nil {
		return 0, err
	}
	defer end.Close()
	trained := make(chan struct{})
	defer close(trained)
	go func() {
		select {
		case <-m.Ended():
			end.Fail(m.Err())
		case <-trained:
		}
	}()
	for ; st.Epoch < s.epochs; st.Epoch++ {
		if m.Rank == 0 && st.Epoch%s.every == 0 && st.Epoch > 0 {
			body, _ := json.Marshal(st)
			if err := m.Keep(body, nil); err != nil {
				return 0, err
			}
		}
		time.Sleep(s.step)
		if st.Value, err = s.epoch(end, st); err != nil {
			return 0, err
		}
	}
	return st.Value, nil
}

// epoch sums the parts of all workers.
func (s *simulation) epoch(end wire.Endpoint, st state1) (uint64, error) {
	own := part(st.Value, end.Rank(), st.Epoch)
	key := wire.Key{Step: uint32(st.Epoch)}
	sum := own
	var sent []*wire.Pending
	for peer := range end.Size() {
		if peer != end.Rank() {
			sent = append(sent, end.Send(peer, key, wire.Parameter, binary.LittleEndian.AppendUint64(nil, own)))
		}
	}
	for peer := range end.Size() {
		if peer == end.Rank() {
			continue
		}
		into := make([]byte, 8)
		if err := end.Recv(peer, key, wire.Parameter, into).Wait(context.Background()); err != nil {
			return 0, err
		}
		sum += binary.LittleEndian.Uint64(into)
	}
	for _, p := range sent {
		if err := p.Wait(context.Background()); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func (s *simulation) connect(p *process, m *Member) (wire.Endpoint, error) {
	cfg := wire.Config{Options: wire.DefaultOptions(), Rank: m.Rank, Size: len(m.Peers), Job: m.Job,
		Listener: m.Listener, Dial: p.host.dial, Token: []byte("secret"), NoSharedMemory: true}
	for _, peer := range m.Peers {
		cfg.Addrs = append(cfg.Addrs, peer.Addr)
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	joined := make(chan struct{})
	defer close(joined)
	go func() {
		select {
		case <-m.Ended():
			cancel(m.Err())
		case <-joined:
		}
	}()
	return tcp.Join(ctx, cfg)
}
