//go:build !linux

package wire

import (
	"errors"
	"net"
	"time"
)

// Elsewhere than on Linux, ranks of one host use TCP.

var errNoMemory = errors.New("shared memory is only used on Linux")

type (
	bell   struct{ *ringer }
	ringer struct{}
	memory struct {
		in, out *ring
		bell    *ringer
		pid     int
		lends   bool
	}
)

func newBell() (bell, error) { return bell{}, errNoMemory }

func (b *bell) wait() {}

func (b *bell) waitFor(time.Duration) bool { return false }
func (b *bell) close()                     {}
func (r *ringer) ring()                    {}
func (r *ringer) close()                   {}
func (m *memory) close()                   {}
func yield()                               {}
func processor() int                       { return -1 }
func processors() []int                    { return nil }
func moveTo(int) bool                      { return false }
func unmap(mem []byte)                     {}

func readFrom(pid int, at uint64, into []byte) error { return errNoMemory }

func listenMemory(name string) (net.Listener, error) { return nil, errNoMemory }

func dialMemory(name string) (*net.UnixConn, error) { return nil, errNoMemory }

func swap(conn *net.UnixConn, own *bell) (*memory, error) { return nil, errNoMemory }
