package wire

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// PreAuthPlaces is how many connections may be unauthenticated at once beyond those of the peers
// themselves. A peer's first message follows its connection at once, so at 5,000 connections per
// second a place is held ten times as long as that message takes.
const PreAuthPlaces = 256

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
		closed bool
		// cookies that were used, and the same in order: a recorded first message that is sent
		// again has no advantage.
		used  map[string]bool
		order []string
	}
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

// makeRoom closes a connection if the class is full. REQUIRES: mu held.
func (p *PreAuthPool) makeRoom(promising bool) {
	var class []*PreAuthConn
	for _, c := range p.mu.conns {
		if c.promising == promising && !c.authenticated {
			class = append(class, c)
		}
	}
	if len(class) < p.limit {
		return
	}
	count, busiest := map[netip.Prefix]int{}, class[0].from
	for _, c := range class {
		if count[c.from]++; count[c.from] > count[busiest] {
			busiest = c.from
		}
	}
	oldest := class[slices.IndexFunc(class, func(c *PreAuthConn) bool { return c.from == busiest })]
	oldest.evict(errPoolFull)
	p.remove(oldest)
}

// REQUIRES: mu held.
func (p *PreAuthPool) remove(c *PreAuthConn) {
	p.mu.conns = slices.DeleteFunc(p.mu.conns, func(o *PreAuthConn) bool { return o == c })
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
	c.authenticated = err == nil
	return err
}

// Remove takes the connection out of the pool; it stays open.
func (c *PreAuthConn) Remove() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.pool.remove(c)
}
