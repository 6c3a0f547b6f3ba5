package netsim

import (
	"slices"

	"starling/wire"
)

// rank is the transport of one rank.
type rank struct {
	cluster *cluster
	number  int
	to      []*link // by rank; that to itself is not used
	open    int     // links that have not ended
	host    *host
	ended   chan struct{}
}

// join adds a rank.
func (c *cluster) join(number int, in *wire.Inbox) wire.Transport {
	r := &rank{cluster: c, number: number, open: len(c.hosts) - 1, host: c.newHost(number), ended: make(chan struct{})}
	c.opt.Timeout = in.Options().Timeout
	c.inboxes[number] = in
	for to := range c.hosts {
		r.to = append(r.to, &link{rank: r, peer: to})
	}
	c.ranks = append(c.ranks, r)
	in.OnSpace(func() {
		c.mu.Lock()
		c.mu.spaces = append(c.mu.spaces, number)
		c.mu.Unlock()
	})
	return r
}

func (r *rank) Carry(m *wire.Message) {
	c := r.cluster
	c.mu.Lock()
	c.mu.sent = append(c.mu.sent, m)
	c.mu.Unlock()
}

func (r *rank) Fail(cause error) {
	r.end(func(l *link) {
		l.fail(cause)
		l.closing = func() { l.inbox().PeerFailed(r.number, cause) }
	})
}

func (r *rank) Close() {
	r.end(func(l *link) {
		l.closing = func() { l.inbox().PeerClosed(r.number) }
		for _, lane := range l.lanes {
			lane.queue.Close()
		}
		c := r.cluster
		c.net.At(c.net.Now()+FromDuration(c.opt.Timeout), l.giveUp)
	})
}

// end closes all links on the goroutine that drives, after what was sent before.
func (r *rank) end(do func(*link)) {
	c := r.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.ended = append(c.mu.ended, func() {
		for to, l := range r.to {
			if to != r.number {
				do(l)
				l.end()
			}
		}
		if len(r.to) == 1 {
			r.over()
		}
	})
}

// over records that the rank has ended.
func (r *rank) over() {
	r.cluster.running--
	close(r.ended)
}

func (r *rank) Wait() { <-r.ended }

// link is what one rank sends to another.
type link struct {
	rank        *rank
	peer        int
	lanes       []*lane
	undelivered int    // chunks that have left and are not delivered
	closing     func() // tells the peer, when all has left
	over        bool   // the link has ended
	given       bool   // what the peer does not take is dropped
	failed      error  // why nothing is sent any more
}

func (l *link) inbox() *wire.Inbox { return l.rank.cluster.inboxes[l.peer] }

// put queues a message on the lane of its code point.
func (l *link) put(m *wire.Message) {
	lane := l.lane(l.rank.cluster.opt.DSCP(m.Coflow()) & 63)
	lane.queue.Put(m)
	lane.conn.Wake()
}

// lane returns the lane of a code point, which the first message opens.
func (l *link) lane(dscp uint8) *lane {
	for _, a := range l.lanes {
		if a.dscp == dscp {
			return a
		}
	}
	c := l.rank.cluster
	a := &lane{link: l, dscp: dscp, queue: wire.NewQueue(c.opt.Options)}
	if l.failed != nil {
		a.queue.Fail(l.failed)
	}
	if from, to := c.hosts[l.rank.number], c.hosts[l.peer]; from == to {
		a.conn = &loopback{c.net, a.supply}
	} else {
		a.between = l.rank.host.charges()
		a.conn = c.net.Connect(from, to, dscp, a.supply)
	}
	l.lanes = append(l.lanes, a)
	return a
}

// fail ends all messages that have not left.
func (l *link) fail(cause error) {
	l.failed = cause
	for _, a := range l.lanes {
		a.queue.Fail(cause)
	}
}

// retry delivers what was held.
func (l *link) retry() {
	for _, a := range l.lanes {
		held := a.held
		a.held = nil
		for _, c := range held {
			a.arrive(c)
		}
		a.conn.Wake()
	}
}

// giveUp drops what the peer did not take in time.
func (l *link) giveUp() {
	if l.over {
		return
	}
	l.given = true
	l.fail(&wire.PeerLost{Rank: l.rank.number, Peer: l.peer, Cause: wire.ErrNoSpace})
	l.retry()
	l.end()
}

// end ends the link if its rank wants that and everything has left. The peer can send nothing
// more here.
func (l *link) end() {
	if l.closing == nil || l.over || l.undelivered > 0 ||
		slices.ContainsFunc(l.lanes, func(a *lane) bool { return !a.queue.Drained() }) {
		return
	}
	l.over = true
	l.closing()
	r, c := l.rank, l.rank.cluster
	back := c.ranks[l.peer].to[r.number]
	back.fail(&wire.PeerLost{Rank: l.peer, Peer: r.number, Cause: wire.ErrPeerClosed})
	back.retry()
	back.end()
	if r.open--; r.open == 0 {
		r.over()
	}
}

// lane is the messages of a link with one code point: a queue and a connection.
type lane struct {
	link  *link
	dscp  uint8
	queue *wire.Queue
	conn  Connection
	held  []wire.Chunk // that have arrived, but the inbox has no space for them
	// between hosts whose processors take time for messages
	between bool
	waits   bool // until those of the sender are free
}

// supply gives the connection the next chunk, unless the peer has no space.
func (a *lane) supply() (int64, func(), bool) {
	if len(a.held) > 0 {
		return 0, nil, false
	}
	l, c := a.link, a.link.rank.cluster
	if a.between && !a.queue.Drained() && l.rank.host.busy(a) {
		return 0, nil, false
	}
	chunk, ok := a.queue.Take(c.opt.Chunk)
	if !ok {
		return 0, nil, false
	}
	l.undelivered++
	deliver := func() { c.arrived = append(c.arrived, arrival{a, chunk}) }
	arrived := deliver
	if a.between {
		l.rank.host.sent(&chunk)
		arrived = func() { c.ranks[l.peer].host.received(&chunk, deliver) }
	}
	return int64(len(chunk.Bytes())) + frameBytes, arrived, true
}

// arrive delivers a chunk, or holds it until there is space.
func (a *lane) arrive(c wire.Chunk) {
	l := a.link
	h := c.Header()
	err := l.inbox().Deliver(&h, c.Bytes())
	if err == wire.ErrNoSpace && !l.given {
		a.held = append(a.held, c)
		return
	}
	if err != nil {
		err = &wire.PeerLost{Rank: l.rank.number, Peer: l.peer, Cause: err}
	}
	l.undelivered--
	a.queue.Sent(c, err)
	l.end()
}

// loopback joins ranks at one host; what it carries takes no time.
type loopback struct {
	net    Network
	supply Supply
}

func (l *loopback) Close() {}

func (l *loopback) Wake() {
	l.net.At(l.net.Now(), func() {
		for _, arrived, ok := l.supply(); ok; _, arrived, ok = l.supply() {
			arrived()
		}
	})
}
