package netsim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"starling/innet"
	"starling/wire"
)

// SwitchOptions say what switches can do that add rows.
type SwitchOptions struct {
	// Passes is how many packets per second go through the pipeline of a switch. One for d
	// aggregators of a unit takes d passes, one after the other, and its sums leave after the last.
	// 0: passes take no time.
	Passes float64
	// Steady hosts send at the rate of their link, whatever is marked.
	Steady bool
	// Strawman times exchanges with and without blocks beside (innet.Timed).
	Strawman bool
}

// DefaultPasses is the passes per second of a switch with four pipelines of 1.25 GHz.
const DefaultPasses = 5e9

// onFabric is an endpoint in a network whose switches add.
type onFabric struct {
	wire.Endpoint
	c    *cluster
	rank int
}

// shared is a value that one rank makes for all.
type shared struct {
	once  sync.Once
	value any
	err   error
}

// Shared calls make once.
func (e *onFabric) Shared(make func() (any, error)) (any, error) {
	e.c.mu.Lock()
	if e.c.mu.shared == nil {
		e.c.mu.shared = &shared{}
	}
	s := e.c.mu.shared
	e.c.mu.Unlock()
	s.once.Do(func() { s.value, s.err = make() })
	return s.value, s.err
}

// adding is the switches of a network that add, and what joins them to hosts.
type adding struct {
	c        *cluster
	net      *Packets
	hosts    []*switchHost
	units    int
	memory   int64
	switches []*program
}

// program is a switch: the pure one, and the ports of its packets.
type program struct {
	a      *adding
	sw     *innet.Switch
	out    map[int]target // by port of the table
	free   Time           // when the pipeline is
	passes int64
	busy   Time // the pipeline with them
}

// target is where packets of a port arrive: at a rank, or at another switch from a port.
type target struct {
	hop  *hop
	rank int // -1: a switch
	next *program
	from int
}

// JoinSwitch joins the switches of the network.
func (e *onFabric) JoinSwitch(o innet.JoinOptions) (innet.Client, error) {
	n, ok := e.c.net.(*Packets)
	top := e.c.net.Topology()
	switch {
	case !ok:
		return nil, errors.New("found a simulation at flow level, want one at packet level: switches add packets")
	case top.Kind != "star" && top.Kind != "leaf-spine":
		return nil, fmt.Errorf("found a %s network, want a star or leaf-spine, whose switches add", top.Kind)
	case top.Payload < int64(innet.HeaderBytes+o.Units*innet.UnitBytes):
		return nil, fmt.Errorf("found packets of payload=%dB, want %dB for rows of %d units", top.Payload,
			innet.HeaderBytes+o.Units*innet.UnitBytes, o.Units)
	}
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.adding == nil {
		c.adding = &adding{c: c, net: n, hosts: make([]*switchHost, len(c.hosts)), units: o.Units, memory: o.Memory}
	}
	h := &switchHost{a: c.adding, rank: e.rank}
	c.adding.hosts[e.rank] = h
	return h, nil
}

// build makes the switches' tables of a plan: one switch, or leaves below spines, each of which adds
// a share of the sums.
func (a *adding) build(p *innet.Plan) error {
	top := a.net.top
	first := int32(a.net.hosts) // the first switch
	if top.Kind == "star" {
		root, err := a.program("the switch", p.Table(1, a.units))
		if err == nil {
			a.joinHosts(root, first, func(int) bool { return true })
		}
		return err
	}
	leafOf := make([]int, len(a.c.hosts))
	for r, h := range a.c.hosts {
		leafOf[r] = h / top.Hosts
	}
	used := slices.Compact(slices.Sorted(slices.Values(leafOf))) // leaves that have workers
	for r := range leafOf {
		leafOf[r], _ = slices.BinarySearch(used, leafOf[r])
	}
	below, above := p.Tables(1, a.units, leafOf, len(used), top.Spines)
	var spines []*program
	for j, t := range above {
		spine, err := a.program(fmt.Sprintf("spine %d of %d", j, top.Spines), t)
		if err != nil {
			return err
		}
		spines = append(spines, spine)
	}
	for k, t := range below {
		leaf, err := a.program(fmt.Sprintf("leaf %d of %d", used[k], top.Leaves), t)
		if err != nil {
			return err
		}
		node := first + int32(used[k])
		a.joinHosts(leaf, node, func(r int) bool { return leafOf[r] == k })
		for j, spine := range spines {
			at, port := first+int32(top.Leaves+j), p.Hosts+j
			leaf.out[port] = target{a.net.newHop(a.net.between(node, at), rowDSCP), -1, spine, k}
			spine.out[k] = target{a.net.newHop(a.net.between(at, node), rowDSCP), -1, leaf, port}
		}
	}
	return nil
}

// rowDSCP is the code point of rows and sums, the same as of rows on the wire.
const rowDSCP = 40

// program is a switch with a table, which is refused where it does not fit.
func (a *adding) program(name string, t *innet.Table) (*program, error) {
	if err := t.Check(a.memory); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &program{a: a, sw: innet.NewSwitch(t), out: map[int]target{}}
	a.switches = append(a.switches, p)
	return p, nil
}

// joinHosts joins ranks to the switch of a node.
func (a *adding) joinHosts(p *program, node int32, has func(rank int) bool) {
	for r, h := range a.hosts {
		if has(r) {
			at := int32(a.c.hosts[r])
			h.up, h.sw = a.net.newHop(a.net.between(at, node), rowDSCP), p
			p.out[r] = target{hop: a.net.newHop(a.net.between(node, at), rowDSCP), rank: r}
		}
	}
}

