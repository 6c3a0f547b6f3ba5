package paths

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"starling/internal/testflood"
	"starling/wire"
)

// spread sends segments of one byte at even offsets, which can never be read, until the connection ends or all were
// sent.
func spread(conn net.Conn, segments int) {
	b := make([]byte, 0, 1024*(frameSize+1))
	for i := range segments {
		h := frameHead{kind: frameData, length: 1, offset: uint64(2*i + 2), limit: window}
		b = b[:len(b)+frameSize]
		h.put(b[len(b)-frameSize:])
		if b = append(b, 1); len(b) == cap(b) {
			if _, err := conn.Write(b); err != nil {
				return
			}
			b = b[:0]
		}
	}
}

// TestUnauthenticatedPathKeepsNothing: what a peer without the token sends on a path is neither a connection nor held.
// Before, a million bytes of one-byte segments at even offsets held two gigabytes.
func TestUnauthenticatedPathKeepsNothing(t *testing.T) {
	t.Parallel()
	_, b := twoHosts(t)
	for _, hello := range []string{"SPH1" + string(make([]byte, 16)) + "\x01\x04nic0", "SPH\x02" + string(make([]byte, 92))} {
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(wire.SocketTime(time.Minute))
		conn.Write([]byte(hello))
		spread(conn, 1<<15)
		waitFor(t, func() bool { _, err := conn.Write([]byte{0}); return err != nil }) // it was closed
		conn.Close()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.mu.conns); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
}

// TestHeldSegmentsAreBoundedInMemory: of a peer that has authenticated and sends one-byte segments at even offsets, no
// more is held than the window, in bytes of memory.
func TestHeldSegmentsAreBoundedInMemory(t *testing.T) {
	clock, plan := wire.NewVirtual(), Segments(links(t, 1))
	k := newConn(clock, newChooser(plan, NewLEOQueue(plan), clock.Now()), nil, nil)
	here, there := net.Pipe()
	before := heapBytes()
	k.attach(0, here)
	go drain(there)
	spread(there, 1<<20)
	waitFor(t, func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.mu.cause != nil })
	if n := heapBytes() - before; n > 2*window {
		t.Errorf("%d bytes are held, the window is %d", n, window)
	}
	if k.mu.in.taken > window || k.mu.in.taken < window/2 {
		t.Errorf("%d bytes are counted", k.mu.in.taken)
	}
	runtime.KeepAlive(k)
}

func drain(conn net.Conn) {
	for b := make([]byte, 4096); ; {
		if _, err := conn.Read(b); err != nil {
			return
		}
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFloodKeepsNoPathOut: while 1,000 connections per second come, half of them from the peers' own address, a
// connection comes up with all its paths.
func TestFloodKeepsNoPathOut(t *testing.T) {
	a, b := twoHosts(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		for {
			c, err := wire.Accept(b, nil)
			if err != nil {
				return
			}
			go c.Write([]byte("x"))
		}
	}()
	flood := testflood.Start(b.Addr().String(), 1000)
	defer flood.Stop()
	waitFor(t, func() bool { n, _ := flood.Opened(); return n > 300 }) // twice as many as there were places
	var k *Conn
	waitFor(t, func() bool {
		c, err := a.Dial(ctx, b.Addr().String())
		if err == nil {
			k = c.(*Conn)
		}
		return err == nil
	})
	waitFor(t, func() bool { return k.has(0) && k.has(1) })
	k.SetReadDeadline(wire.SocketTime(time.Minute))
	if _, err := k.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}
