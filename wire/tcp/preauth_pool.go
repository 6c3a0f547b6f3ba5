package tcp

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// PreAuthPlaces is how many connections may be unauthenticated at once beyond those of the peers
// themselves. Addresses share places evenly, so where a flood of 5,000 connections per second comes from
// nine of them, half of it from the host of a peer, the peer's connection keeps its place for 90 ms. Its
// first message follows it at once, and has to arrive by then.
const PreAuthPlaces = 2048

// rememberedCookies bounds the memory for replays: a job has far fewer handshakes.
const rememberedCookies = 1 << 16

var (
	errPoolFull   = errors.New("too many unauthenticated connections: it was the oldest and was closed")
	errPoolClosed = errors.New("the listener was closed")
)

// PreAuthPool holds the connections that have not authenticated yet, in two classes of limit
// places each: those that have sent nothing, and those whose first message has a cookie that only
// a process with the token can make. When another one comes to a full class, one of the same class
// is closed: the oldest of the address that has most. So a flood of connections closes neither
// those of peers that are about to prove themselves, nor those of other addresses.
type PreAuthPool struct {
	limit int
	mu    struct {
		sync.Mutex
		conns  []*PreAuthConn // in the order of arrival
		places [2]places      // of the class without and with a cookie
		closed bool
		// cookies that were used, and the same in order: a recorded first message that is sent
		// again has no advantage.
		used  map[string]bool
		order []string
	}
}

// places counts the connections of a class, in all and by address.
type places struct {
	taken int
	by    map[netip.Prefix]int
}

func (p *places) add(from netip.Prefix, n int) {
	p.taken += n
	if p.by[from] += n; p.by[from] == 0 {
		delete(p.by, from)
	}
}

// busiest is the address that has most; of several, any.
func (p *places) busiest() (from netip.Prefix) {
	most := 0
	for a, n := range p.by {
		if n > most {
			from, most = a, n
		}
	}
	return from
}

// PreAuthConn is a connection in the pool.
type PreAuthConn struct {
	Conn          net.Conn
	pool          *PreAuthPool
	from          netip.Prefix
	promising     bool // it has sent a cookie
	authenticated bool
	evicted       error // why the pool closed it; nil: it did not
}

// NewPreAuthPool holds up to limit connections of each class.
func NewPreAuthPool(limit int) *PreAuthPool {
	p := &PreAuthPool{limit: limit}
	p.mu.used = map[string]bool{}
	for i := range p.mu.places {
		p.mu.places[i].by = map[netip.Prefix]int{}
	}
	return p
}

// Add takes a connection into the pool; nil: the pool is closed.
func (p *PreAuthPool) Add(conn net.Conn) *PreAuthConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil
	}
	p.makeRoom(false)
	c := &PreAuthConn{Conn: conn, pool: p, from: networkOf(conn.RemoteAddr())}
	p.mu.conns = append(p.mu.conns, c)
	p.class(false).add(c.from, 1)
	return c
}

// networkOf is what counts as one address: of IPv6, where one host may have any number, the
// first 64 bits.
func networkOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	network, _ := ip.Prefix(bits) // the zero one of an invalid address
	return network
}

// class has the places of connections with or without a cookie. REQUIRES: mu held.
func (p *PreAuthPool) class(promising bool) *places {
	if promising {
		return &p.mu.places[1]
	}
	return &p.mu.places[0]
}

// makeRoom closes a connection if the class is full. REQUIRES: mu held.
func (p *PreAuthPool) makeRoom(promising bool) {
	class := p.class(promising)
	if class.taken < p.limit {
		return
	}
	busiest := class.busiest()
	oldest := p.mu.conns[slices.IndexFunc(p.mu.conns, func(c *PreAuthConn) bool {
		return c.promising == promising && !c.authenticated && c.from == busiest
	})]
	oldest.evict(errPoolFull)
	p.remove(oldest)
}

// REQUIRES: mu held.
func (p *PreAuthPool) remove(c *PreAuthConn) {
	i := slices.Index(p.mu.conns, c)
	if i < 0 {
		return
	}
	p.mu.conns = slices.Delete(p.mu.conns, i, i+1)
	if !c.authenticated {
		p.class(c.promising).add(c.from, -1)
	}
}

// Close closes the connections in the pool; Add takes no more.
func (p *PreAuthPool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	for _, c := range p.mu.conns {
		c.evict(errPoolClosed)
	}
}

// REQUIRES: the pool's mu held.
func (c *PreAuthConn) evict(why error) {
	c.evicted = why
	c.Conn.Close()
}

// Promising records that the peer has sent a valid cookie, or has shown a certificate (no
// cookie): connections without one no longer take its place. One that was used before changes
// nothing.
func (c *PreAuthConn) Promising(cookie string) {
	p := c.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.evicted != nil || c.promising || cookie != "" && p.replayed(cookie) {
		return
	}
	p.makeRoom(true)
	p.class(false).add(c.from, -1)
	p.class(true).add(c.from, 1)
	c.promising = true
}

// replayed reports whether a cookie was used before, and remembers it. REQUIRES: mu held.
func (p *PreAuthPool) replayed(cookie string) bool {
	if p.mu.used[cookie] {
		return true
	}
	if len(p.mu.order) == rememberedCookies {
		delete(p.mu.used, p.mu.order[0])
		p.mu.order = p.mu.order[1:]
	}
	p.mu.used[cookie] = true
	p.mu.order = append(p.mu.order, cookie)
	return false
}

// Authenticated records the outcome of the handshake. With err == nil the pool no longer
// closes the connection in favour of others. It returns why the pool closed it before, or err.
func (c *PreAuthConn) Authenticated(err error) error {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.evicted != nil {
		return c.evicted
	}
	if err == nil && !c.authenticated {
		c.authenticated = true
		c.pool.class(c.promising).add(c.from, -1)
	}
	return err
}

// Remove takes the connection out of the pool; it stays open.
func (c *PreAuthConn) Remove() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.pool.remove(c)
}
