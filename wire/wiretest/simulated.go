package wiretest

import (
	"testing"
	"time"

	"starling/coflow"
	"starling/wire"
)

// SimulatedLink is one direction of the link between two ranks: a chunk occupies it for its
// length over Rate and arrives Latency later.
type SimulatedLink struct {
	Latency time.Duration
	Rate    float64 // payload bytes per second; 0: transmission takes no time
	// Jitter, if set, is added to the latency of each chunk, so that chunks overtake each other.
	Jitter func() time.Duration
	// Delay, if set, is added to the latency of a group's chunks.
	Delay func(coflow.ID) time.Duration
}

// transmission is how long a chunk occupies the link.
func (l SimulatedLink) transmission(bytes int) time.Duration {
	if l.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(bytes) / l.Rate * float64(time.Second))
}

// propagation is how long it takes from its last byte until it has arrived.
func (l SimulatedLink) propagation(id coflow.ID) time.Duration {
	d := l.Latency
	if l.Jitter != nil {
		d += l.Jitter()
	}
	if l.Delay != nil {
		d += l.Delay(id)
	}
	return d
}

// Uniform gives all links the same latency and rate.
func Uniform(latency time.Duration, rate float64) func(from, to int) SimulatedLink {
	return func(int, int) SimulatedLink { return SimulatedLink{Latency: latency, Rate: rate} }
}

// Simulate returns n endpoints that are joined by a network in virtual time, as a simulator
// would write one. Every ordered pair of ranks has a link of its own. All endpoints have one
// *wire.Virtual clock, which their Clock method returns; opt.Clock is ignored. The caller
// closes the endpoints.
//
// It must be called inside synctest.Test, with everything that runs on the endpoints: the
// clock moves to the next timer when all goroutines of the bubble wait. So computing takes no
// virtual time, transfers take what the links say, and timeouts pass at once when nothing
// else can happen. A test that trains, for example:
//
//	synctest.Test(t, func(t *testing.T) {
//		ends := wiretest.Simulate(t, 4, wire.DefaultOptions(), wiretest.Uniform(5*time.Microsecond, 1e9))
//		begin := ends[0].Clock().Now()
//		traintest.TrainOver(t, ends, parts, device, options) // closes them
//		t.Log(wire.Since(ends[0].Clock(), begin)) // virtual seconds
//	})
//
// Devices whose worker pools have goroutines must be made and closed inside the bubble too.
// The links are wire.BetweenServers, or SameHost for ranks of one server in opt.ServerOf.
func Simulate(t testing.TB, n int, opt wire.Options, link func(from, to int) SimulatedLink) []wire.Endpoint {
	t.Helper()
	if wire.Real.Now().Year() != 2000 { // where the time of a bubble starts
		t.Fatal("wiretest.Simulate is called outside synctest.Test: nothing would advance its clock")
	}
	s := &simulation{clock: wire.NewVirtual(), inboxes: make([]*wire.Inbox, n), links: make([][]*simulatedLink, n),
		stop: make(chan struct{})}
	opt.Clock = s.clock
	go s.advance()
	eps := make([]wire.Endpoint, n)
	for r := range eps {
		eps[r] = wire.NewEndpoint(r, distances(r, n, opt.ServerOf), opt,
			func(in *wire.Inbox) wire.Transport { return s.join(r, in, link) })
	}
	t.Cleanup(func() { close(s.stop) })
	return eps
}

// distances are how far each rank is from one.
func distances(rank, n int, serverOf []int) []wire.Link {
	far := make([]wire.Link, n)
	for r := range far {
		switch {
		case r == rank:
			far[r] = wire.SameProcess
		case serverOf != nil && serverOf[r] == serverOf[rank]:
			far[r] = wire.SameHost
		default:
			far[r] = wire.BetweenServers
		}
	}
	return far
}

// simulation is the network. All its events happen on the goroutine that advances the clock,
// so it needs no locks.
type simulation struct {
	clock   *wire.Virtual
	timeout time.Duration // of the endpoints
	inboxes []*wire.Inbox
	links   [][]*simulatedLink // from, to
	stop    chan struct{}
}

// advance moves the clock to the next timer whenever all goroutines wait, which is when the
// time of the bubble passes. Where nothing is to come, that time passes faster and faster,
// so that a test whose deadline is in it fails.
func (s *simulation) advance() {
	for pause := time.Duration(1); ; {
		passed, timer := wire.Alarm(wire.Real, pause) // in a bubble, its time
		select {
		case <-s.stop:
			timer.Stop()
			return
		case <-passed:
		}
		pause *= 2
		if at, ok := s.clock.Next(); ok {
			s.clock.AdvanceTo(at)
			pause = 1
		}
	}
}

