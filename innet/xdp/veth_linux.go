//go:build amd64 || arm64 || riscv64 || loong64

package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A veth takes what an XDP program on its other end sends only while it has generic receive offload (GRO), with which
// the kernel polls it; else every frame is dropped, and a run stalls. So the other end of a veth gets it before the
// programs are attached, by the ioctl that ethtool uses, also where it is in another network namespace.

// takesFrames makes sure that what programs send by a device arrives.
func takesFrames(dev *net.Interface) error {
	l, err := linkOf(dev.Index)
	if err != nil || l.kind != "veth" {
		return err
	}
	if l.elsewhere {
		err = within(l.nsid, func() error { return offloadOf(l.peer) })
	} else {
		err = offloadOf(l.peer)
	}
	if err != nil {
		return fmt.Errorf("device %s is a veth whose other end must have generic receive offload (ethtool -K NAME gro on): "+
			"%w", dev.Name, err)
	}
	return nil
}

// ends is what the kernel says of a device.
type ends struct {
	kind      string // veth, or another's, or ""
	peer      int    // the index of its other end
	elsewhere bool   // which is in another network namespace,
	nsid      int32  // by this number here
}

// linkOf asks the kernel for a device.
func linkOf(index int) (l ends, err error) {
	text, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return l, err
	}
	all, err := syscall.ParseNetlinkMessage(text)
	if err != nil {
		return l, err
	}
	for _, m := range all {
		const of = 4 // where struct ifinfomsg has the index
		if m.Header.Type != syscall.RTM_NEWLINK || len(m.Data) < syscall.SizeofIfInfomsg ||
			int(binary.NativeEndian.Uint32(m.Data[of:])) != index {
			continue
		}
		attributes(m.Data[syscall.SizeofIfInfomsg:], l.read)
		return l, nil
	}
	return l, fmt.Errorf("no device has the index %d", index)
}

func (l *ends) read(kind uint16, value []byte) {
	switch {
	case kind == unix.IFLA_LINKINFO:
		attributes(value, func(kind uint16, value []byte) {
			if kind == unix.IFLA_INFO_KIND {
				l.kind = strings.TrimRight(string(value), "\x00")
			}
		})
	case kind == unix.IFLA_LINK && len(value) == 4:
		l.peer = int(binary.NativeEndian.Uint32(value))
	case kind == unix.IFLA_LINK_NETNSID && len(value) == 4:
		l.elsewhere, l.nsid = true, int32(binary.NativeEndian.Uint32(value))
	}
}

// attributes visits the attributes of a netlink message.
func attributes(b []byte, visit func(kind uint16, value []byte)) {
	const head, nested = 4, 0x7fff
	for len(b) >= head {
		n := int(binary.NativeEndian.Uint16(b))
		if n < head || n > len(b) {
			return
		}
		visit(binary.NativeEndian.Uint16(b[2:])&nested, b[head:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// within does something in the network namespace of a number.
func within(nsid int32, do func() error) error {
	space, err := namespace(nsid)
	if err != nil {
		return err
	}
	defer space.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = do()
		}
		result <- err
	}()
	return <-result
}

// namespace is the network namespace of a number: one with a name, or of a process.
func namespace(nsid int32) (*os.File, error) {
	seen := map[string]bool{}
	for _, pattern := range []string{"/run/netns/*", "/proc/[0-9]*/ns/net"} {
		files, _ := filepath.Glob(pattern) // the pattern is well formed
		for _, name := range files {
			if to, err := os.Readlink(name); err == nil {
				if seen[to] {
					continue
				}
				seen[to] = true
			}
			f, err := os.Open(name)
			if err != nil { // a process that has ended, or is another user's
				continue
			}
			if id, err := numberOf(f); err == nil && id == nsid {
				return f, nil
			}
			f.Close()
		}
	}
	return nil, errors.New("it is in a network namespace that cannot be found from here")
}

// numberOf is the number that a network namespace has in this one.
func numberOf(space *os.File) (int32, error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(s)
	const size, family, attribute = syscall.SizeofNlMsghdr + family4 + 8, syscall.SizeofNlMsghdr, 8
	e, b := binary.NativeEndian, make([]byte, size, 4096)
	e.PutUint32(b, size)
	e.PutUint16(b[4:], unix.RTM_GETNSID)
	e.PutUint16(b[6:], unix.NLM_F_REQUEST)
	e.PutUint16(b[family+family4:], attribute)
	e.PutUint16(b[family+family4+2:], unix.NETNSA_FD)
	e.PutUint32(b[family+family4+4:], uint32(space.Fd()))
	if err := unix.Sendto(s, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	n, _, err := unix.Recvfrom(s, b[:cap(b)], 0)
	if err != nil {
		return 0, err
	}
	if n < family+family4 || e.Uint16(b[4:]) != unix.RTM_NEWNSID {
		return 0, errors.New("the kernel does not know the namespace")
	}
	id := int32(unix.NETNSA_NSID_NOT_ASSIGNED)
	attributes(b[family+family4:n], func(kind uint16, value []byte) {
		if kind == unix.NETNSA_NSID && len(value) == 4 {
			id = int32(e.Uint32(value))
		}
	})
	return id, nil
}

// family4 is the room of struct rtgenmsg, a byte, before attributes.
const family4 = 4

// offloadOf turns on generic receive offload of a device.
func offloadOf(index int) error {
	dev, err := net.InterfaceByIndex(index)
	if err != nil {
		return err
	}
	on, err := receiveOffload(dev.Name, unix.ETHTOOL_GGRO, 0)
	if err != nil || on == 1 {
		return err
	}
	_, err = receiveOffload(dev.Name, unix.ETHTOOL_SGRO, 1)
	return err
}

// receiveOffload reads or sets generic receive offload.
func receiveOffload(name string, command, value uint32) (uint32, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	data := [2]uint32{command, value}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(request.name[:], name)
	request.data = unsafe.Pointer(&data)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); e != 0 {
		return 0, fmt.Errorf("generic receive offload of %s: %w", name, e)
	}
	return data[1], nil
}
