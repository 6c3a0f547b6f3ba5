package paths

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"starling/wire"
	"starling/wire/tcp"
)

const (
	// helloTime bounds a path's handshake, dialTime the opening of a further path, redialTime the pause between tries.
	helloTime, dialTime, redialTime = 5 * time.Second, time.Second, 500 * time.Millisecond
	maxPaths                        = 16
	maxText                         = 128
)

// Access says who may connect. Every connection of a path authenticates by itself, before anything is kept for it: by
// the handshake and in the pre-authentication pool of package tcp.
type Access struct {
	Token []byte // that both sides know; none: everybody may connect
	// Listen and Client, if set, make the two sides of a connection show certificates.
	Listen func(net.Listener) net.Listener
	Client func(context.Context, net.Conn) (net.Conn, error)
	// Refused, if set, is called for each connection that was refused.
	Refused func(from net.Addr, reason error)
}

func (a *Access) handshake() *tcp.Handshake {
	return &tcp.Handshake{Token: a.Token, Protocol: helloProtocol, Version: helloVersion}
}

// client is the dialling side of a connection.
func (a *Access) client(ctx context.Context, conn net.Conn) (net.Conn, error) {
	if a.Client == nil {
		return conn, nil
	}
	return a.Client(ctx, conn)
}

// Host is this process's end of all paths: it listens on an address of each, and dials.
type Host struct {
	clock   wire.Clock
	access  Access
	chooser *chooser
	names   []string
	own     []netip.Addr // this host's address on each path; invalid: it has none

	base     net.Listener
	sockets  []net.Listener
	listener *tcp.Listener
	addrs    []string // where this host is reached on each path; "": nowhere
	accepted chan net.Conn
	done     chan struct{}
	stop     func()
	changed  func(Change) // nil: none is called

	mu struct {
		sync.Mutex
		conns map[[16]byte]*Conn
		// opens are functions that connect in place of a socket, by path.
		opens map[int]func(ctx context.Context, addr string) (net.Conn, error)
	}
}

// NewHost listens on the address that this host has on each path of the plan, beside base, whose address the peers
// know. Its first request type is a segment; the policy is the one that the file names.
func NewHost(plan *Plan, base net.Listener, access Access, clock wire.Clock) (*Host, error) {
	plan = Segments(plan)
	h := &Host{clock: clock, access: access, chooser: newChooser(plan, NewPolicy(plan), clock.Now()), base: base,
		sockets: []net.Listener{base}, accepted: make(chan net.Conn), done: make(chan struct{})}
	h.stop = sync.OnceFunc(func() { close(h.done) })
	h.mu.conns = map[[16]byte]*Conn{}
	if err := h.open(plan); err != nil {
		h.closeSockets()
		return nil, err
	}
	h.listen()
	return h, nil
}

// open finds this host's address on each path, and opens a socket there unless base has it.
func (h *Host) open(plan *Plan) (err error) {
	if len(plan.File.Paths) > maxPaths {
		return fmt.Errorf("found %d paths, want at most %d", len(plan.File.Paths), maxPaths)
	}
	for _, p := range plan.File.Paths {
		h.names = append(h.names, p.Name)
		own, err := ownAddress(p.Address)
		if err != nil {
			return fmt.Errorf("path %s: %w", p.Name, err)
		}
		addr, err := h.socketAt(own)
		if err != nil {
			return fmt.Errorf("path %s: %w", p.Name, err)
		}
		h.own, h.addrs = append(h.own, own), append(h.addrs, addr)
	}
	if !slices.ContainsFunc(h.addrs, func(addr string) bool { return addr != "" }) {
		return errors.New("found no address of this host on any path, want one on each; name its interfaces or " +
			"prefixes as the paths' addresses")
	}
	h.chooser.mu.record, err = newRecorder(plan)
	return err
}

// socketAt is where peers reach this host at an address of its own; "": nowhere.
func (h *Host) socketAt(own netip.Addr) (string, error) {
	known := addrOf(h.base.Addr())
	switch {
	case !own.IsValid():
		return "", nil
	case own == known || known.IsUnspecified():
		_, port, _ := net.SplitHostPort(h.base.Addr().String())
		return net.JoinHostPort(own.String(), port), nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(own.String(), "0"))
	if err != nil {
		return "", err
	}
	h.sockets = append(h.sockets, l)
	return l.Addr().String(), nil
}

