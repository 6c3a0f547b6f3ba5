package udp

import (
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchSize is how many packets are written together, and readSize how many messages are read:
// each is one packet, or a train of them that the kernel has kept together.
const batchSize, readSize = 64, 32

// batch is packets that are written together. Those for one host that follow each other with
// the same size leave as one train (UDP_SEGMENT): what the kernel does for a packet, down to
// the last device, it does once for the train.
type batch struct {
	raw     syscall.RawConn
	ipv6    bool
	single  bool // the kernel or a device takes no trains
	n       int
	sizes   [batchSize]int
	from    [batchSize]netip.AddrPort
	buffers [batchSize][]byte

	order    [batchSize]int // packets by host, each host's in their order
	begins   [batchSize]int // the packet in order that a message begins with
	headers  [batchSize]messageHeader
	vectors  [batchSize]unix.Iovec
	names    [batchSize]unix.RawSockaddrInet6
	controls [batchSize]segmentControl
}

type messageHeader struct {
	unix.Msghdr
	length uint32
	_      [4]byte
}

// segmentControl is the ancillary data that has the size of a train's packets: of 16 bits when
// written, of 32 when read.
type segmentControl struct {
	unix.Cmsghdr
	size uint32
	_    [4]byte
}

// mostTrain is the most bytes of a train: a datagram's.
const mostTrain = 65000

// newBatch is one for a socket. Buffers begin at multiples of 8 bytes.
func newBatch(c *net.UDPConn) (*batch, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &batch{raw: raw, ipv6: c.LocalAddr().(*net.UDPAddr).IP.To4() == nil}
	copy(b.buffers[:], aligned(batchSize, bufferSize))
	return b, nil
}

// aligned is buffers that begin at multiples of 8 bytes.
func aligned(count, size int) (list [][]byte) {
	words := (size + 7) / 8
	all := make([]uint64, count*words)
	for i := range count {
		list = append(list, unsafe.Slice((*byte)(unsafe.Pointer(&all[i*words])), 8*words)[:size])
	}
	return list
}

// write sends n packets: sizes of buffers to their addresses. The batch is empty afterwards, also
// when the socket was closed: its packets have nowhere to go.
func (b *batch) write() error {
	defer func() { b.n = 0 }()
	b.sort()
	for first := 0; first < b.n; {
		messages := b.trains(first)
		sent, err := b.send(messages)
		if err == unix.EIO || err == unix.EINVAL || err == unix.EOPNOTSUPP {
			if !b.single { // what has not left does so one by one
				first, b.single = b.begins[sent], true
				continue
			}
			err = nil
		}
		if err != nil && closedSocket(err) {
			return err
		}
		first = b.n
	}
	return nil
}

// sort puts packets for one host together. There are few hosts, so each is looked for.
func (b *batch) sort() {
	at := 0
	var placed [batchSize]bool
	for i := range b.n {
		if placed[i] {
			continue
		}
		for j := i; j < b.n; j++ {
			if !placed[j] && b.from[j] == b.from[i] {
				placed[j], b.order[at] = true, j
				at++
			}
		}
	}
}

// trains makes messages of the packets from a place in order on, and returns how many.
func (b *batch) trains(first int) (messages int) {
	for at := first; at < b.n; messages++ {
		end := b.train(at)
		b.begins[messages] = at
		b.message(messages, at, end)
		at = end
	}
	return messages
}

// train is where the train ends that begins at a place: all packets have the size of its first,
// but the last may be shorter.
func (b *batch) train(at int) (end int) {
	first := b.order[at]
	size, bytes := b.sizes[first], 0
	for end = at; end < b.n; end++ {
		i := b.order[end]
		if end > at && (b.single || b.from[i] != b.from[first] || b.sizes[i] > size || bytes+b.sizes[i] > mostTrain) {
			break
		}
		bytes += b.sizes[i]
		if b.sizes[i] < size {
			return end + 1
		}
	}
	return end
}

// message makes a message of packets from a place to another.
func (b *batch) message(m, at, end int) {
	for k := at; k < end; k++ {
		i := b.order[k]
		b.vectors[k].Base = &b.buffers[i][0]
		b.vectors[k].SetLen(b.sizes[i])
	}
	h := &b.headers[m]
	h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.names[m])), b.setAddress(m, b.from[b.order[at]])
	h.Iov = &b.vectors[at]
	h.SetIovlen(end - at)
	h.Control, h.Controllen = nil, 0
	if end-at > 1 {
		c := &b.controls[m]
		c.Level, c.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
		c.SetLen(unix.CmsgLen(2))
		*(*uint16)(unsafe.Pointer(&c.size)) = uint16(b.sizes[b.order[at]])
		h.Control = (*byte)(unsafe.Pointer(c))
		h.SetControllen(unix.CmsgSpace(2))
	}
}

