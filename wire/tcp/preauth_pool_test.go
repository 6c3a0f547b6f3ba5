package tcp

import (
	"fmt"
	"net"
	"testing"
)

// addressed is a connection from an address, which notes that it was closed.
type addressed struct {
	net.Conn
	from   string
	closed bool
}

func (c *addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }
func (c *addressed) Close() error         { c.closed = true; return nil }

// TestPreAuthPool: a flood closes its own connections, not those that have shown a cookie, nor
// those of other addresses; a cookie helps once.
func TestPreAuthPool(t *testing.T) {
	p := NewPreAuthPool(8)
	add := func(from string) (*PreAuthConn, *addressed) {
		conn := &addressed{from: from}
		return p.Add(conn), conn
	}
	_, other := add("10.0.0.2")
	worker, same := add("10.0.0.1")
	worker.Promising("cookie")
	again, replayed := add("10.0.0.1")
	again.Promising("cookie")
	for range 1000 {
		add("10.0.0.1")
	}
	if other.closed || same.closed || !replayed.closed || len(p.mu.conns) != 9 {
		t.Errorf("another address closed %v, a worker %v, a replay %v, %d held", other.closed, same.closed,
			replayed.closed, len(p.mu.conns))
	}
	for i := range 8 { // of one IPv6 host
		add(fmt.Sprintf("2001:db8::%x", i))
	}
	_, host := add("2001:db8:0:1::1")
	for i := range 100 {
		add(fmt.Sprintf("2001:db8::%x", i))
	}
	if host.closed {
		t.Error("one IPv6 host counts as many")
	}
	// Cookies that were made with the token fill their own class only.
	for i := range 100 {
		c, _ := add("10.0.0.3")
		c.Promising(fmt.Sprint(i))
	}
	if same.closed || other.closed {
		t.Error("the worker with fewest connections was closed")
	}
	if err := worker.Authenticated(nil); err != nil {
		t.Error(err)
	}
	if err := again.Authenticated(nil); err != errPoolFull {
		t.Error(err)
	}
	p.mu.used, p.mu.order = map[string]bool{}, nil
	for i := range rememberedCookies + 10 {
		p.replayed(fmt.Sprint(i))
	}
	if len(p.mu.used) != rememberedCookies || !p.replayed("10") || p.replayed("9") {
		t.Errorf("%d cookies are remembered", len(p.mu.used))
	}
}
