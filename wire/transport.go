package wire

// Transport takes the messages of one endpoint to its peers. NewGroup, Join and JoinMPI
// bring their own; a simulator or a test gives one to NewEndpoint.
//
// What arrives it hands to the Inbox of the receiving endpoint: whole messages (Hand) or
// chunks of them (Deliver), and the end of a peer (PeerClosed, PeerFailed, PeerLost). Of a
// message to one peer, chunks may arrive in any order, and messages may overtake each other;
// each chunk arrives once.
type Transport interface {
	// Carry puts a message on its way, without waiting for the peer. Sooner or later m.Left
	// is called, once: by the transport, or by the Inbox that it was handed to. A message
	// from a rank to itself never comes here.
	Carry(m *Message)
	// Fail ends the transport now: messages that have not left fail with the cause, and all
	// peers are told the cause, so that they fail with it too. It does not wait.
	Fail(cause error)
	// Close lets what was sent leave and tells all peers that nothing follows. It does not
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

// poller is a transport in which a goroutine that waits for a message helps to move it.
type poller interface {
	// poll moves messages on the caller's goroutine until what it seeks is found, which it
	// reports, or until it gives up.
	poll(s sought) bool
	// posted is told that a receive from a peer was posted.
	posted(peer int)
	// hasten moves messages of a peer that are ready, for a caller that will not wait soon.
	hasten(peer int)
}

// carrier takes messages to one peer; a Transport is made of them where peers are reached
// in different ways.
type carrier interface {
	carry(m *Message)
	fail(cause error)
	close()
	// gone is closed when the carrier has ended and holds nothing any more.
	gone() <-chan struct{}
}

// carriers are a Transport with one carrier per peer.
type carriers struct {
	to      []carrier // by rank; nil: none, as to oneself
	release func()    // frees what the carriers share; may be called more than once
}

func newCarriers(size int) *carriers {
	return &carriers{to: make([]carrier, size), release: func() {}}
}

func (c *carriers) Carry(m *Message) { c.to[m.to].carry(m) }

func (c *carriers) Fail(cause error) {
	c.each(func(p carrier) { p.fail(cause) })
}

func (c *carriers) Close() { c.each(carrier.close) }

func (c *carriers) Wait() {
	c.each(func(p carrier) { <-p.gone() })
	c.release()
}

func (c *carriers) each(do func(carrier)) {
	for _, p := range c.to {
		if p != nil {
			do(p)
		}
	}
}
