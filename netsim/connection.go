package netsim

import "math"

// Supply gives a connection its next bytes: how many, at most MaxChunk of the network, and
// what is called when all of them have arrived. ok is false when there are none; the
// connection asks again after Wake.
type Supply func() (bytes int64, arrived func(), ok bool)

// Connection sends bytes from one host to another.
type Connection interface {
	// Wake notifies the connection that there are bytes to send.
	Wake()
	// Close ends sending: the memory of the connection is used again.
	Close()
}

// segment is the bytes of one Supply: up to 64 packets, which arrive in any order.
type segment struct {
	bytes   int64
	packets uint8
	unsent  uint8 // the next packet that was never sent
	version uint32
	got     uint64 // packets that have arrived
	acked   uint64 // packets that the sender knows to have arrived, or of datagrams to be lost
	arrived func()
}

func (s *segment) all() uint64 { return math.MaxUint64 >> (64 - s.packets) }

// attempt is a packet that was sent and not acknowledged.
type attempt struct {
	segment int32
	version uint32
	bit     uint8
	bytes   int32
	over    bool // acknowledged, or counted as lost
}

// conn is a connection of Packets.
//
// With control=dctcp it keeps a window of bytes in flight (Alizadeh et al., SIGCOMM 2010):
// it grows by what is acknowledged until the first mark or loss, then by one packet per
// window; after a window with a part F of its bytes marked it shrinks by alpha/2, where alpha
// is the moving average of F with gain 1/16; after a loss by half. Every packet is
// acknowledged on its own. The acknowledgement takes the delays of the path back, and no
// space in its queues. A packet is lost when reorder later ones were acknowledged, or when
// nothing was for the retransmission timeout (RFC 6298), which doubles each time.
type conn struct {
	net    *Packets
	supply Supply
	id     int32
	to     int32
	port   int32 // of the sending host
	class  uint8
	group  uint32 // of the transfer
	hash   uint64

	ready bool // in the ring of the port
	next  *conn
	awake bool // Supply may have more

	closed  bool
	packets int // that are in the network or being acknowledged

	segment int32 // being sent; 0: none
	resend  []attempt
	resent  int // of resend

	inFlight, window int64
	sent             []attempt // from number first on
	first, number    int64
	oldest           int64 // the first that is not over

	slowStart       bool
	windowEnd       int64 // the number that ends the window of which marks are counted
	ackedB, markedB int64
	alpha           float64
	cutUntil        int64 // the number up to which losses belong to one cut

	way             int32 // that acknowledgements take
	srtt, rttvar    Time
	progress        Time // of the last acknowledgement, or of the first packet in flight
	timerSet, timed bool
	backoff         Time
}

// reorder is how many later packets are acknowledged before one counts as lost. Sprayed
// packets overtake each other; they have the longer one.
const reorder, reorderSprayed = 3, 256

// minTimeout is the shortest retransmission timeout.
const minTimeout = Millisecond

// MaxChunk is the most bytes that a Supply gives at once.
func (n *Packets) MaxChunk() int64 { return min(64*n.top.Payload, 256<<10) }

// Connect opens a connection between two hosts whose packets have a DSCP. Two between the
// same hosts may take different paths.
func (n *Packets) Connect(from, to int, dscp uint8, supply Supply) Connection {
	c := n.newConn()
	*c = conn{net: n, supply: supply, id: c.id, to: int32(to), class: n.class(dscp), slowStart: true,
		window: math.MaxInt64, sent: c.sent[:0], resend: c.resend[:0]}
	n.opened++
	c.hash = scramble(uint64(from)<<32 | uint64(to)<<8 | n.opened<<45 | uint64(dscp))
	path := n.paths.path(int32(from), int32(to), c.hash)
	c.port = path[0]
	c.timed = n.top.Control == "dctcp"
	if c.timed {
		back := n.latency(path, ackBytes)
		c.way = n.wayBack(back)
		round := n.latency(path, n.top.Payload+n.top.Header) + back
		full := int64(n.ports[c.port].rate.bytesPerPicosecond() * float64(round))
		c.window = min(n.top.Window, max(2*n.top.Payload, full))
		c.backoff = 1
	}
	return c
}

// newConn returns a connection that was closed, or a new one.
func (n *Packets) newConn() *conn {
	if k := len(n.closed); k > 0 {
		c := n.closed[k-1]
		n.closed = n.closed[:k-1]
		return c
	}
	c := &conn{id: int32(len(n.conns))}
	n.conns = append(n.conns, c)
	return c
}

