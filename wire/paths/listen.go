package paths

import (
	"context"
	"crypto/rand"
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
)

const (
	// helloTime bounds a path's handshake, dialTime the opening of a further path, redialTime the pause between tries.
	helloTime, dialTime, redialTime = 5 * time.Second, time.Second, 500 * time.Millisecond
	// mostHellos is how many handshakes may be under way.
	mostHellos = 128
	maxPaths   = 16
	maxText    = 128
)

// Host is this process's end of all paths: it listens on an address of each, and dials.
type Host struct {
	clock   wire.Clock
	chooser *chooser
	names   []string
	own     []netip.Addr // this host's address on each path; invalid: it has none

	base      net.Listener
	listeners []net.Listener
	addrs     []string // where this host is reached on each path; "": nowhere
	accepted  chan net.Conn
	done      chan struct{}
	stop      func()
	hellos    chan struct{}

	mu struct {
		sync.Mutex
		conns map[[16]byte]*Conn
	}
}

// NewHost listens on the address that this host has on each path of the plan, beside base, whose address the peers
// know. Its first request type is a segment; the policy is the one that the file names.
func NewHost(plan *Plan, base net.Listener, clock wire.Clock) (*Host, error) {
	plan = Segments(plan)
	h := &Host{clock: clock, chooser: newChooser(plan, NewPolicy(plan), clock.Now()), base: base,
		accepted: make(chan net.Conn), done: make(chan struct{}), hellos: make(chan struct{}, mostHellos)}
	h.stop = sync.OnceFunc(func() { close(h.done) })
	h.mu.conns = map[[16]byte]*Conn{}
	if len(plan.File.Paths) > maxPaths {
		return nil, fmt.Errorf("found %d paths, want at most %d", len(plan.File.Paths), maxPaths)
	}
	known := addrOf(base.Addr())
	found := 0
	for _, p := range plan.File.Paths {
		h.names = append(h.names, p.Name)
		own, err := ownAddress(p.Address)
		if err != nil {
			h.Close()
			return nil, fmt.Errorf("path %s: %w", p.Name, err)
		}
		h.own = append(h.own, own)
		addr := ""
		switch {
		case !own.IsValid():
		case own == known || known.IsUnspecified():
			_, port, _ := net.SplitHostPort(base.Addr().String())
			addr = net.JoinHostPort(own.String(), port)
		default:
			l, err := net.Listen("tcp", net.JoinHostPort(own.String(), "0"))
			if err != nil {
				h.Close()
				return nil, fmt.Errorf("path %s: %w", p.Name, err)
			}
			h.listeners = append(h.listeners, l)
			addr = l.Addr().String()
		}
		if addr != "" {
			found++
		}
		h.addrs = append(h.addrs, addr)
	}
	if found == 0 {
		h.Close()
		return nil, errors.New("found no address of this host on any path, want one on each; name its interfaces or " +
			"prefixes as the paths' addresses")
	}
	var err error
	if h.chooser.mu.record, err = newRecorder(plan); err != nil {
		h.Close()
		return nil, err
	}
	for _, l := range append(h.listeners, base) {
		go h.serve(l)
	}
	return h, nil
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

// serve takes in connections of one listener.
func (h *Host) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case h.hellos <- struct{}{}:
			go func() {
				defer func() { <-h.hellos }()
				if h.admit(conn) != nil {
					conn.Close()
				}
			}()
		default:
			conn.Close() // too many that have not said who they are
		}
	}
}

// A hello is "SPH1", the connection's id, whether it is the first of it, and the name of the path. It is answered with
// the addresses of all paths, as lines of name and address.
const helloMagic = "SPH1"

func (h *Host) admit(conn net.Conn) error {
	conn.SetDeadline(wire.SocketTime(helloTime))
	var head [22]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil || string(head[:4]) != helloMagic || head[21] > maxText {
		return errStream
	}
	name := make([]byte, head[21])
	if _, err := io.ReadFull(conn, name); err != nil {
		return err
	}
	id, first, path := [16]byte(head[4:20]), head[20] == 1, slices.Index(h.names, string(name))
	if path < 0 {
		return errStream
	}
	h.mu.Lock()
	k := h.mu.conns[id]
	if k == nil && first {
		k = newConn(h.clock, h.chooser, conn.LocalAddr(), conn.RemoteAddr())
		k.onClose = func(*Conn) { h.forget(id) }
		h.mu.conns[id] = k
	} else {
		first = false
	}
	h.mu.Unlock()
	if k == nil {
		return errStream
	}
	if err := h.welcome(conn); err != nil {
		return err
	}
	conn.SetDeadline(time.Time{})
	if !k.attach(path, conn) {
		return net.ErrClosed
	}
	if first {
		select {
		case h.accepted <- k:
		case <-h.done:
			k.Close()
		}
	}
	return nil
}

func (h *Host) forget(id [16]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mu.conns, id)
}

// welcome answers a hello.
func (h *Host) welcome(conn net.Conn) error {
	var b strings.Builder
	for i, addr := range h.addrs {
		if addr != "" {
			fmt.Fprintf(&b, "%s %s\n", h.names[i], addr)
		}
	}
	text := b.String()
	_, err := conn.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(text))), text...))
	return err
}

// hello opens a path of a connection, and returns the peer's addresses.
func (h *Host) hello(conn net.Conn, id [16]byte, first bool, path int) (map[string]string, error) {
	conn.SetDeadline(wire.SocketTime(helloTime))
	b := append([]byte(helloMagic), id[:]...)
	b = append(b, 0, byte(len(h.names[path])))
	if first {
		b[20] = 1
	}
	if _, err := conn.Write(append(b, h.names[path]...)); err != nil {
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
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
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
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.own[path], 0))}
	conn, err := d.DialContext(ctx, "tcp", addr)
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
	for _, l := range h.listeners {
		l.Close()
	}
	return errors.Join(h.base.Close(), h.chooser.close())
}

// Addr is the address by which peers know this host.
func (h *Host) Addr() net.Addr { return h.base.Addr() }