// send sends messages. One that fails is lost, as any packet may be, unless its kind is the
// reason: then it is the one that sent says.
func (b *batch) send(messages int) (sent int, err error) {
	for sent < messages {
		n, err := call(b.raw.Write, unix.SYS_SENDMMSG, &b.headers[sent], messages-sent)
		switch {
		case err == nil:
			sent += n
		case closedSocket(err) || b.headers[sent].Control != nil:
			return sent, err
		default:
			sent++
		}
	}
	return sent, nil
}

// arrivals is packets that are read together.
type arrivals struct {
	raw      syscall.RawConn
	packets  []arrived
	full     bool // there may be more
	buffers  [][]byte
	headers  [readSize]messageHeader
	vectors  [readSize]unix.Iovec
	names    [readSize]unix.RawSockaddrInet6
	controls [readSize]segmentControl
}

// newArrivals reads from a socket, trains included where the kernel keeps them together (UDP_GRO).
func newArrivals(c *net.UDPConn) (*arrivals, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) })
	return &arrivals{raw: raw, buffers: aligned(readSize, 1<<16)}, nil
}

// read waits for packets and reads those that are there, up to a number of messages.
func (a *arrivals) read() error {
	for i := range a.headers {
		a.vectors[i].Base = &a.buffers[i][0]
		a.vectors[i].SetLen(len(a.buffers[i]))
		h := &a.headers[i]
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&a.names[i])), unix.SizeofSockaddrInet6
		h.Iov = &a.vectors[i]
		h.SetIovlen(1)
		h.Control = (*byte)(unsafe.Pointer(&a.controls[i]))
		h.SetControllen(int(unsafe.Sizeof(a.controls[i])))
	}
	n, err := call(a.raw.Read, unix.SYS_RECVMMSG, &a.headers[0], readSize)
	if err != nil {
		return err
	}
	a.packets, a.full = a.packets[:0], n == readSize
	for i := range n {
		a.divide(i)
	}
	return nil
}

// divide lists the packets of a message.
func (a *arrivals) divide(i int) {
	bytes, from := a.buffers[i][:min(int(a.headers[i].length), len(a.buffers[i]))], addressOf(&a.names[i])
	size := len(bytes)
	if c := &a.controls[i]; int(a.headers[i].Controllen) >= unix.CmsgLen(2) && c.Level == unix.IPPROTO_UDP &&
		c.Type == unix.UDP_GRO && c.size > 0 {
		size = int(c.size)
	}
	for len(bytes) > size {
		a.packets = append(a.packets, arrived{bytes[:size:size], from})
		bytes = bytes[size:]
	}
	a.packets = append(a.packets, arrived{bytes, from})
}

// call does a system call on n headers when the socket is ready.
func call(ready func(func(fd uintptr) bool) error, number uintptr, first *messageHeader, n int) (done int, err error) {
	var errno syscall.Errno
	failed := ready(func(fd uintptr) bool {
		for {
			r, _, e := syscall.Syscall6(number, fd, uintptr(unsafe.Pointer(first)), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
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

func (b *batch) setAddress(i int, addr netip.AddrPort) uint32 {
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

// bufferBytes sets a socket's buffers to this number of bytes, or to what is allowed, and
// returns the size of the receive buffer.
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