func (c *conn) Close() {
	c.closed = true
	c.reuse()
}

// reuse gives a closed connection back when no packet and no timer refers to it.
func (c *conn) reuse() {
	if c.closed && c.packets == 0 && !c.timerSet && !c.ready && c.resent == len(c.resend) && c.segment == 0 {
		c.closed = false
		c.net.closed = append(c.net.closed, c)
	}
}

// ackBytes is the size of an acknowledgement on the wire.
const ackBytes = 84

func (c *conn) Wake() {
	c.awake = true
	c.offer()
}

// offer puts the connection where its port finds it, if it may send.
func (c *conn) offer() {
	if c.ready || c.inFlight >= c.window || c.segment == 0 && !c.awake && len(c.resend) == 0 {
		return
	}
	c.ready = true
	c.net.ports[c.port].nic.put(c)
	c.net.callWhenFree(c.port)
}

// nextPacket makes the packet that is to be sent now.
func (c *conn) nextPacket() (int32, bool) {
	for c.resent < len(c.resend) {
		a := c.resend[c.resent]
		if c.resent++; c.resent == len(c.resend) {
			c.resend, c.resent = c.resend[:0], 0
		}
		a.over = false
		if s := &c.net.segments[a.segment]; s.version == a.version && s.acked>>a.bit&1 == 0 {
			c.net.total.resent++
			return c.make(a), true
		}
	}
	if c.segment == 0 && !c.fill() {
		return 0, false
	}
	s := &c.net.segments[c.segment]
	payload := min(c.net.top.Payload, s.bytes-int64(s.unsent)*c.net.top.Payload)
	i := c.make(attempt{c.segment, s.version, s.unsent, int32(payload + c.net.top.Header), false})
	if s.unsent++; s.unsent == s.packets {
		c.segment = 0
	}
	return i, true
}

// fill takes the next segment from the supply.
func (c *conn) fill() bool {
	if !c.awake {
		return false
	}
	bytes, arrived, ok := c.supply()
	if !ok {
		c.awake = false
		return false
	}
	n := c.net
	c.segment = n.newSegment()
	s := &n.segments[c.segment]
	*s = segment{bytes: bytes, version: s.version, arrived: arrived,
		packets: uint8(max(1, (bytes+n.top.Payload-1)/n.top.Payload))}
	if bytes > 64*n.top.Payload {
		panic("netsim: a Supply gave more than MaxChunk")
	}
	return true
}

func (n *Packets) newSegment() int32 {
	if k := len(n.freeSeg); k > 0 {
		i := n.freeSeg[k-1]
		n.freeSeg = n.freeSeg[:k-1]
		return i
	}
	n.segments = append(n.segments, segment{})
	return int32(len(n.segments) - 1)
}

// make is the packet of an attempt.
func (c *conn) make(a attempt) int32 {
	n := c.net
	i := n.newPacket()
	n.packets[i] = packet{conn: c.id, segment: a.segment, version: a.version, bit: a.bit, class: c.class,
		bytes: a.bytes, to: c.to, number: c.number, hash: c.hash, sent: n.now}
	c.number++
	c.packets++
	if !c.timed {
		return i
	}
	if c.inFlight == 0 {
		c.progress = n.now
	}
	c.sent = append(c.sent, a)
	c.inFlight += int64(a.bytes)
	c.setTimer()
	return i
}

// arrived handles a packet at its destination.
func (c *conn) arrived(i int32) {
	n, p := c.net, &c.net.packets[i]
	s := &n.segments[p.segment]
	var done func()
	if s.version == p.version && s.got>>p.bit&1 == 0 {
		s.got |= 1 << p.bit
		if s.got == s.all() {
			done, s.arrived = s.arrived, nil
		}
	}
	marked := p.marked
	if c.timed {
		n.sendBack(c.way, i)
	} else {
		n.settle(p.segment, p.version, p.bit)
		n.release(i)
	}
	if done != nil {
		n.marked = marked
		done()
	}
	c.reuse()
}

// dropped handles a packet that a switch dropped. A sender of datagrams is not notified.
func (c *conn) dropped(i int32) {
	if p := &c.net.packets[i]; !c.timed {
		c.net.settle(p.segment, p.version, p.bit)
	}
}

// settle counts a packet that needs not be sent again, and frees its segment with the last.
func (n *Packets) settle(segment int32, version uint32, bit uint8) {
	s := &n.segments[segment]
	if s.version != version {
		return
	}
	if s.acked |= 1 << bit; s.acked == s.all() {
		s.version++
		n.freeSeg = append(n.freeSeg, segment)
	}
}
