package netsim

import (
	"container/heap"
	"math"
	"slices"
)

// Flows is a simulation of whole transfers: each has a rate, which is shared out again
// whenever one begins or ends. Rates are max-min fair among transfers of one priority; those
// of a higher priority take what they can first. Queues, losses and the time that senders
// take to find their rate are left out. A transfer takes its bytes with headers over its
// rate, and then the delays of its path and one packet's transmission per switch. With
// routing=spray a transfer uses all its shortest paths evenly.
//
// A change is followed only to the transfers that are joined to it by links in common, so
// thousands of hosts in groups that do not share links cost no more than the groups. With
// more than 256 transfers under way a change may wait for others, for 1/64 of the time
// that its transfer takes.
type Flows struct {
	engine
	*fabric
	ends    endHeap
	wakes   Time // when eventEnded is scheduled next
	begun   uint64
	links   []flowLink // by port
	dirty   []int32    // links whose flows have changed
	shares  Time       // when rates are shared out next
	arrived int64
	round   uint32
	record  bool
	work    filling
}

// flowLink is a link and the flows that pass it.
type flowLink struct {
	flows []passing
	rate  float64 // bytes per picosecond in use
	dirty bool
	seen  uint32
	// While rates are shared out: what is left, and the weight of flows without a rate.
	left, weight float64
}

// passing is a flow in a link's list.
type passing struct {
	flow *flow
	part float64
}

// flow is one transfer under way.
type flow struct {
	conn    *fluid
	order   uint64 // of beginning
	index   int    // in the heap of ends
	ends    Time
	bytes   float64
	rate    float64
	began   Time
	since   Time // of bytes
	latency Time // of a packet that is forwarded
	at      []int32
	seen    uint32
	fixed   bool
	arrived func()
}

// fluid is a connection of Flows. It has one transfer under way at a time.
type fluid struct {
	net    *Flows
	supply Supply
	class  uint8
	path   []share
	links  []int32 // of one path
	flow   *flow   // its transfers, one after the other
	last   Time    // of the last arrival
	busy   bool
	awake  bool
}

// NewFlows is an empty network at time 0.
func NewFlows(t Topology) (*Flows, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	n := &Flows{fabric: build(t), wakes: Never, shares: Never}
	n.links = make([]flowLink, len(n.ports))
	return n, nil
}

// Record keeps the utilisation over time for Series. It is called before anything is sent.
func (n *Flows) Record() { n.record = true }

// MaxChunk is the most bytes that a Supply gives at once.
func (n *Flows) MaxChunk() int64 { return 1 << 40 }

// Step handles all events of the next time at which there are some.
func (n *Flows) Step() bool {
	if len(n.heap) == 0 {
		return false
	}
	for at := n.heap[0].at; len(n.heap) > 0 && n.heap[0].at == at; {
		switch e := n.take(); e.kind() {
		case eventCall:
			n.call(e.a)
		case eventRates:
			if n.now >= n.shares {
				n.shareOut()
			}
		case eventEnded:
			if n.now >= n.wakes { // else an earlier or later one has taken its place
				n.endDue()
			}
		}
	}
	return true
}

// Connect opens a connection between two hosts whose transfers have a DSCP.
func (n *Flows) Connect(from, to int, dscp uint8, supply Supply) Connection {
	c := &fluid{net: n, supply: supply, class: uint8(int(dscp&63) * n.top.Queues / 64)}
	n.turns += 8
	hash := scramble(uint64(from)<<32 | uint64(to)<<8 | n.turns<<45 | uint64(dscp))
	path := n.paths.path(int32(from), int32(to), hash)
	if n.top.Routing == "spray" {
		c.path = n.paths.spread(int32(from), int32(to))
	} else {
		for _, p := range path {
			c.path = append(c.path, share{p, 1})
		}
	}
	c.links = path
	return c
}

