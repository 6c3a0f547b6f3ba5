package netsim

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"starling/coflow"
	"starling/wire"
)

// Options say how ranks use a simulated network.
type Options struct {
	wire.Options // of the endpoints; Clock is ignored
	// Chunk is how many bytes of a message leave before the most urgent message is chosen
	// again; 0: 64 KiB at packet level, whole messages at flow level.
	Chunk int
	// DSCP is the code point of a message's packets, 0 to 63, the higher the more urgent.
	// Messages between two ranks with different ones have connections of their own. nil:
	// TypeDSCP, or one for all where Order is coflow.FIFO.
	DSCP func(coflow.ID) uint8
	// Switch, if set, makes the switches of the network add rows (package innet): endpoints
	// are an innet.Fabric.
	Switch *SwitchOptions
	// Host is what messages take beside what the network does.
	Host HostOptions
	// Settled, if set, is called when all goroutines of the bubble wait, before time passes: what they have done until
	// then does not depend on the order in which they ran. It must not block.
	Settled func()
}

// frameBytes is what precedes each chunk on a connection, as over TCP.
const frameBytes = 96

// TypeDSCP is the code point of a coflow's type: class selectors 7, 5, 3, 2 and 1.
func TypeDSCP(id coflow.ID) uint8 {
	return [...]uint8{56, 40, 24, 16, 8}[min(id.Type, coflow.Bulk)]
}

// ErrNoBubble is the error of Endpoints where virtual time cannot pass.
var ErrNoBubble = errors.New("netsim: found the host's time, want that of a bubble: call Endpoints, and everything " +
	"that runs on the endpoints, inside netsim.InVirtualTime or synctest.Test")

// Endpoints joins ranks by a simulated network; rank r is at host hosts[r], or, without hosts,
// at host r mod n.Hosts(). The caller closes all of them, and uses n only after that.
//
// All endpoints have one *wire.Virtual clock, which their Clock method returns. It moves when
// all goroutines of the bubble wait, to the next time at which something happens in the
// network or a timer fires. So computing takes no virtual time, except what Processor charges; messages take what
// the network says, those between ranks at one host none; and timeouts pass at once when nothing
// else can happen.
//
// What ranks send at one time is ordered by sender, receiver and the message's key before it
// leaves, so the order in which goroutines happen to run has no influence: two runs take the
// same picoseconds. (Calls of one rank to another that have the same service and length keep
// the order in which they were made; with coflow.FIFO so do all messages.) Links are
// wire.BetweenServers, or wire.SameHost for ranks at one host or of one server in ServerOf.
func Endpoints(n Network, hosts []int, ranks int, opt Options) ([]wire.Endpoint, error) {
	if !inBubble() {
		return nil, ErrNoBubble
	}
	c := &cluster{net: n, opt: opt, hosts: hosts, clock: wire.NewVirtual(), inboxes: make([]*wire.Inbox, ranks),
		running: ranks}
	if err := c.prepare(ranks); err != nil {
		return nil, err
	}
	eps := make([]wire.Endpoint, ranks)
	for r := range eps {
		eps[r] = wire.NewEndpoint(r, c.distances(r), c.opt.Options,
			func(in *wire.Inbox) wire.Transport { return c.join(r, in) })
		if opt.Switch != nil {
			eps[r] = &onFabric{eps[r], c, r}
		}
	}
	go c.drive()
	return eps, nil
}

// cluster is the ranks that are joined by a network. What it does with the network happens
// on the goroutine that drives; ranks leave what they want in mu.
type cluster struct {
	net     Network
	opt     Options
	hosts   []int // by rank
	clock   *wire.Virtual
	inboxes []*wire.Inbox
	ranks   []*rank
	running int             // ranks that have not ended
	arrived []arrival       // at this time, not delivered yet
	timer   bool            // a timer of the clock is due
	adding  *adding         // switches that add
	over    []chan struct{} // exchanges through them that are over at this time
	mu      struct {
		sync.Mutex
		sent   []*wire.Message
		ended  []func()
		spaces []int         // ranks whose inboxes have space again
		begun  []*switchHost // that begin an exchange
		shared *shared
	}
}

type arrival struct {
	lane  *lane
	chunk wire.Chunk
}

