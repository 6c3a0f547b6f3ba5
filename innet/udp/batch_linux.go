package udp

import (
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchSize is how many packets a system call takes.
const batchSize = 64

// batch is packets that are read or written together.
type batch struct {
	raw     syscall.RawConn
	ipv6    bool
	n       int
	sizes   [batchSize]int
	from    [batchSize]netip.AddrPort
	buffers [batchSize][]byte
	headers [batchSize]messageHeader
	vectors [batchSize]unix.Iovec
	names   [batchSize]unix.RawSockaddrInet6
}

type messageHeader struct {
	unix.Msghdr
	length uint32
	_      [4]byte
}

// newBatch is one for a socket. Buffers begin at multiples of 8 bytes.
func newBatch(c *net.UDPConn) (*batch, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &batch{raw: raw, ipv6: c.LocalAddr().(*net.UDPAddr).IP.To4() == nil}
	all := make([]uint64, batchSize*((bufferSize+7)/8))
	for i := range b.buffers {
		words := all[i*len(all)/batchSize : (i+1)*len(all)/batchSize]
		b.buffers[i] = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))[:bufferSize]
	}
	return b, nil
}

// read waits for packets and reads as many as there are, up to a batch.
func (b *batch) read() error {
	for i := range b.headers {
		b.vectors[i].Base = &b.buffers[i][0]
		b.vectors[i].SetLen(bufferSize)
		h := &b.headers[i]
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.names[i])), unix.SizeofSockaddrInet6
		h.Iov = &b.vectors[i]
		h.SetIovlen(1)
	}
	n, err := b.call(unix.SYS_RECVMMSG, b.raw.Read, 0, batchSize)
	if err != nil {
		return err
	}
	b.n = n
	for i := range n {
		b.sizes[i], b.from[i] = int(b.headers[i].length), addressOf(&b.names[i])
	}
	return nil
}

// write sends n packets: sizes of buffers to their addresses.
func (b *batch) write() error {
	for i := range b.n {
		b.vectors[i].Base = &b.buffers[i][0]
		b.vectors[i].SetLen(b.sizes[i])
		h := &b.headers[i]
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.names[i])), b.setAddress(i)
		h.Iov = &b.vectors[i]
		h.SetIovlen(1)
	}
	for at := 0; at < b.n; {
		n, err := b.call(unix.SYS_SENDMMSG, b.raw.Write, at, b.n-at)
		switch {
		case err == nil:
			at += n
		case closedSocket(err):
			return err
		default: // this one is lost, as any packet may be
			at++
		}
	}
	b.n = 0
	return nil
}

// call does a system call on headers at to at+n, when the socket is ready.
func (b *batch) call(number uintptr, ready func(func(fd uintptr) bool) error, at, n int) (done int, err error) {
	var errno syscall.Errno
	failed := ready(func(fd uintptr) bool {
		for {
			r, _, e := syscall.Syscall6(number, fd, uintptr(unsafe.Pointer(&b.headers[at])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
			if e == unix.EINTR {
				continue
			}
			done, errno = int(r), e
			return e != unix.EAGAIN
		}
	})
	if failed == nil && errno != 0 {
		if errno == unix.ECONNREFUSED { // of an earlier packet: its host has gone
			return 0, nil
		}
		failed = errno
	}
	return done, failed
}

// to appends a packet to those to be written; the caller writes into its buffer.
func (b *batch) to(addr netip.AddrPort) (buffer []byte) {
	b.from[b.n] = addr
	return b.buffers[b.n][:0]
}

func (b *batch) setAddress(i int) uint32 {
	addr := b.from[i]
	port := addr.Port()<<8 | addr.Port()>>8
	if b.ipv6 {
		b.names[i] = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: addr.Addr().As16()}
		return unix.SizeofSockaddrInet6
	}
	four := (*unix.RawSockaddrInet4)(unsafe.Pointer(&b.names[i]))
	*four = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: addr.Addr().Unmap().As4()}
	return unix.SizeofSockaddrInet4
}

func addressOf(name *unix.RawSockaddrInet6) netip.AddrPort {
	if name.Family == unix.AF_INET {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(four.Addr), four.Port<<8|four.Port>>8)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(name.Addr).Unmap(), name.Port<<8|name.Port>>8)
}

// queued is the share of a socket's receive buffer that is in use.
func queued(raw syscall.RawConn) (share float64) {
	raw.Control(func(fd uintptr) {
		var info [9]uint32
		size := uint32(unsafe.Sizeof(info))
		if _, _, e := syscall.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0); e == 0 && info[unix.SK_MEMINFO_RCVBUF] > 0 {
			share = float64(info[unix.SK_MEMINFO_RMEM_ALLOC]) / float64(info[unix.SK_MEMINFO_RCVBUF])
		}
	})
	return share
}

// bufferBytes sets a socket's buffers to so many bytes, or to what is allowed, and is what
// the receive buffer has become.
func bufferBytes(c *net.UDPConn, bytes int) (got int) {
	c.SetReadBuffer(bytes)
	c.SetWriteBuffer(bytes)
	raw, err := c.SyscallConn()
	if err != nil {
		return bytes
	}
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes)
		got, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	})
	return got
}