func (c *fluid) Wake() {
	c.awake = true
	if !c.busy {
		c.begin()
	}
}

// through are the switches on the connection's paths.
func (c *fluid) through() (list []int32) {
	for _, s := range c.path {
		if node := c.net.ports[s.port].to; !c.net.isHost(node) && !slices.Contains(list, node-int32(c.net.hosts)) {
			list = append(list, node-int32(c.net.hosts))
		}
	}
	return list
}

// Close has nothing to do: nothing refers to a connection without a transfer.
func (c *fluid) Close() {}

// begin starts the next transfer.
func (c *fluid) begin() {
	n := c.net
	if c.flow == nil {
		c.flow = &flow{conn: c, at: make([]int32, len(c.path))}
	}
	f := c.flow
	if f.rate = 0; !f.fill() {
		return
	}
	heap.Push(&n.ends, f)
	slack := n.slack(Time(f.bytes / n.ports[c.path[0].port].rate.bytesPerPicosecond()))
	for i, s := range c.path {
		l := &n.links[s.port]
		f.at[i] = int32(len(l.flows))
		l.flows = append(l.flows, passing{f, s.part})
		n.touch(s.port, slack)
	}
}

// fill takes the flow's bytes from the supply, and reports whether there were any.
func (f *flow) fill() bool {
	c, n := f.conn, f.conn.net
	bytes, arrived, ok := c.supply()
	if !ok {
		c.awake = false
		return false
	}
	packets := max(1, (bytes+n.top.Payload-1)/n.top.Payload)
	n.begun++
	c.busy, f.arrived, f.order = true, arrived, n.begun
	f.bytes, f.began, f.since = float64(bytes+packets*n.top.Header), n.now, n.now
	f.latency = n.behind(c.links, min(bytes, n.top.Payload)+n.top.Header)
	f.setEnd()
	return true
}

// behind is how much later than its last byte has left the slowest link a packet arrives.
func (n *Flows) behind(path []int32, packet int64) Time {
	var slowest Time
	for _, p := range path {
		slowest = max(slowest, n.ports[p].transmit(packet))
	}
	return n.latency(path, packet) - slowest
}

// setEnd sets when a flow ends. Without a rate it does not: a more urgent one takes all, and
// its end shares out again.
func (f *flow) setEnd() {
	f.ends = Never
	if f.rate > 0 {
		f.ends = f.since + Time(math.Ceil(f.bytes/f.rate))
	}
}

// slack is how much later than a change of rates they may be shared out, for a transfer
// of this duration. With few flows it is 0.
func (n *Flows) slack(takes Time) Time {
	if len(n.ends) <= manyFlows {
		return 0
	}
	return takes / slackPart
}

// manyFlows is from how many flows on changes of rates are collected, and slackPart the
// part of a transfer's time for which its change may wait for others: an all-to-all of n hosts
// would otherwise share out the rates of n*n flows n*n times.
const manyFlows, slackPart = 256, 64

// touch says that the flows of a link have changed. Rates are shared out once for all
// changes until then.
func (n *Flows) touch(port int32, slack Time) {
	if l := &n.links[port]; !l.dirty {
		l.dirty = true
		n.dirty = append(n.dirty, port)
	}
	if at := n.now + slack; at < n.shares {
		n.shares = at
		n.schedule(at, eventRates, 0, 0)
	}
}

// end ends a flow. Its bytes have left; they arrive later. The next of the same connection
// takes its place and its rate.
func (n *Flows) end(f *flow) {
	n.arrived++
	if c := f.conn; f.arrived != nil { // packets of a connection keep their order
		c.last = max(c.last, n.now+f.latency)
		n.At(c.last, f.arrived)
	}
	slack := n.slack(n.now - f.began)
	if f.conn.awake && f.fill() {
		heap.Push(&n.ends, f)
		return
	}
	f.conn.busy = false
	for i, s := range f.conn.path {
		n.flush(s.port)
		n.links[s.port].rate -= f.rate * s.part
		n.leave(f, s.port, f.at[i])
		n.touch(s.port, slack)
	}
}