// prepare checks the hosts and completes the options.
func (c *cluster) prepare(ranks int) error {
	if c.hosts == nil {
		for r := range ranks {
			c.hosts = append(c.hosts, r%c.net.Hosts())
		}
	}
	if len(c.hosts) != ranks {
		return fmt.Errorf("netsim: found hosts for %d ranks, want one for each of %d", len(c.hosts), ranks)
	}
	for r, h := range c.hosts {
		if h < 0 || h >= c.net.Hosts() {
			return fmt.Errorf("netsim: rank %d: found host %d, want 0 to %d", r, h, c.net.Hosts()-1)
		}
	}
	if list := c.opt.Host.Processors; list != nil && len(list) != ranks {
		return fmt.Errorf("netsim: found %d processors, want one for each of %d ranks", len(list), ranks)
	}
	if c.opt.Chunk == 0 {
		c.opt.Chunk = 64 << 10
		if _, ok := c.net.(*Flows); ok {
			c.opt.Chunk = 1 << 30
		}
	}
	c.opt.Chunk = max(64, int(min(int64(c.opt.Chunk), c.net.MaxChunk()-frameBytes))&^63) // whole numbers
	if c.opt.DSCP == nil {
		c.opt.DSCP = TypeDSCP
		if c.opt.Order == coflow.FIFO {
			c.opt.DSCP = func(coflow.ID) uint8 { return 0 }
		}
	}
	c.clock.AdvanceTo(wire.VirtualStart.Add(c.net.Now().Duration()))
	c.opt.Clock = c.clock
	return nil
}

// distances are how far each rank is from one.
func (c *cluster) distances(from int) []wire.Link {
	out := make([]wire.Link, len(c.hosts))
	for r := range out {
		switch {
		case r == from:
			out[r] = wire.SameProcess
		case c.hosts[r] == c.hosts[from] || c.opt.ServerOf != nil && c.opt.ServerOf[r] == c.opt.ServerOf[from]:
			out[r] = wire.SameHost
		default:
			out[r] = wire.BetweenServers
		}
	}
	return out
}

// drive lets time pass until all ranks have ended. The time of the bubble passes when all of
// its goroutines wait; then what they sent is put into the network, which runs until it wakes
// one of them. Where nothing is to come the pauses become longer, so that a test whose
// deadline is in the bubble's time fails.
func (c *cluster) drive() {
	for pause := time.Duration(1); c.running > 0; {
		passed, _ := wire.Alarm(wire.Real, pause) // in a bubble, its time
		<-passed
		if c.opt.Settled != nil {
			c.opt.Settled()
		}
		if pause *= 2; c.take() || c.advance() {
			pause = 1
		}
	}
}

// advance handles events until one concerns a rank, and reports whether one did.
func (c *cluster) advance() bool {
	for {
		if at, ok := c.clock.Next(); ok && FromDuration(at.Sub(wire.VirtualStart)) <= c.net.Next() {
			c.net.At(max(c.net.Now(), FromDuration(at.Sub(wire.VirtualStart))), func() { c.timer = true })
		}
		if !c.net.Step() {
			return false
		}
		if c.timer || len(c.arrived) > 0 || len(c.over) > 0 {
			c.timer = false
			c.clock.AdvanceTo(wire.VirtualStart.Add(c.net.Now().Duration()))
			c.deliver()
			return true
		}
	}
}

// deliver gives ranks what has arrived.
func (c *cluster) deliver() {
	for _, a := range c.arrived {
		a.lane.arrive(a.chunk)
	}
	clear(c.arrived)
	c.arrived = c.arrived[:0]
	for _, over := range c.over {
		close(over)
	}
	c.over = c.over[:0]
}

// take puts into the network what ranks want, in an order that does not depend on theirs,
// and reports whether a rank was woken by that.
func (c *cluster) take() (woken bool) {
	c.mu.Lock()
	sent, ended, spaces, begun := c.mu.sent, c.mu.ended, c.mu.spaces, c.mu.begun
	c.mu.sent, c.mu.ended, c.mu.spaces, c.mu.begun = nil, nil, nil, nil
	c.mu.Unlock()
	slices.SortFunc(begun, func(a, b *switchHost) int { return a.rank - b.rank })
	for _, h := range begun {
		h.begin()
	}
	slices.SortFunc(sent, func(a, b *wire.Message) int { return a.Compare(b, c.opt.Order) })
	for _, m := range sent {
		c.ranks[m.From()].to[m.To()].put(m)
	}
	for _, to := range spaces {
		for _, r := range c.ranks {
			r.to[to].retry()
		}
	}
	for _, end := range ended {
		end()
	}
	return len(spaces)+len(ended) > 0
}
