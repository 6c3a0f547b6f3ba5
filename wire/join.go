package wire

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"starling/coflow"
)

// Config is what a worker needs to know to join its peers. Where the addresses
// come from is the business of a rendezvous.
type Config struct {
	Options
	// Rank of this worker, and how many there are.
	Rank, Size int
	// Job tells apart runs on the same hosts.
	Job string
	// Addrs are where the ranks listen, host:port. This rank's own is not used.
	Addrs []string
	// HostIDs say which ranks share a host, and so can share memory. Nil: none do.
	HostIDs []string
	// Listener is where this rank listens. Join owns it from here on.
	Listener net.Listener
	// Token is the secret that all ranks share. None is needed on loopback.
	Token []byte
	// Insecure allows listening beyond loopback without a token.
	Insecure bool
	// Connections to each peer over TCP; 0: 2, or with DSCP one per class.
	Connections int
	// DSCP gives each class of coflows (coflow.Classes) a connection of its own, whose packets
	// have the mark of the class, for networks that look at it.
	DSCP bool
	// NoSharedMemory makes ranks of one host use TCP too.
	NoSharedMemory bool
	// ringsOnly keeps the peers from reading this rank's memory, as kernels may.
	ringsOnly bool
	// Dial opens a connection to a peer; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Refused, if set, is told of every connection that was refused.
	Refused func(from net.Addr, reason error)
}

// Join connects this worker with all its peers: it dials those of lower rank and
// admits those of higher rank. It returns when all are connected, or fails when
// ctx ends, or, if that has no deadline, after Options.Timeout, and names the ranks
// that are missing.
func Join(ctx context.Context, cfg Config) (Endpoint, error) {
	cfg.Options = cfg.Options.withDefaults()
	if cfg.Connections == 0 {
		cfg.Connections = 2
		if cfg.DSCP {
			cfg.Connections = len(coflow.Classes())
		}
	}
	if err := cfg.validate(); err != nil {
		if cfg.Listener != nil {
			cfg.Listener.Close()
		}
		return nil, err
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = WithTimeout(ctx, cfg.Clock, cfg.Timeout)
		defer cancel()
	}
	return newMesh(&cfg).join(ctx)
}

func (c *Config) validate() error {
	switch {
	case c.Size < 1 || c.Size > 1<<16-1:
		return fmt.Errorf("wire: Size is %d, expected 1 to %d", c.Size, 1<<16-1)
	case c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("wire: Rank is %d, expected 0 to %d", c.Rank, c.Size-1)
	case len(c.Addrs) != c.Size:
		return fmt.Errorf("wire: Addrs has %d addresses for %d ranks", len(c.Addrs), c.Size)
	case c.HostIDs != nil && len(c.HostIDs) != c.Size:
		return fmt.Errorf("wire: HostIDs has %d entries for %d ranks", len(c.HostIDs), c.Size)
	case c.ServerOf != nil && len(c.ServerOf) != c.Size:
		return fmt.Errorf("wire: ServerOf has %d entries for %d ranks", len(c.ServerOf), c.Size)
	case c.Connections < 1 || c.Connections > 64:
		return fmt.Errorf("wire: Connections is %d, expected 1 to 64", c.Connections)
	case c.DSCP && c.Connections != len(coflow.Classes()):
		return fmt.Errorf("wire: Connections is %d, expected %d: one per class", c.Connections, len(coflow.Classes()))
	case c.Listener == nil:
		return errors.New("wire: Listener is missing")
	case len(c.Token) == 0 && !c.Insecure && !onLoopback(c.Listener.Addr()):
		return fmt.Errorf("wire: rank %d listens on %v, which others can reach, without a token; give all workers "+
			"one, or listen on 127.0.0.1", c.Rank, c.Listener.Addr())
	}
	return nil
}

func onLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// links says how far every peer is.
func (c *Config) links() []Link {
	far := make([]Link, c.Size)
	for p := range far {
		switch {
		case p == c.Rank:
			far[p] = SameProcess
		case c.ServerOf != nil && c.ServerOf[p] == c.ServerOf[c.Rank], c.ServerOf == nil && c.sameHost(p):
			far[p] = SameHost
		default:
			far[p] = BetweenServers
		}
	}
	return far
}

func (c *Config) sameHost(p int) bool {
	return c.HostIDs != nil && c.HostIDs[p] != "" && c.HostIDs[p] == c.HostIDs[c.Rank]
}

