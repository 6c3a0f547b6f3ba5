package serve

import (
	"net"
	"syscall"
)

// refuseNew makes the kernel drop whatever opens a new connection to a listener, by a packet
// filter on its socket, while handshakes that have begun still come to their end. After that the
// queue of connections that are not accepted yet only shrinks, so that the socket can be closed
// without resetting any. Peers that come later try again and are refused.
func refuseNew(l net.Listener) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	const (
		flagsAt = 13 // in a TCP header
		syn     = 2
		keep    = 0x40000
	)
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: flagsAt},
		{Code: syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K, K: syn, Jt: 0, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: keep},
	}
	//lint:ignore SA1019 its replacement has the same fields, in a module that nothing else needs
	raw.Control(func(fd uintptr) { syscall.AttachLsf(int(fd), filter) }) // without it a few may be reset
}
