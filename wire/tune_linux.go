package wire

import (
	"net"

	"golang.org/x/sys/unix"
)

// unsent is how much the kernel may hold of a connection beyond what the network
// has in flight. Left alone it takes megabytes, which an urgent message would have
// to wait behind.
const unsent = 2 * chunkSize

// tune keeps the kernel's queue short.
func tune(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent) // a matter of delay only
	})
}