// listen admits connections of all sockets.
func (h *Host) listen() {
	sockets := slices.Clone(h.sockets)
	if h.access.Listen != nil {
		for i, s := range sockets {
			sockets[i] = h.access.Listen(s)
		}
	}
	h.listener = tcp.Listen(h.access.handshake(), len(h.names), h.check, h.admit, h.access.Refused, sockets...)
}

func (h *Host) closeSockets() {
	for _, s := range h.sockets {
		s.Close()
	}
}

func addrOf(a net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(a.String())
	return at.Addr().Unmap()
}

// ownAddress is this host's address in a prefix or on an interface; invalid: it has none.
func ownAddress(where string) (netip.Addr, error) {
	prefix, err := netip.ParsePrefix(where)
	if err == nil && prefix.IsSingleIP() && prefix.Addr().IsLoopback() { // all of 127.0.0.0/8 are this host's
		return prefix.Addr(), nil
	}
	if err == nil {
		all, err := net.InterfaceAddrs()
		if err != nil {
			return netip.Addr{}, err
		}
		return within(all, prefix), nil
	}
	nic, err := net.InterfaceByName(where)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("found address %q, want an interface of this host or a prefix such as "+
			"10.0.1.0/24", where)
	}
	all, err := nic.Addrs()
	return within(all, netip.Prefix{}), err
}

// Own is this host's address on a path; invalid: it has none.
func (p *Path) Own() (netip.Addr, error) { return ownAddress(p.Address) }

// within is the first address in a prefix, or of version 4 if there is none.
func within(all []net.Addr, prefix netip.Prefix) netip.Addr {
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && (prefix.Contains(p.Addr()) || !prefix.IsValid() && p.Addr().Is4()) {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// The claim of a path's connection is the id of the connection that it belongs to [16], whether it is the first of it u8,
// zero [11], and the first bytes of the SHA-256 of the path's name [16]. A dialer that was accepted is sent the addresses
// of all paths, as lines of name and address.
const (
	helloProtocol = "SPH"
	helloVersion  = 2 // 1 did not authenticate
)

// claim is a connection's of a path.
type claim struct {
	id    [16]byte
	first bool
	path  [16]byte
}

func pathKey(name string) [16]byte {
	sum := sha256.Sum256([]byte(name))
	return [16]byte(sum[:])
}

func (c *claim) put() []byte {
	b := append(make([]byte, 0, tcp.ClaimSize), c.id[:]...)
	b = append(b, make([]byte, 12)...)
	if c.first {
		b[16] = 1
	}
	return append(b, c.path[:]...)
}

func (c *claim) parse(b []byte) {
	c.id, c.first, c.path = [16]byte(b), b[16] == 1, [16]byte(b[28:])
}

// pathNamed is the path of a claim; -1: there is none.
func (h *Host) pathNamed(key [16]byte) int {
	return slices.IndexFunc(h.names, func(name string) bool { return pathKey(name) == key })
}

// check returns what is wrong with a claim.
func (h *Host) check(b []byte) *tcp.Refusal {
	var c claim
	if c.parse(b); h.pathNamed(c.path) < 0 {
		return &tcp.Refusal{Reason: "a path that this host does not have; give every worker the same --paths", Final: true}
	}
	return nil
}

// admit takes in the connection of a path from a peer that has authenticated.
func (h *Host) admit(d *tcp.Introduced) error {
	var c claim
	c.parse(d.Claim)
	k, isNew := h.connOf(&c, d.Conn)
	if k == nil { // the connection is over: nothing to report, and no path of it comes back
		d.Conn.Close()
		return nil
	}
	if err := h.welcome(d); err != nil {
		return err
	}
	if !k.attach(h.pathNamed(c.path), d.Conn) {
		d.Conn.Close()
		return nil
	}
	if isNew {
		select {
		case h.accepted <- k:
		case <-h.done:
			k.Close()
		}
	}
	return nil
}

// connOf is the connection that a path belongs to, made by its first; nil: there is none.
func (h *Host) connOf(c *claim, conn net.Conn) (k *Conn, isNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.mu.conns[c.id]; k != nil || !c.first {
		return k, false
	}
	k = newConn(h.clock, h.chooser, conn.LocalAddr(), conn.RemoteAddr())
	k.onClose = func(*Conn) { h.forget(c.id) }
	h.mu.conns[c.id] = k
	return k, true
}

func (h *Host) forget(id [16]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mu.conns, id)
}

// welcome accepts a dialer, and sends it the addresses of all paths.
func (h *Host) welcome(d *tcp.Introduced) error {
	if err := d.Accept(""); err != nil {
		return err
	}
	var b strings.Builder
	for i, addr := range h.addrs {
		if addr != "" {
			fmt.Fprintf(&b, "%s %s\n", h.names[i], addr)
		}
	}
	text := b.String()
	if _, err := d.Conn.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(text))), text...)); err != nil {
		return err
	}
	return d.Conn.SetDeadline(time.Time{})
}