// leaving is a packet that a switch sends.
type leaving struct {
	port int
	p    *innet.Packet
}

// handle takes a packet that has arrived at the switch. What follows from it leaves when all its
// passes are over.
func (p *program) handle(port int, in *innet.Packet) {
	var out []leaving
	took := p.sw.Handle(port, in, func(port int, q *innet.Packet) {
		out = append(out, leaving{port, copied(q)})
	})
	for _, o := range out { // a queue below was long
		o.p.Flags |= in.Flags & innet.ECN
	}
	n := p.a.net
	if rate := p.a.c.opt.Switch.Passes; rate > 0 {
		takes := Time(float64(1+took.Recirculated) / rate * float64(Second))
		p.passes, p.busy = p.passes+int64(1+took.Recirculated), p.busy+takes
		p.free = max(p.free, n.now) + takes
		if len(out) > 0 {
			n.At(p.free, func() { p.emit(out) })
		}
		return
	}
	p.emit(out)
}

func copied(p *innet.Packet) *innet.Packet {
	return &innet.Packet{Header: p.Header, Body: slices.Clone(p.Body)}
}

func (p *program) emit(out []leaving) {
	for _, o := range out {
		t, ok := p.out[o.port]
		if !ok {
			continue // a host that has not joined
		}
		t.hop.send(int64(o.p.Bytes()), func(marked bool) {
			if marked {
				o.p.Flags |= innet.ECN
			}
			if t.next != nil {
				t.next.handle(t.from, o.p)
				return
			}
			p.a.hosts[t.rank].receive(o.p)
		})
	}
}

// switchHost is a rank that exchanges rows through the switches: the pure host, driven by the
// network's events. Only Start and what comes before it is called by the rank.
type switchHost struct {
	a     *adding
	rank  int
	up    *hop
	sw    *program
	host  *innet.Host
	x     *innet.Exchange
	over  chan struct{} // closed when the exchange is
	timer Time          // when the host is polled next
	turn  int           // of the timer
}

func (h *switchHost) Memory() int64 { return h.a.memory }

// Leaves returns the leaves that have workers.
func (h *switchHost) Leaves() int {
	top := h.a.net.top
	if top.Kind == "star" {
		return 1
	}
	used := map[int]bool{}
	for _, host := range h.a.c.hosts {
		used[host/top.Hosts] = true
	}
	return len(used)
}

// Install makes the switches with the first host's plan; all have the same.
func (h *switchHost) Install(_ context.Context, p *innet.Plan) error {
	a := h.a
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	if slices.Contains(a.hosts, nil) {
		return errors.New("found a worker that has not joined the simulated switch, want all")
	}
	if a.switches == nil {
		if err := a.build(p); err != nil {
			return err
		}
	}
	h.host = innet.NewHost(p, h.rank, a.units, 1, a.hostOptions())
	return nil
}

// hostOptions are timers and rates for the hosts' links.
func (a *adding) hostOptions() innet.HostOptions {
	o := innet.DefaultHost
	o.Timeout, o.MinTimeout = time.Millisecond, 20*time.Microsecond
	full := float64(a.net.top.Rate) / 8
	o.Rate = innet.Rate{Min: full / 256, Max: full, Step: full / 20, Interval: 50 * time.Microsecond, Burst: 32 << 10}
	if a.c.opt.Switch.Steady {
		o.Rate.Min, o.Rate.Step = full, full
	}
	return o
}

// Start begins an exchange when all goroutines of this time wait, in the order of ranks.
func (h *switchHost) Start(x *innet.Exchange) (wait func(ctx context.Context) error) {
	over := make(chan struct{})
	c := h.a.c
	c.mu.Lock()
	h.x, h.over = x, over
	c.mu.begun = append(c.mu.begun, h)
	c.mu.Unlock()
	return func(ctx context.Context) error {
		select {
		case <-over:
			return h.host.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *switchHost) now() time.Duration { return h.a.net.now.Duration() }

func (h *switchHost) begin() {
	h.host.Begin(h.x)
	h.poll()
}

func (h *switchHost) receive(p *innet.Packet) {
	h.host.Receive(h.now(), p)
	h.poll()
}

// poll sends what is due, and sets the timer.
func (h *switchHost) poll() {
	next := h.host.Poll(h.now(), func(p *innet.Packet) {
		p = copied(p)
		h.up.send(int64(p.Bytes()), func(bool) { h.sw.handle(h.rank, p) })
	})
	if h.host.Finished() {
		if h.over != nil {
			h.a.c.over = append(h.a.c.over, h.over)
			h.over = nil
		}
		return
	}
	at := max(FromDuration(min(next, time.Hour*24*365)), h.a.net.now+Nanosecond)
	if at == h.timer {
		return
	}
	h.turn++
	h.timer = at
	turn := h.turn
	h.a.net.At(at, func() {
		if turn == h.turn {
			h.timer = 0
			h.poll()
		}
	})
}

// Passes is how many packets, recirculated ones each time, have gone through the pipelines of all switches, and how
// long the busiest was at work.
func (h *switchHost) Passes() (passes int64, busiest time.Duration) {
	for _, p := range h.a.switches {
		passes, busiest = passes+p.passes, max(busiest, p.busy.Duration())
	}
	return passes, busiest
}

// Counts is what the host has sent and received. It is called between exchanges.
func (h *switchHost) Counts() innet.HostCounts { return h.host.Count }

func (h *switchHost) Close() error { return nil }
