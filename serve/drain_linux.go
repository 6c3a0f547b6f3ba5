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
	onSocket(l, func(fd int) { syscall.AttachLsf(fd, filter) }) // without it a few may be reset
}

// queued reports whether connections wait in the kernel's queue of a listener. The accepting goroutine may not
// have run for a while on a busy host, so that its silence alone proves nothing.
func queued(l net.Listener) (some bool) {
	onSocket(l, func(fd int) {
		poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
		if err != nil {
			return
		}
		defer syscall.Close(poll)
		event := syscall.EpollEvent{Events: syscall.EPOLLIN}
		if syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &event) == nil {
			n, _ := syscall.EpollWait(poll, make([]syscall.EpollEvent, 1), 0)
			some = n > 0
		}
	})
	return some
}

// readNow reads what a socket has, without waiting and whatever its deadline.
func readNow(c net.Conn, b []byte) (n int) {
	onSocket(c, func(fd int) { n, _ = syscall.Read(fd, b) })
	return max(n, 0)
}

// onSocket calls f with the descriptor of a listener or a connection, if it has one.
func onSocket(of any, f func(fd int)) {
	s, ok := of.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
