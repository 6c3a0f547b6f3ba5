package paths

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/wire"
)

// twoHosts are two ends that listen on two addresses of this host.
func twoHosts(t *testing.T) (a, b *Host) {
	t.Helper()
	return hostAt(t, wire.Real), hostAt(t, wire.Real)
}

// hostAt is an end that listens on two addresses of this host, with the clock of its connections.
func hostAt(t *testing.T, clock wire.Clock) *Host {
	t.Helper()
	plan := links(t, 2)
	plan.File.Paths[0].Address, plan.File.Paths[1].Address = "127.0.0.1/32", "127.0.0.2/32"
	base, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHost(plan, base, Access{Token: []byte("secret")}, clock)
	if err != nil {
		t.Skip("no second loopback address:", err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// connected is a connection between two hosts with both paths up.
func connected(t *testing.T) (dialled, accepted *Conn) {
	t.Helper()
	a, b := twoHosts(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	there := make(chan net.Conn, 1)
	go func() {
		c, err := b.Accept()
		if err == nil {
			there <- c
		}
	}()
	c, err := a.Dial(ctx, b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-there:
		dialled, accepted = c.(*Conn), s.(*Conn)
	case <-ctx.Done():
		t.Fatal("not accepted")
	}
	waitFor(t, func() bool { return dialled.has(0) && dialled.has(1) && accepted.has(0) && accepted.has(1) })
	return dialled, accepted
}

// waitFor polls for something that other goroutines do.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not happen in half a minute")
}

// text is bytes that differ everywhere.
func text(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) + byte(i>>8)*seed + byte(i>>16)
	}
	return b
}

// TestConnSurvivesItsPaths: 8 MB in each direction arrive as they were written, though every path is cut once or twice
// on the way, from either side; the paths are taken back.
func TestConnSurvivesItsPaths(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	var both sync.WaitGroup
	move := func(from, to *Conn, data []byte) {
		both.Go(func() {
			for at := 0; at < len(data); at += 1 << 20 {
				if at == 2<<20 || at == 5<<20 {
					cut(from, (at>>20)%2)
				}
				if _, err := from.Write(data[at : at+1<<20]); err != nil {
					t.Error(err)
				}
			}
			from.CloseWrite()
		})
		both.Go(func() {
			got, err := io.ReadAll(to)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes of %d, the first difference at %d: %v", len(got), len(data), difference(got, data), err)
			}
		})
	}
	move(a, b, text(8<<20, 1))
	move(b, a, text(8<<20, 3))
	both.Wait()
	if a.Switched() == 0 && b.Switched() == 0 {
		t.Error("no path was cut")
	}
	a.Close()
	b.Close()
}

// cut closes the TCP connection of a path, if it is up.
func cut(k *Conn, path int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.mu.links[path]; l != nil {
		l.conn.Close()
	}
}

// TestPathIsTakenBack: a path that was cut comes up again without anything being written.
func TestPathIsTakenBack(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	before := a.Switched()
	cut(b, 1)
	waitFor(t, func() bool { return a.Switched() > before })
	waitFor(t, func() bool { return a.has(1) && b.has(1) })
}

// TestSilentPathIsLeft: a path over which nothing comes back, though it stays open, is left within a second of the
// clock, and what was under way on it arrives by the other.
func TestSilentPathIsLeft(t *testing.T) {
	t.Parallel()
	clock, plan := wire.NewVirtual(), Segments(links(t, 2))
	open := func() *Conn {
		k := newConn(clock, newChooser(plan, &singlePath{plan: plan, path: 1}, clock.Now()), nil, nil)
		t.Cleanup(func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.fail(net.ErrClosed)
		})
		return k
	}
	a, b := open(), open()
	here, there := net.Pipe()
	a.attach(0, here)
	b.attach(0, there)
	silent, drain := net.Pipe()
	go io.Copy(io.Discard, drain)
	a.attach(1, silent)
	data, read := text(300000, 7), make(chan []byte, 1)
	if _, err := a.Write(data); err != nil {
		t.Fatal(err)
	}
	go func() {
		got := make([]byte, len(data))
		io.ReadFull(b, got)
		read <- got
	}()
	for passed := time.Duration(0); a.has(1); passed += tick {
		if passed >= time.Second {
			t.Fatal("the path is still there")
		}
		waitFor(t, func() bool { return a.silence(0) <= pingAfter+tick && b.silence(0) <= pingAfter+tick })
		clock.Advance(tick)
	}
	if !bytes.Equal(<-read, data) || !a.has(0) {
		t.Error("something else was read, or the other path was left too")
	}
}

// silence is for how long nothing was heard of a path.
func (k *Conn) silence(path int) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.links[path] == nil {
		return 0
	}
	return wire.Since(k.clock, k.mu.links[path].received)
}

// TestLastPath: the connection fails when all paths have and none comes back, and reads and writes say so.
func TestLastPath(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	b.mu.Lock()
	b.fail(errors.New("the process has died"))
	b.mu.Unlock()
	a.SetDeadline(wire.SocketTime(time.Minute))
	if _, err := a.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a read from a peer that is gone: %v", err)
	}
	if _, err := a.Write(make([]byte, 1)); err == nil {
		t.Error("a write to a peer that is gone")
	}
}

// TestDeadlines: a read that waits ends when its deadline passes, and can be tried again.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	a.SetReadDeadline(wire.SocketPast)
	if _, err := a.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("after the deadline: %v", err)
	}
	a.SetReadDeadline(wire.SocketTime(20 * time.Millisecond))
	if _, err := a.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("when it passes: %v", err)
	}
	a.SetReadDeadline(time.Time{})
	b.Write([]byte("x"))
	if n, err := a.Read(make([]byte, 4)); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestHostileHello: what is no hello, and one without the token, is closed.
func TestHostileHello(t *testing.T) {
	t.Parallel()
	_, b := twoHosts(t)
	known := claim{first: true, path: pathKey("nic1")}
	signed := "SPH" + string([]byte{helloVersion}) + string(known.put()) + string(make([]byte, 32+16)) // no such cookie
	for _, hello := range []string{"GET / HTTP/1.1\r\n\r\n        ", "SPH1" + string(make([]byte, 17)) + "\x04nic1", signed} {
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(hello))
		conn.SetReadDeadline(wire.SocketTime(time.Minute))
		if _, err := io.ReadAll(conn); isTimeout(err) {
			t.Errorf("%q: the connection stays open", hello)
		}
		conn.Close()
	}
}

// TestPathOfNoConnection: a peer with the token cannot open a further path of a connection that does not exist, nor one
// that this host does not have.
func TestPathOfNoConnection(t *testing.T) {
	t.Parallel()
	a, b := twoHosts(t)
	for name, want := range map[string]string{"nic1": "it closed the connection", "nope": "a path that this host does not have"} {
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := claim{path: pathKey(name)}
		_, err = a.access.handshake().Introduce(conn, c.put())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		conn.SetReadDeadline(wire.SocketTime(time.Minute))
		if _, err := io.ReadAll(conn); isTimeout(err) {
			t.Errorf("%s: the connection stays open", name)
		}
		conn.Close()
	}
	if n := len(b.mu.conns); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
}
