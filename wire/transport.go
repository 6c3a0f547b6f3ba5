package wire

// Transport takes the messages of one endpoint to its peers. NewGroup has its
// own, and packages tcp and mpi have others; a simulator or a test gives one to NewEndpoint.
//
// It gives what arrives to the Inbox of the receiving endpoint: whole messages (DeliverMessage)
// or chunks of them (Deliver, or Place and Release), and the end of a peer (PeerClosed, PeerFailed, PeerLost). Of a
// message to one peer, chunks may arrive in any order, and messages may overtake each other;
// each chunk arrives once.
type Transport interface {
	// Carry puts a message on its way, without waiting for the peer. Sooner or later m.Left
	// is called, once: by the transport, or by the Inbox that it was delivered to. A message
	// from a rank to itself never comes here.
	Carry(m *Message)
	// Fail ends the transport now: messages that have not left fail with the cause, and all
	// peers receive the cause, so that they fail with it too. It does not wait.
	Fail(cause error)
	// Close lets what was sent leave and sends all peers a goodbye: nothing follows. It does not
	// wait. One of Fail and Close is called, once.
	Close()
	// Wait returns, after Fail or Close, when the transport holds nothing any more: no
	// goroutine, no message, no buffer of a receive. That takes no longer than
	// Options.Timeout after Close, and Options.Linger after Fail. It may be called more than once.
	Wait()
}

// NewEndpoint is the endpoint of a rank over a transport of the caller's own, which open
// makes. links say how far each rank is; there are as many ranks as links.
func NewEndpoint(rank int, links []Link, opt Options, open func(*Inbox) Transport) Endpoint {
	e := newEndpoint(rank, links, opt)
	e.transport = open(e.inbox)
	return e
}

// Poller is a transport in which a goroutine that waits for a message helps to move it.
type Poller interface {
	// Poll moves messages on the caller's goroutine until a is done, which it reports, or
	// until it gives up.
	Poll(a Awaited) bool
	// Posted is called after a receive from a peer was posted.
	Posted(peer int)
	// Hasten moves messages of a peer that are ready, for a caller that will not wait soon.
	Hasten(peer int)
}

// Carrier takes messages to one peer, as a Transport does to all.
type Carrier interface {
	Carry(m *Message)
	Fail(cause error)
	Close()
	// Gone is closed when the carrier has ended and holds nothing any more.
	Gone() <-chan struct{}
}

// Carriers is a Transport with one Carrier per peer.
type Carriers struct {
	To      []Carrier // by rank; nil: none, as to oneself
	Release func()    // frees what the carriers share; may be called more than once
}

// NewCarriers has no carriers yet.
func NewCarriers(size int) *Carriers {
	return &Carriers{To: make([]Carrier, size), Release: func() {}}
}

func (c *Carriers) Carry(m *Message) { c.To[m.To()].Carry(m) }

func (c *Carriers) Fail(cause error) {
	c.each(func(p Carrier) { p.Fail(cause) })
}

func (c *Carriers) Close() { c.each(Carrier.Close) }

func (c *Carriers) Wait() {
	c.each(func(p Carrier) { <-p.Gone() })
	c.Release()
}

func (c *Carriers) each(do func(Carrier)) {
	for _, p := range c.To {
		if p != nil {
			do(p)
		}
	}
}
