package tcp

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
	"starling/event"
	"starling/wire"
	"starling/wire/shm"
)

// Join connects this worker with all its peers: it dials those of lower rank and
// admits those of higher rank. It returns when all are connected, or fails when
// ctx ends, or, if that has no deadline, after Options.Timeout, and names the ranks
// that are missing.
func Join(ctx context.Context, cfg wire.Config) (wire.Endpoint, error) {
	ctx, cancel := cfg.Begin(ctx)
	defer cancel()
	complete(&cfg)
	if err := validate(&cfg); err != nil {
		if cfg.Listener != nil {
			cfg.Listener.Close()
		}
		return nil, err
	}
	return newMesh(&cfg).join(ctx)
}

// complete fills in what was left out.
func complete(c *wire.Config) {
	if c.Connections == 0 {
		c.Connections = 2
		if c.DSCP {
			c.Connections = len(coflow.Classes())
		}
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
}

func validate(c *wire.Config) error {
	switch {
	case c.Size < 1 || c.Size > 1<<16-1:
		return fmt.Errorf("wire: Size is %d, expected 1 to %d", c.Size, 1<<16-1)
	case c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("wire: Rank is %d, expected 0 to %d", c.Rank, c.Size-1)
	case len(c.Addrs) != c.Size:
		return fmt.Errorf("wire: Addrs has %s for %s", event.Tally(len(c.Addrs), "address"),
			event.Tally(c.Size, "rank"))
	case c.HostIDs != nil && len(c.HostIDs) != c.Size:
		return fmt.Errorf("wire: HostIDs has %s for %s", event.Tally(len(c.HostIDs), "entry"),
			event.Tally(c.Size, "rank"))
	case c.ServerOf != nil && len(c.ServerOf) != c.Size:
		return fmt.Errorf("wire: ServerOf has %s for %s", event.Tally(len(c.ServerOf), "entry"),
			event.Tally(c.Size, "rank"))
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

// sharesMemory reports whether messages to a peer may go through shared memory.
func sharesMemory(c *wire.Config, p int) bool {
	return !c.NoSharedMemory && p != c.Rank && c.SameHost(p)
}

// connSlot is for one connection of one peer.
type connSlot struct {
	taken    bool
	conn     net.Conn // nil while the handshake ends
	unneeded bool     // not needed: there is shared memory
}

// mesh is the connections as they come together.
type mesh struct {
	cfg      *wire.Config
	id       *identity
	endpoint wire.Endpoint
	inbox    *wire.Inbox
	carriers *wire.Carriers
	hub      *shm.Hub // nil: no shared memory
	sock     string   // where peers of this host exchange memory

	mu struct {
		sync.Mutex
		peers   [][]connSlot
		missing int     // slots that are empty
		over    bool    // no peer is admitted any more
		why     []error // the last attempt to dial each peer failed
		memory  []*shm.Memory
	}
	complete chan struct{}
}

func newMesh(cfg *wire.Config) *mesh {
	m := &mesh{cfg: cfg, carriers: wire.NewCarriers(cfg.Size), complete: make(chan struct{})}
	m.endpoint = cfg.Endpoint(func(in *wire.Inbox) wire.Transport {
		m.inbox = in
		return m.carriers
	})
	m.id = &identity{rank: cfg.Rank, size: cfg.Size, connections: cfg.Connections, job: sha256.Sum256([]byte(cfg.Job)),
		token: cfg.Token}
	m.mu.peers, m.mu.why, m.mu.memory = make([][]connSlot, cfg.Size), make([]error, cfg.Size), make([]*shm.Memory, cfg.Size)
	for p := range m.mu.peers {
		m.mu.peers[p] = make([]connSlot, cfg.Connections)
	}
	m.mu.missing = (cfg.Size - 1) * cfg.Connections
	if m.mu.missing == 0 {
		close(m.complete)
	}
	return m
}

func (m *mesh) join(ctx context.Context) (wire.Endpoint, error) {
	ctx, stop := context.WithCancelCause(ctx)
	closeSock := m.openMemory()
	listener := listenAs(m.id, m.cfg.Listener, m.admit, m.cfg.Refused)
	m.carriers.Release = sync.OnceFunc(func() {
		listener.Close()
		if m.hub != nil {
			m.hub.Close()
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
// has failed there may be fewer than wanted, enough to send the cause to the peers.
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
				mem.Close()
			}
			continue
		}
		peer := newCarrier(m.inbox, p, conns)
		if m.cfg.DSCP && len(conns) == m.cfg.Connections {
			peer.lanes.divide()
		}
		m.carriers.To[p] = peer
		defer peer.run()
		if mem != nil {
			peer.share(m.hub.Add(p, peer.queue, mem, m.cfg.RingsOnly))
		}
	}
	if m.hub != nil {
		m.hub.Start()
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
					m.inbox.Name(p), err)
			}
		}
	}
	return nil
}

// explain names who is missing, and as far as is known, why.
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
		text := m.inbox.Name(p)
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
			return fmt.Errorf("rank %d cannot connect with %s: %w", m.cfg.Rank, m.inbox.Name(p), err)
		}
		shared := false
		if memorySocket != "" {
			if shared, err = m.offer(conn, p, memorySocket); err != nil {
				conn.Close()
				return fmt.Errorf("rank %d cannot connect with %s: %w", m.cfg.Rank, m.inbox.Name(p), err)
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
		if err := wire.Sleep(ctx, m.cfg.Clock, wait); err != nil {
			return nil, "", err
		}
	}
}

func (m *mesh) dialOnce(ctx context.Context, p, index int) (net.Conn, string, error) {
	ctx, cancel := wire.WithTimeout(ctx, m.cfg.Clock, handshakeTime)
	defer cancel()
	conn, err := m.cfg.Dial(ctx, m.cfg.Addrs[p])
	if err != nil {
		return nil, "", err
	}
	// The handshake ends with ctx, however far it has come.
	unwatch := context.AfterFunc(ctx, func() { conn.SetDeadline(wire.SocketPast) })
	memorySocket, err := m.id.authenticate(conn, p, index, index == 0 && m.hub != nil && sharesMemory(m.cfg, p))
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
	m.fill(g.rank, g.index, g.Conn)
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
