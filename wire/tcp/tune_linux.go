package tcp

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernel is the kernel's end of a connection. It is nil where there is none.
type kernel struct {
	raw    syscall.RawConn
	look   func(fd uintptr)
	queued int
}

func kernelOf(conn net.Conn) *kernel {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	k := &kernel{raw: raw}
	k.look = func(fd uintptr) { k.queued, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }
	return k
}

// set changes an option. All here are a matter of delay only: errors do not count.
func (k *kernel) set(level, option, value int) {
	k.raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), level, option, value) })
}

// tune keeps the kernel's queue short.
func (k *kernel) tune() { k.holdUnsent(unsent) }

// holdUnsent bounds what the kernel holds beyond what the network has in flight.
func (k *kernel) holdUnsent(bytes int) { k.set(unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) }

// hold bounds what the kernel holds of the connection, in flight or not; 0: no longer.
func (k *kernel) hold(bytes int) {
	if bytes > 0 {
		k.set(unix.SOL_SOCKET, unix.SO_SNDBUF, bytes)
		return
	}
	// Kernels before 5.14 cannot let go, and hold the most that they allow.
	k.set(unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20)
	k.set(unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0)
}

// plain takes the oldest congestion control there is, where there is nothing to find out:
// on a slow link of which little is held, and within a host. BBR, the default of some
// machines, at times takes a link that it shared for a hundredth of what it is, and
// seconds to find out. Within a host it sets timers for packets that could leave at once:
// without, an all-to-all takes up to a tenth less.
func (k *kernel) plain() {
	k.raw.Control(func(fd uintptr) {
		unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
}

// unacked is how many bytes were written that have not arrived yet.
func (k *kernel) unacked() int {
	k.raw.Control(k.look)
	return k.queued
}

// trips are the shortest time there and back, and that of late.
func (k *kernel) trips() (least, now time.Duration) {
	k.raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			least, now = time.Duration(info.Min_rtt)*time.Microsecond, time.Duration(info.Rtt)*time.Microsecond
		}
	})
	return least, now
}

// mark gives packets a code point (RFC 2474), in the field of IPv4, IPv6 or, on a socket of
// both, the one that the connection uses.
func (k *kernel) mark(code uint8) error {
	if k == nil {
		return errors.New("the connection is no socket of the kernel's")
	}
	var v4, v6 error
	err := k.raw.Control(func(fd uintptr) {
		v4 = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, int(code)<<2)
		v6 = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int(code)<<2)
	})
	switch {
	case err != nil:
		return err
	case v4 != nil && v6 != nil:
		return v4
	}
	return nil
}