// join adds a rank.
func (s *simulation) join(rank int, in *wire.Inbox, link func(from, to int) SimulatedLink) wire.Transport {
	opt := in.Options()
	s.timeout, s.inboxes[rank] = opt.Timeout, in
	for to := range s.inboxes {
		l := &simulatedLink{speed: link(rank, to), net: s, from: rank, to: to,
			queue: wire.NewQueue(opt), ended: make(chan struct{})}
		s.links[rank] = append(s.links[rank], l)
	}
	in.OnSpace(func() {
		s.clock.AfterFunc(0, func() {
			for from := range s.links {
				s.links[from][rank].retry()
			}
		})
	})
	return simulatedHost{s, rank}
}

// simulatedHost is the transport of one rank.
type simulatedHost struct {
	net  *simulation
	rank int
}

func (h simulatedHost) Carry(m *wire.Message) {
	l := h.net.links[h.rank][m.To()]
	l.queue.Put(m)
	h.net.clock.AfterFunc(0, l.send)
}

func (h simulatedHost) Fail(cause error) {
	h.others(func(l *simulatedLink) {
		l.queue.Fail(cause)
		l.closing = func() { l.inbox().PeerFailed(h.rank, cause) }
		l.send()
	})
}

func (h simulatedHost) Close() {
	h.others(func(l *simulatedLink) {
		l.queue.Close()
		l.closing = func() { l.inbox().PeerClosed(h.rank) }
		l.send()
		h.net.clock.AfterFunc(h.net.timeout, l.giveUp)
	})
}

// others calls do for every link of the host, as an event.
func (h simulatedHost) others(do func(*simulatedLink)) {
	h.net.clock.AfterFunc(0, func() {
		for to, l := range h.net.links[h.rank] {
			if to != h.rank {
				do(l)
			}
		}
	})
}

func (h simulatedHost) Wait() {
	for to, l := range h.net.links[h.rank] {
		if to != h.rank {
			<-l.ended
		}
	}
}

// simulatedLink transmits one chunk at a time; several may be in propagation.
type simulatedLink struct {
	speed       SimulatedLink
	net         *simulation
	from, to    int
	queue       *wire.Queue
	occupied    bool         // a chunk is being transmitted
	undelivered int          // chunks transmitted that have not been delivered
	held        []wire.Chunk // that have arrived, but the inbox has no space for them
	closing     func()       // tells the peer, when all has left
	over        bool
	ended       chan struct{}
}

// simulatedChunk is what a link transmits at once, so long as more urgent messages wait.
const simulatedChunk = 64 << 10

func (l *simulatedLink) inbox() *wire.Inbox { return l.net.inboxes[l.to] }

// send transmits the next chunk, unless the link is occupied or the peer has no space.
func (l *simulatedLink) send() {
	if l.occupied || len(l.held) > 0 {
		return
	}
	c, ok := l.queue.Take(simulatedChunk)
	if !ok {
		l.end()
		return
	}
	l.occupied = true
	l.undelivered++
	l.net.clock.AfterFunc(l.speed.transmission(len(c.Bytes())), func() {
		l.occupied = false
		l.net.clock.AfterFunc(l.speed.propagation(c.Coflow()), func() { l.arrive(c) })
		l.send()
	})
}

func (l *simulatedLink) arrive(c wire.Chunk) {
	h := c.Header()
	err := l.inbox().Deliver(&h, c.Bytes())
	if err == wire.ErrNoSpace && !l.over {
		l.held = append(l.held, c)
		return
	}
	if err != nil {
		err = &wire.PeerLost{Rank: l.from, Peer: l.to, Cause: err}
	}
	l.undelivered--
	l.queue.Sent(c, err)
	l.send()
}

// retry delivers what was held.
func (l *simulatedLink) retry() {
	held := l.held
	l.held = nil
	for _, c := range held {
		l.arrive(c)
	}
}

// giveUp drops what the peer did not take in time.
func (l *simulatedLink) giveUp() {
	l.over = true
	l.queue.Fail(&wire.PeerLost{Rank: l.from, Peer: l.to, Cause: wire.ErrNoSpace})
	l.retry()
}

// end tells the peer that the link has ended, if it has; the peer can send nothing more here.
func (l *simulatedLink) end() {
	if l.closing == nil || l.undelivered > 0 {
		return
	}
	l.closing()
	l.closing = nil
	close(l.ended)
	back := l.net.links[l.to][l.from]
	back.queue.Fail(&wire.PeerLost{Rank: l.to, Peer: l.from, Cause: wire.ErrPeerClosed})
	back.retry()
}
