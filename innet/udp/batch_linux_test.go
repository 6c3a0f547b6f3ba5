package udp

import (
	"net"
	"net/netip"
	"testing"

	"starling/internal/testseed"
)

// TestTrains: packets of all sizes to several sockets arrive whole and in their order at each,
// whether they leave as trains or one by one, and are fewer messages as trains.
func TestTrains(t *testing.T) {
	r := testseed.Rand(t)
	from := socket(t)
	var to []*net.UDPConn
	for range 3 {
		to = append(to, socket(t))
	}
	for _, single := range []bool{false, true} {
		b, err := newBatch(from)
		if err != nil {
			t.Fatal(err)
		}
		b.single = single
		want := make([][][]byte, len(to))
		size := 40
		for range batchSize {
			k := r.IntN(len(to))
			if r.IntN(4) == 0 {
				size = 4 * (10 + r.IntN(bufferSize/4-10))
			}
			packet := b.to(to[k].LocalAddr().(*net.UDPAddr).AddrPort())[:size]
			for i := range packet {
				packet[i] = byte(r.Uint32())
			}
			b.sizes[b.n] = size
			b.n++
			want[k] = append(want[k], append([]byte(nil), packet...))
		}
		b.sort()
		if messages := b.trains(0); single != (messages == batchSize) {
			t.Errorf("single %v: %d messages", single, messages)
		}
		if err := b.write(); err != nil || b.n != 0 {
			t.Fatal(err, b.n)
		}
		for k, c := range to {
			arrive(t, c, from.LocalAddr().(*net.UDPAddr).AddrPort(), want[k])
		}
	}
}

// TestClosedSocketEmptiesTheBatch: a switch that is being closed may have a whole batch left, and
// the packet after it finds room.
func TestClosedSocketEmptiesTheBatch(t *testing.T) {
	from, to := socket(t), socket(t)
	b, err := newBatch(from)
	if err != nil {
		t.Fatal(err)
	}
	from.Close()
	for b.n < batchSize {
		b.to(to.LocalAddr().(*net.UDPAddr).AddrPort())
		b.sizes[b.n] = 40
		b.n++
	}
	if err := b.write(); err == nil || b.n != 0 {
		t.Errorf("error %v, %d packets left", err, b.n)
	}
}

func socket(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	bufferBytes(c, 1<<20)
	return c
}

// arrive reads what is wanted, which is in the socket's buffer.
func arrive(t *testing.T, c *net.UDPConn, from netip.AddrPort, want [][]byte) {
	t.Helper()
	a, err := newArrivals(c)
	if err != nil {
		t.Fatal(err)
	}
	for got := 0; got < len(want); {
		if err := a.read(); err != nil {
			t.Fatal(err)
		}
		for _, p := range a.packets {
			if got == len(want) || string(p.bytes) != string(want[got]) || p.from != from {
				t.Fatalf("packet %d of %d is not what was sent", got, len(want))
			}
			got++
		}
	}
}
