//go:build !linux

package udp

import (
	"net"
	"net/netip"
	"syscall"
)

// batchSize is how many packets a batch has where a system call takes one.
const batchSize = 64

type batch struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	n       int
	sizes   [batchSize]int
	from    [batchSize]netip.AddrPort
	buffers [batchSize][]byte
}

func newBatch(c *net.UDPConn) (*batch, error) {
	b := &batch{conn: c}
	for i := range b.buffers {
		b.buffers[i] = make([]byte, bufferSize)
	}
	return b, nil
}

func (b *batch) write() error {
	defer func() { b.n = 0 }()
	for i := range b.n {
		if _, err := b.conn.WriteToUDPAddrPort(b.buffers[i][:b.sizes[i]], b.from[i]); err != nil && closedSocket(err) {
			return err
		}
	}
	return nil
}

func (b *batch) to(addr netip.AddrPort) (buffer []byte) {
	b.from[b.n] = addr
	return b.buffers[b.n][:0]
}

// arrivals is one packet at a time.
type arrivals struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	packets []arrived
	full    bool
	buffer  []byte
}

func newArrivals(c *net.UDPConn) (*arrivals, error) {
	return &arrivals{conn: c, buffer: make([]byte, bufferSize)}, nil
}

func (a *arrivals) read() error {
	n, from, err := a.conn.ReadFromUDPAddrPort(a.buffer)
	a.packets = append(a.packets[:0], arrived{a.buffer[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port())})
	return err
}

func queued(syscall.RawConn) float64 { return 0 }

func bufferBytes(c *net.UDPConn, bytes int) int {
	c.SetReadBuffer(bytes)
	c.SetWriteBuffer(bytes)
	return bytes / 4
}