func (c *Config) sharesMemory(p int) bool { return !c.NoSharedMemory && p != c.Rank && c.sameHost(p) }

// connSlot is for one connection of one peer.
type connSlot struct {
	taken    bool
	conn     net.Conn // nil while the handshake ends
	unneeded bool     // not needed: there is shared memory
}

// mesh is the connections as they come together.
type mesh struct {
	cfg      *Config
	id       *identity
	endpoint *endpoint
	carriers *carriers
	hub      *hub   // nil: no shared memory
	sock     string // where peers of this host exchange memory

	mu struct {
		sync.Mutex
		peers   [][]connSlot
		missing int     // slots that are empty
		over    bool    // no peer is admitted any more
		why     []error // the last attempt to dial each peer failed
		memory  []*memory
	}
	complete chan struct{}
}

func newMesh(cfg *Config) *mesh {
	m := &mesh{cfg: cfg, endpoint: newEndpoint(cfg.Rank, cfg.links(), cfg.Options), complete: make(chan struct{})}
	m.id = &identity{rank: cfg.Rank, size: cfg.Size, connections: cfg.Connections, job: sha256.Sum256([]byte(cfg.Job)),
		token: cfg.Token}
	m.endpoint.addrs = cfg.Addrs
	m.carriers = newCarriers(cfg.Size)
	m.endpoint.transport = m.carriers
	m.mu.peers, m.mu.why, m.mu.memory = make([][]connSlot, cfg.Size), make([]error, cfg.Size), make([]*memory, cfg.Size)
	for p := range m.mu.peers {
		m.mu.peers[p] = make([]connSlot, cfg.Connections)
	}
	m.mu.missing = (cfg.Size - 1) * cfg.Connections
	if m.mu.missing == 0 {
		close(m.complete)
	}
	return m
}

func (m *mesh) join(ctx context.Context) (Endpoint, error) {
	ctx, stop := context.WithCancelCause(ctx)
	closeSock := m.openMemory()
	listener := newListener(m.cfg.Listener, m.id, m.admit, m.cfg.Refused)
	m.carriers.release = sync.OnceFunc(func() {
		listener.close()
		if m.hub != nil {
			m.hub.close()
		}
	})
	var dials sync.WaitGroup
	for p := range m.cfg.Rank {
		dials.Go(func() {
			if err := m.dialPeer(ctx, p); err != nil {
				stop(err)
			}
		})
	}
	var err error
	select {
	case <-m.complete:
	case <-ctx.Done():
		err = m.explain(context.Cause(ctx))
	}
	stop(context.Canceled)
	dials.Wait()
	closeSock()
	if err == nil && m.cfg.DSCP {
		err = m.mark()
	}
	m.start()
	if err != nil {
		m.endpoint.Fail(err)
		m.endpoint.Close()
		return nil, err
	}
	return m.endpoint, nil
}

// start makes carriers of the connections, and admits no peer after. When joining
// has failed there may be fewer than wanted, enough to tell the peers.
func (m *mesh) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.over = true
	for p, slots := range m.mu.peers {
		var conns []net.Conn
		for _, s := range slots {
			if s.conn != nil {
				s.conn.SetDeadline(time.Time{})
				conns = append(conns, s.conn)
			}
		}
		mem := m.mu.memory[p]
		if len(conns) == 0 {
			if mem != nil {
				mem.close()
			}
			continue
		}
		peer := newTCPPeer(m.endpoint, p, conns)
		if m.cfg.DSCP && len(conns) == m.cfg.Connections {
			peer.queue.divide()
		}
		m.carriers.to[p] = peer
		defer peer.start()
		if mem != nil {
			mem.lends = mem.lends && !m.cfg.ringsOnly
			m.carriers.to[p] = m.hub.add(peer, mem)
		}
	}
	if m.hub != nil {
		m.hub.start()
	}
}

// mark gives the packets of each connection the mark of its class. What peers send each
// other through memory has none.
func (m *mesh) mark() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	codes := coflow.Classes()
	for p, slots := range m.mu.peers {
		for i, s := range slots {
			if s.conn == nil {
				continue
			}
			if err := kernelOf(s.conn).mark(codes[i]); err != nil {
				return fmt.Errorf("rank %d cannot mark packets to %s: %w; run without --dscp", m.cfg.Rank,
					name(p, m.cfg.Addrs[p]), err)
			}
		}
	}
	return nil
}

