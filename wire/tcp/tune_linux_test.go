package tcp

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"starling/wire"
	"starling/wire/wiretest"
)

// option is one of the socket's.
func (k *kernel) option(t *testing.T, level, option int) (value int) {
	t.Helper()
	k.raw.Control(func(fd uintptr) {
		var err error
		if value, err = unix.GetsockoptInt(int(fd), level, option); err != nil {
			t.Error(err)
		}
	})
	return value
}

// congestion is the name of the socket's congestion control.
func (k *kernel) congestion(t *testing.T) (name string) {
	t.Helper()
	k.raw.Control(func(fd uintptr) {
		var err error
		if name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil {
			t.Error(err)
		}
	})
	return name
}

func TestPlainWithinHost(t *testing.T) {
	meshes := joinMeshes(t, 2, func(c *wire.Config) { c.NoSharedMemory = true })
	defer wiretest.CloseAll([]wire.Endpoint{meshes[0].endpoint, meshes[1].endpoint})
	for _, c := range meshes[0].connections(1) {
		if got := c.kernel.congestion(t); got != "reno" {
			t.Errorf("congestion control within this host is %q", got)
		}
	}
}

func TestKernelHolds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	k := kernelOf(conn)
	if leaves(conn) {
		t.Error("a connection to this host leaves it")
	}
	k.tune()
	if got := k.option(t, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); got != unsent {
		t.Errorf("%d bytes may wait, expected %d", got, unsent)
	}
	held := 0
	for _, window := range []int{leastHeld, mostHeld} {
		k.hold(window)
		held = k.option(t, unix.SOL_SOCKET, unix.SO_SNDBUF)
		if held > 2*window { // the kernel counts its own part too
			t.Errorf("the kernel holds %d bytes, was told %d", held, window)
		}
	}
	k.hold(0)
	if got := k.option(t, unix.SOL_SOCKET, unix.SO_SNDBUF); got < held {
		t.Errorf("the kernel holds %d bytes, before %d", got, held)
	}
	k.plain()
	if got := k.congestion(t); got != "reno" {
		t.Errorf("congestion control is %q", got)
	}
	if n := k.unacked(); n != 0 {
		t.Errorf("%d bytes are on their way", n)
	}
}

func TestKernelOfNoSocket(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if kernelOf(a) != nil {
		t.Error("a pipe has a socket")
	}
}