// leave takes a flow out of a link's list, where it is at a place.
func (n *Flows) leave(f *flow, port, place int32) {
	l := &n.links[port]
	last := len(l.flows) - 1
	moved := l.flows[last]
	l.flows[place] = moved
	l.flows[last] = passing{}
	l.flows = l.flows[:last]
	if moved.flow == f {
		return
	}
	for i, s := range moved.flow.conn.path {
		if s.port == port {
			moved.flow.at[i] = place
		}
	}
}

// shareOut gives rates to all flows that are joined to a change.
func (n *Flows) shareOut() {
	n.shares = Never
	n.round++
	w := &n.work
	w.reset()
	for _, p := range n.dirty {
		n.links[p].dirty = false
		n.visit(p)
	}
	n.dirty = n.dirty[:0]
	for i := 0; i < len(w.links); i++ {
		for _, x := range n.links[w.links[i]].flows {
			n.visitFlow(x.flow)
		}
	}
	w.fill(n)
	n.reorder(w.flows)
	n.wake()
	for _, p := range w.links {
		n.count(p)
	}
}

func (n *Flows) visit(port int32) {
	l := &n.links[port]
	if l.seen == n.round {
		return
	}
	l.seen = n.round
	n.work.links = append(n.work.links, port)
}

func (n *Flows) visitFlow(f *flow) {
	if f.seen == n.round {
		return
	}
	f.seen, f.fixed = n.round, false
	f.bytes = max(0, f.bytes-f.rate*float64(n.now-f.since))
	f.since = n.now
	n.work.flows = append(n.work.flows, f)
	n.work.classes |= 1 << f.conn.class
	for _, s := range f.conn.path {
		n.visit(s.port)
	}
}

// reorder sets when flows with new rates end.
func (n *Flows) reorder(flows []*flow) {
	few := len(flows)*8 < len(n.ends)
	for _, f := range flows {
		f.setEnd()
		if few {
			heap.Fix(&n.ends, f.index)
		}
	}
	if !few {
		heap.Init(&n.ends)
	}
}

// wake schedules the end of the flow that ends next.
func (n *Flows) wake() {
	if len(n.ends) == 0 || n.ends[0].ends >= n.wakes {
		return
	}
	n.wakes = n.ends[0].ends
	n.schedule(n.wakes, eventEnded, 0, 0)
}

// endDue ends the flows whose time has come.
func (n *Flows) endDue() {
	for len(n.ends) > 0 && n.ends[0].ends <= n.now {
		n.end(heap.Pop(&n.ends).(*flow))
	}
	n.wakes = Never
	n.wake()
}

// count keeps the utilisation of a link.
func (n *Flows) count(port int32) {
	l, p := &n.links[port], &n.ports[port]
	n.flush(port)
	l.rate = 0
	for _, x := range l.flows {
		l.rate += x.flow.rate * x.part
	}
	if n.record && p.stat.series == nil {
		p.stat.series = &series{width: Microsecond}
	}
}

// flush counts what a link has carried until now.
func (n *Flows) flush(port int32) {
	l, p := &n.links[port], &n.ports[port]
	used := l.rate / p.rate.bytesPerPicosecond()
	d := n.now - p.stat.last
	p.stat.bytes += int64(l.rate * float64(d))
	p.stat.busy += Time(used * float64(d))
	if s := p.stat.series; s != nil && used > 0 {
		s.each(p.stat.last, n.now, func(b *bucket, d Time) { b.busy += Time(used * float64(d)) })
	}
	p.stat.last = n.now
}

// Stats are the counts so far: Packets are transfers that ended; there are no queues.
func (n *Flows) Stats() *Stats {
	s := &Stats{Seconds: n.now.Seconds(), Events: n.handled, Packets: n.arrived}
	for i := range n.ports {
		n.flush(int32(i))
		s.Ports = append(s.Ports, n.ports[i].stat.of(n.name(int32(i)), 0, n.now))
	}
	return s
}

