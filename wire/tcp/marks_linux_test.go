package tcp

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"starling/coflow"
	"starling/wire"
	"starling/wire/wiretest"
)

// tosOf is the field that a connection's packets leave with, as the kernel has it.
func tosOf(t *testing.T, conn net.Conn) (tos int) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) {
			tos, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS)
		}), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tos
}

// TestMarksAreSet: both ends of every connection have the mark of its class; without --dscp
// none has one.
func TestMarksAreSet(t *testing.T) {
	for _, marked := range []bool{true, false} {
		var ends []wire.Endpoint
		for r, m := range joinMeshes(t, 3, func(c *wire.Config) { c.NoSharedMemory, c.DSCP = true, marked }) {
			ends = append(ends, m.endpoint)
			for peer := range 3 {
				if peer == r {
					continue
				}
				for i, c := range m.connections(peer) {
					want := 0
					if marked {
						want = int(coflow.Classes()[i]) << 2
					}
					if got := tosOf(t, c.conn) &^ 3; got != want { // two bits are of congestion
						t.Errorf("rank %d to %d, class %d: %#x, want %#x", r, peer, i, got, want)
					}
				}
			}
		}
		wiretest.CloseAll(ends)
	}
}

// TestMarksAreOnPackets listens to the packets themselves: those with the bytes of a message
// have the mark of its class.
func TestMarksAreOnPackets(t *testing.T) {
	tap := openTap(t)
	meshes := joinMeshes(t, 2, func(c *wire.Config) { c.NoSharedMemory, c.DSCP = true, true })
	ends := []wire.Endpoint{meshes[0].endpoint, meshes[1].endpoint}
	defer wiretest.CloseAll(ends)
	tap.packets(t)         // the handshakes, before which no connection has a class
	ports := map[int]int{} // class by local port of rank 0
	for i, c := range meshes[0].connections(1) {
		ports[c.conn.LocalAddr().(*net.TCPAddr).Port<<16|c.conn.RemoteAddr().(*net.TCPAddr).Port] = i
	}
	for _, id := range oneOfEach() {
		p := ends[1].Recv(0, wire.Key{Coflow: id}, wire.Control, make([]byte, 3000))
		ends[0].Send(1, wire.Key{Coflow: id}, wire.Control, make([]byte, 3000))
		if err := p.Wait(wiretest.Soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[int]int{} // bytes of messages, by class
	for _, p := range tap.packets(t) {
		class, ours := ports[p.ports]
		if !ours || p.bytes == 0 {
			continue
		}
		if want := coflow.Classes()[class]; p.code != want {
			t.Errorf("a packet of class %d has mark %d, want %d", class, p.code, want)
		}
		seen[class] += p.bytes
	}
	for class := range coflow.Classes() {
		if seen[class] < 3000 {
			t.Errorf("%d bytes of class %d were seen on the interface", seen[class], class)
		}
	}
}

// tap sees the packets of the loopback interface.
type tap struct{ fd int }

// openTap needs the right to listen; without it the test is skipped.
func openTap(t *testing.T) *tap {
	t.Helper()
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	proto := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_IP))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, int(proto))
	if err != nil {
		t.Skipf("listening to packets needs root: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: lo.Index}); err != nil {
		t.Fatal(os.NewSyscallError("bind", err))
	}
	return &tap{fd}
}

// packet is what a test wants to know of one.
type packet struct {
	ports, bytes int
	code         uint8
}

// packets returns the TCP packets seen so far. On this interface a packet has been seen
// before it arrives.
func (p *tap) packets(t *testing.T) (list []packet) {
	t.Helper()
	b := make([]byte, 1<<16)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		n, _, err := unix.Recvfrom(p.fd, b, 0)
		if err == unix.EAGAIN {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		ip := b[:n]
		if n < 40 || ip[0]>>4 != 4 || ip[9] != unix.IPPROTO_TCP {
			continue
		}
		head := int(ip[0]&15) * 4
		tcp := ip[head:max(head+20, min(n, int(binary.BigEndian.Uint16(ip[2:]))))]
		list = append(list, packet{
			ports: int(binary.BigEndian.Uint16(tcp))<<16 | int(binary.BigEndian.Uint16(tcp[2:])),
			bytes: len(tcp) - int(tcp[12]>>4)*4, code: ip[1] >> 2})
	}
	return list
}