// explain says who is missing, and as far as is known, why.
func (m *mesh) explain(cause error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	var who []string
	for p, slots := range m.mu.peers {
		if p == m.cfg.Rank || !slices.ContainsFunc(slots, func(s connSlot) bool {
			return s.conn == nil &&
				!s.unneeded
		}) {
			continue
		}
		text := name(p, m.cfg.Addrs[p])
		if m.mu.why[p] != nil {
			text += ": " + m.mu.why[p].Error()
		}
		who = append(who, text)
	}
	return fmt.Errorf("rank %d waited too long to connect with %s", m.cfg.Rank, strings.Join(who, "; "))
}

// dialPeer opens all connections to one peer.
func (m *mesh) dialPeer(ctx context.Context, p int) error {
	for i := range m.cfg.Connections {
		conn, memorySocket, err := m.dial(ctx, p, i)
		if err != nil {
			return fmt.Errorf("rank %d cannot connect with %s: %w", m.cfg.Rank, name(p, m.cfg.Addrs[p]), err)
		}
		shared := false
		if memorySocket != "" {
			if shared, err = m.offer(conn, p, memorySocket); err != nil {
				conn.Close()
				return fmt.Errorf("rank %d cannot connect with %s: %w", m.cfg.Rank, name(p, m.cfg.Addrs[p]), err)
			}
		}
		m.reserve(p, i)
		m.fill(p, i, conn)
		if shared {
			m.skipRest(p)
			return nil
		}
	}
	return nil
}

// dial opens one connection, trying again while that may help: the peer may not be
// listening yet.
func (m *mesh) dial(ctx context.Context, p, index int) (net.Conn, string, error) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, memorySocket, err := m.dialOnce(ctx, p, index)
		if err == nil {
			return conn, memorySocket, nil
		}
		var r *Refusal
		if errors.As(err, &r) && r.Final {
			return nil, "", fmt.Errorf("it refused: %w", err)
		}
		m.mu.Lock()
		m.mu.why[p] = err
		m.mu.Unlock()
		if err := Sleep(ctx, m.endpoint.clock, wait); err != nil {
			return nil, "", err
		}
	}
}

func (m *mesh) dialOnce(ctx context.Context, p, index int) (net.Conn, string, error) {
	ctx, cancel := WithTimeout(ctx, m.endpoint.clock, handshakeTime)
	defer cancel()
	conn, err := m.cfg.Dial(ctx, m.cfg.Addrs[p])
	if err != nil {
		return nil, "", err
	}
	// The handshake ends with ctx, however far it has come.
	unwatch := context.AfterFunc(ctx, func() { conn.SetDeadline(SocketPast) })
	memorySocket, err := m.id.authenticate(conn, p, index, index == 0 && m.hub != nil && m.cfg.sharesMemory(p))
	if !unwatch() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, "", err
	}
	return conn, memorySocket, nil
}

// admit takes in a connection from a peer of higher rank.
func (m *mesh) admit(g *candidate) error {
	if !m.reserve(g.rank, g.index) {
		return &Refusal{Reason: fmt.Sprintf("rank %d is connected already", g.rank)}
	}
	shared, err := m.welcome(g)
	if err != nil {
		m.fill(g.rank, g.index, nil)
		return err
	}
	m.fill(g.rank, g.index, g.conn)
	if shared {
		m.skipRest(g.rank)
	}
	return nil
}

// reserve takes a slot until its handshake has ended.
func (m *mesh) reserve(p, index int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.mu.peers[p][index]
	if m.mu.over || s.taken {
		return false
	}
	s.taken = true
	return true
}

// fill puts a connection into a reserved slot, or with nil frees the slot.
func (m *mesh) fill(p, index int, conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.mu.peers[p][index]
	if s.unneeded { // since it was reserved; it is counted already
		if conn != nil {
			conn.Close()
		}
		return
	}
	*s = connSlot{taken: conn != nil, conn: conn}
	if conn == nil {
		return
	}
	if m.mu.over {
		conn.Close() // too late: joining has failed
		return
	}
	m.filled()
}

// skipRest marks the other connections of a peer as not needed.
func (m *mesh) skipRest(p int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.mu.peers[p] {
		if s := &m.mu.peers[p][i]; s.conn == nil {
			s.taken, s.unneeded = true, true
			m.filled()
		}
	}
}

// filled counts a slot.
// REQUIRES: mu held.
func (m *mesh) filled() {
	if m.mu.missing--; m.mu.missing == 0 {
		close(m.complete)
	}
}
