package netsim

// packet is a packet on its way, or waiting to be sent again.
type packet struct {
	next    int32 // in a list
	conn    int32
	segment int32
	version uint32 // of the segment: its number is used again when all of it has arrived
	bit     uint8  // which packet of the segment
	class   uint8
	marked  bool
	bytes   int32 // on the wire
	to      int32
	number  int64  // of this transmission in its connection
	hash    uint64 // of the path
	at      Time   // of arrival at the end of the link
	sent    Time
}

// Packets is a simulation of every packet: switches with an output queue per port and
// priority, store and forward. One goroutine uses it at a time.
type Packets struct {
	engine
	*fabric
	packets  []packet
	unused   int32 // the first of a list of packets
	conns    []*conn
	closed   []*conn // that can be used again
	opened   uint64
	ways     []wayBack
	segments []segment
	freeSeg  []int32
	total    struct{ arrived, drops, marks, resent int64 }
	marked   bool // the packet that has arrived last
	record   bool
	spray    bool
	groups   *queuedCount
	shared   int64 // bytes that the ports of a switch share; 0: they do not
}

// NewPackets is an empty network at time 0.
func NewPackets(t Topology) (*Packets, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	n := &Packets{fabric: build(t), packets: make([]packet, 1), segments: make([]segment, 1),
		spray: t.Routing == "spray"}
	if t.Shared {
		n.shared = t.Buffer
	}
	for i := range n.ports {
		if n.isHost(n.ports[i].from) {
			n.ports[i].nic = &nic{ready: make([]ring, t.Queues)}
		}
	}
	return n, nil
}

// Record keeps queue length and utilisation over time for Series. It is called before anything is sent.
func (n *Packets) Record() { n.record = true }

// Step handles all events of the next time at which there are some.
func (n *Packets) Step() bool {
	if len(n.heap) == 0 {
		return false
	}
	if n.groups != nil {
		n.sample(n.heap[0].at)
	}
	for at := n.heap[0].at; len(n.heap) > 0 && n.heap[0].at == at; {
		n.handle(n.take())
	}
	return true
}

func (n *Packets) handle(e event) {
	switch e.kind() {
	case eventCall:
		n.call(e.a)
	case eventFree:
		n.free(e.a)
	case eventArrive:
		n.arrive(e.a)
	case eventAck:
		n.acknowledge(e.a)
	case eventTimeout:
		n.conns[e.a].timeout()
	}
}

// newPacket is the number of an unused packet.
func (n *Packets) newPacket() int32 {
	if i := n.unused; i != 0 {
		n.unused = n.packets[i].next
		return i
	}
	n.packets = append(n.packets, packet{})
	return int32(len(n.packets) - 1)
}

func (n *Packets) release(i int32) {
	n.conns[n.packets[i].conn].packets--
	n.packets[i].next = n.unused
	n.unused = i
}

// push adds a packet to the end of a list, pop takes the first.
func (n *Packets) push(l *list, i int32) {
	n.packets[i].next = 0
	if l.first == 0 {
		l.first = i
	} else {
		n.packets[l.last].next = i
	}
	l.last = i
	l.bytes += int64(n.packets[i].bytes)
}

func (n *Packets) pop(l *list) int32 {
	i := l.first
	l.first = n.packets[i].next
	l.bytes -= int64(n.packets[i].bytes)
	return i
}

// class is the priority of a DSCP: the higher the code point, the more urgent.
func (n *Packets) class(dscp uint8) uint8 { return uint8(int(dscp&63) * n.top.Queues / 64) }

// forward sends a packet on from a switch.
func (n *Packets) forward(at int32, i int32) {
	p := &n.packets[i]
	ports := n.paths.choices(at, p.to)
	out := ports[0]
	switch {
	case len(ports) == 1:
	case n.spray:
		s := &n.nodes[at].sprayed
		*s++
		out = ports[*s%uint32(len(ports))]
	default:
		out = choose(ports, p.hash, at)
	}
	n.put(out, i)
}

// put transmits a packet by a switch's port, or lets it wait there.
func (n *Packets) put(out, i int32) {
	if o := &n.ports[out]; o.busyUntil <= n.now && !o.called {
		n.transmit(out, i)
		return
	}
	n.enqueue(out, i)
}

