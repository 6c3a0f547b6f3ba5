package tcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"starling/coflow"
	"starling/wire"
	"starling/wire/wiretest"
)

// BenchmarkWire sends messages from one rank to another, a few at a time, each
// asked for before it leaves, as in a collective. transport=socket is a plain copy
// between two sockets, what iperf measures: what TCP can do on this host at this time.
func BenchmarkWire(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20, 16 << 20} {
		for _, tr := range transports {
			b.Run(fmt.Sprintf("transport=%s/size=%d", tr.name, size), func(b *testing.B) { benchStream(b, tr, size) })
		}
		b.Run(fmt.Sprintf("transport=socket/size=%d", size), func(b *testing.B) { benchSocket(b, size) })
	}
}

// inFlight is how many messages are on their way at a time.
const inFlight = 4

func benchStream(b *testing.B, tr transport, size int) {
	eps := tr.open(b, 2, wire.DefaultOptions())
	defer wiretest.CloseAll(eps)
	into, out := buffers(size), wiretest.Payload(0, 1, 0, size)
	b.SetBytes(int64(size))
	b.ResetTimer()
	defer cpuTime(b)()
	var wg sync.WaitGroup
	wg.Go(func() { streamIn(eps[1], b.N, into) })
	streamOut(eps[0], b.N, out)
	wg.Wait()
}

func streamKey(t coflow.Type, i int) wire.Key {
	return wire.Key{Coflow: coflow.ID{Type: t}, Step: uint32(i)}
}

func must(p *wire.Pending) {
	if err := p.Wait(context.Background()); err != nil {
		panic(err)
	}
}

// buffers to receive into, touched.
func buffers(size int) (b [inFlight][]byte) {
	for i := range b {
		b[i] = wiretest.Payload(0, 1, i, size)
	}
	return b
}

// streamIn asks for n messages, and says when it has asked for each.
func streamIn(e wire.Endpoint, n int, into [inFlight][]byte) {
	var pending [inFlight]*wire.Pending
	for i := range n + inFlight {
		slot := i % inFlight
		if i >= inFlight {
			must(pending[slot])
		}
		if i < n {
			pending[slot] = e.Recv(0, streamKey(coflow.Rows, i), wire.Feature, into[slot])
			e.Send(0, streamKey(coflow.Control, i), wire.Control, nil)
		}
	}
}

// streamOut sends n messages, each when it was asked for.
func streamOut(e wire.Endpoint, n int, out []byte) {
	var asked [inFlight]*wire.Pending
	for i := range n + inFlight {
		slot := i % inFlight
		if i >= inFlight {
			must(asked[slot])
			must(e.Send(1, streamKey(coflow.Rows, i-inFlight), wire.Feature, out))
		}
		if i < n {
			asked[slot] = e.Recv(1, streamKey(coflow.Control, i), wire.Control, nil)
		}
	}
}

func benchSocket(b *testing.B, size int) {
	a, z := socketPair(b)
	defer a.Close()
	defer z.Close()
	into, from := wiretest.Payload(0, 1, 1, size), wiretest.Payload(0, 1, 0, size)
	b.SetBytes(int64(size))
	b.ResetTimer()
	defer cpuTime(b)()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range b.N {
			if _, err := io.ReadFull(z, into); err != nil {
				b.Error(err)
				return
			}
		}
	})
	for range b.N {
		if _, err := a.Write(from); err != nil {
			b.Fatal(err)
		}
	}
	wg.Wait()
}

func socketPair(b testing.TB) (net.Conn, net.Conn) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	z, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	return a, z
}

// BenchmarkRoundTrip is there and back of 64 bytes.
func BenchmarkRoundTrip(b *testing.B) {
	for _, tr := range transports {
		b.Run("transport="+tr.name, func(b *testing.B) {
			eps := tr.open(b, 2, wire.DefaultOptions())
			defer wiretest.CloseAll(eps)
			var wg sync.WaitGroup
			wg.Go(func() { pingPong(eps[1], 0, b.N, false) })
			pingPong(eps[0], 1, b.N, true)
			wg.Wait()
		})
	}
	b.Run("transport=socket", func(b *testing.B) {
		a, z := socketPair(b)
		defer a.Close()
		defer z.Close()
		go io.Copy(z, struct{ io.Reader }{z})
		buf := make([]byte, 64)
		for range b.N {
			a.Write(buf)
			io.ReadFull(a, buf)
		}
	})
}

func pingPong(e wire.Endpoint, peer, n int, first bool) {
	out, in := make([]byte, 64), make([]byte, 64)
	for i := range n {
		k := streamKey(coflow.Control, i)
		recv := e.Recv(peer, k, wire.Control, in)
		if first {
			e.Send(peer, k, wire.Control, out)
		}
		must(recv)
		if !first {
			e.Send(peer, k, wire.Control, out)
		}
	}
}