// hello opens a path of a connection, and returns the peer's addresses.
func (h *Host) hello(conn net.Conn, id [16]byte, first bool, path int) (map[string]string, error) {
	conn.SetDeadline(wire.SocketTime(helloTime))
	c := claim{id: id, first: first, path: pathKey(h.names[path])}
	if _, err := h.access.handshake().Introduce(conn, c.put()); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	text := make([]byte, min(int(binary.LittleEndian.Uint16(size[:])), maxPaths*2*maxText))
	if _, err := io.ReadFull(conn, text); err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	addrs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, addr, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			addrs[name] = addr
		}
	}
	return addrs, nil
}

// Dial connects with a peer, at the address it is known by; the other paths follow.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := h.connect(ctx, -1, addr)
	if err != nil {
		return nil, err
	}
	var id [16]byte
	rand.Read(id[:])
	path := h.pathOf(addrOf(conn.LocalAddr()))
	addrs, err := h.hello(conn, id, true, path)
	if err != nil {
		conn.Close()
		return nil, err
	}
	k := newConn(h.clock, h.chooser, conn.LocalAddr(), conn.RemoteAddr())
	ended, end := context.WithCancel(context.Background())
	k.onClose = func(*Conn) { end() }
	h.notifyOf(k, addr)
	k.attach(path, conn)
	for i, name := range h.names {
		to := addrs[name]
		if i == path {
			to = addr
		}
		if to != "" && h.own[i].IsValid() {
			go h.keep(ended, k, id, i, to)
		}
	}
	return k, nil
}

// connect opens a connection on a path, or on any (-1), and shows the certificate.
func (h *Host) connect(ctx context.Context, path int, addr string) (net.Conn, error) {
	h.mu.Lock()
	open := h.mu.opens[path]
	h.mu.Unlock()
	if open == nil {
		d := new(net.Dialer)
		if path >= 0 {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.own[path], 0))
		}
		open = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	conn, err := open(ctx, addr)
	if err != nil {
		return nil, err
	}
	return h.access.client(ctx, conn)
}

// pathOf is the path of an address of this host; the first, if it is of none.
func (h *Host) pathOf(own netip.Addr) int {
	return max(slices.Index(h.own, own), 0)
}

// keep opens a path whenever it is down.
func (h *Host) keep(ctx context.Context, k *Conn, id [16]byte, path int, addr string) {
	for ctx.Err() == nil {
		if !k.has(path) {
			h.reopen(ctx, k, id, path, addr)
		}
		if wire.Sleep(ctx, h.clock, redialTime) != nil {
			return
		}
	}
}

func (h *Host) reopen(ctx context.Context, k *Conn, id [16]byte, path int, addr string) {
	ctx, cancel := wire.WithTimeout(ctx, h.clock, dialTime)
	defer cancel()
	conn, err := h.connect(ctx, path, addr)
	if err != nil {
		return
	}
	if _, err := h.hello(conn, id, false, path); err != nil || !k.attach(path, conn) {
		conn.Close()
	}
}

// has reports whether a path is up.
func (k *Conn) has(path int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.links[path] != nil
}

// Accept, Close and Addr implement net.Listener.
func (h *Host) Accept() (net.Conn, error) {
	select {
	case c := <-h.accepted:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close stops listening on all paths, and writes the record if there is one. Connections stay, but take no path back
// that fails.
func (h *Host) Close() error {
	h.stop()
	return errors.Join(h.listener.Close(), h.chooser.close())
}

// Addr is the address by which peers know this host.
func (h *Host) Addr() net.Addr { return h.base.Addr() }