// Series is the utilisation of a port over time.
func (n *Flows) Series(port int) []Sample {
	if s := n.ports[port].stat.series; s != nil {
		n.flush(int32(port))
		return s.samples(n.now)
	}
	return nil
}

// filling shares out rates by progressive filling, one priority after the other: the link
// whose flows would get the least is found, its flows get that, and it is taken away. What a link
// has left per flow never shrinks meanwhile, so a heap may hold old values: one that
// is not the least any more is put back.
type filling struct {
	links   []int32
	flows   []*flow
	classes uint64
	least   linkHeap
}

func (w *filling) reset() {
	clear(w.flows)
	w.links, w.flows, w.classes = w.links[:0], w.flows[:0], 0
}

func (w *filling) fill(n *Flows) {
	for _, p := range w.links {
		n.links[p].left = n.ports[p].rate.bytesPerPicosecond()
	}
	for classes := w.classes; classes != 0; {
		class := highest(classes)
		classes &^= 1 << class
		w.fillClass(n, uint8(class))
	}
}

func (w *filling) fillClass(n *Flows, class uint8) {
	w.least = w.least[:0]
	for _, p := range w.links {
		l := &n.links[p]
		l.weight = 0
		for _, x := range l.flows {
			if x.flow.conn.class == class {
				l.weight += x.part
			}
		}
		if l.weight > 0 {
			w.least = append(w.least, linkShare{p, l.left / l.weight})
		}
	}
	heap.Init(&w.least)
	for len(w.least) > 0 {
		w.takeLeast(n, class)
	}
}

// takeLeast fixes the flows of the link with the least share, if that share is up to date.
func (w *filling) takeLeast(n *Flows, class uint8) {
	top := &w.least[0]
	l := &n.links[top.port]
	share := max(0, l.left/l.weight)
	if l.weight > tiny && share > top.share {
		top.share = share
		heap.Fix(&w.least, 0)
		return
	}
	heap.Pop(&w.least)
	if share < slowest {
		share = 0
	}
	for _, x := range l.flows {
		if f := x.flow; f.conn.class == class && !f.fixed {
			n.fix(f, share)
		}
	}
}

// slowest is the least rate in bytes per picosecond, a byte per second. Below, a share is what
// rounding has left of a link that is full.
const slowest = 1e-12

// tiny is what is left of a sum of weights by rounding.
const tiny = 1e-9

// fix gives a flow its rate, which its links have less of then.
func (n *Flows) fix(f *flow, rate float64) {
	f.fixed, f.rate = true, rate
	for _, s := range f.conn.path {
		l := &n.links[s.port]
		l.left = max(0, l.left-rate*s.part)
		l.weight -= s.part
	}
}

// linkShare is a link and what each of its flows would get.
type linkShare struct {
	port  int32
	share float64
}

// linkHeap has the least share first, and of equal ones the lowest port.
type linkHeap []linkShare

func (h linkHeap) Len() int      { return len(h) }
func (h linkHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h linkHeap) Less(i, j int) bool {
	return h[i].share < h[j].share || h[i].share == h[j].share && h[i].port < h[j].port
}
func (h *linkHeap) Push(x any) { *h = append(*h, x.(linkShare)) }
func (h *linkHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// endHeap has the flow first that ends first, and of equal ones the oldest.
type endHeap []*flow

func (h endHeap) Len() int { return len(h) }
func (h endHeap) Less(i, j int) bool {
	return h[i].ends < h[j].ends || h[i].ends == h[j].ends && h[i].order < h[j].order
}
func (h endHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *endHeap) Push(x any) {
	x.(*flow).index = len(*h)
	*h = append(*h, x.(*flow))
}
func (h *endHeap) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return f
}