// enqueue lets a packet wait at a switch, or drops it.
func (n *Packets) enqueue(out, i int32) {
	o, p := &n.ports[out], &n.packets[i]
	bytes := int64(p.bytes)
	at := &n.nodes[o.from]
	if o.limit > 0 && o.queued+bytes > o.limit || n.shared > 0 && at.buffered+bytes > n.shared {
		n.drop(o, i)
		return
	}
	if n.top.ECN > 0 && o.queues[p.class].bytes >= n.top.ECN && !p.marked {
		p.marked = true
		o.stat.marks++
		n.total.marks++
	}
	o.stat.queueChanged(n.now, o.queued)
	n.push(&o.queues[p.class], i)
	if n.groups != nil {
		o.waits(n.conns[p.conn].group)
	}
	o.waiting |= 1 << p.class
	o.queued += bytes
	at.buffered += bytes
	o.stat.queueIs(n.now, o.queued)
	n.callWhenFree(out)
}

func (n *Packets) drop(o *port, i int32) {
	o.stat.drops++
	n.total.drops++
	c := n.conns[n.packets[i].conn]
	c.dropped(i)
	n.release(i)
	c.reuse()
}

// callWhenFree schedules that a port looks for its next packet.
func (n *Packets) callWhenFree(out int32) {
	if o := &n.ports[out]; !o.called {
		o.called = true
		n.schedule(o.busyUntil, eventFree, out, 0)
	}
}

// free transmits the next packet of a port: the most urgent, the oldest of those.
func (n *Packets) free(out int32) {
	o := &n.ports[out]
	o.called = false
	if o.nic != nil {
		n.pull(out)
		return
	}
	class := highest(o.waiting)
	i := n.pop(&o.queues[class])
	if o.queues[class].first == 0 {
		o.waiting &^= 1 << class
	}
	o.stat.queueChanged(n.now, o.queued)
	if n.groups != nil {
		o.leaves(n.conns[n.packets[i].conn].group)
	}
	bytes := int64(n.packets[i].bytes)
	o.queued -= bytes
	n.nodes[o.from].buffered -= bytes
	n.transmit(out, i)
	if o.waiting != 0 {
		n.callWhenFree(out)
	}
}

// transmit occupies a port with a packet. REQUIRES: the port is free.
func (n *Packets) transmit(out, i int32) {
	o, p := &n.ports[out], &n.packets[i]
	if n.record && o.stat.series == nil {
		o.stat.series = &series{width: Microsecond}
	}
	takes := o.transmit(int64(p.bytes))
	o.stat.transmitted(n.now, int64(p.bytes), takes)
	o.busyUntil = n.now + takes
	p.at = o.busyUntil + o.delay
	if o.inFlight.first == 0 {
		n.schedule(p.at, eventArrive, out, 0)
	}
	n.push(&o.inFlight, i)
}

// arrive takes the oldest packet in flight off a link. Only that one has an event: packets
// on a link keep their order.
func (n *Packets) arrive(in int32) {
	o := &n.ports[in]
	i := n.pop(&o.inFlight)
	if next := o.inFlight.first; next != 0 {
		n.schedule(n.packets[next].at, eventArrive, in, 0)
	}
	if o.to == n.packets[i].to { // a host, or the end of a hop
		n.total.arrived++
		n.conns[n.packets[i].conn].arrived(i)
		return
	}
	n.forward(o.to, i)
}

// Stats are the counts so far.
func (n *Packets) Stats() *Stats {
	s := &Stats{Seconds: n.now.Seconds(), Events: n.handled, Packets: n.total.arrived, Drops: n.total.drops,
		Marks: n.total.marks, Resent: n.total.resent}
	for i := range n.ports {
		s.Ports = append(s.Ports, n.ports[i].stat.of(n.name(int32(i)), n.ports[i].queued, n.now))
	}
	return s
}

// Series is the queue and the utilisation of a port over time, of Stats().Ports[port].
func (n *Packets) Series(port int) []Sample {
	if s := n.ports[port].stat.series; s != nil {
		n.ports[port].stat.queueChanged(n.now, n.ports[port].queued)
		return s.samples(n.now)
	}
	return nil
}
