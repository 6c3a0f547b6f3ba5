//go:build !linux

package shm

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
	Memory struct {
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
func (m *Memory) Close()                   {}
func processor() int                       { return -1 }
func processors() []int                    { return nil }
func moveTo(int) bool                      { return false }
func unmap(mem []byte)                     {}

func readFrom(pid int, at uint64, into []byte) error { return errNoMemory }

func Listen(name string) (net.Listener, error) { return nil, errNoMemory }

func Dial(name string, within time.Duration) (*net.UnixConn, error) { return nil, errNoMemory }

func (h *Hub) Swap(conn *net.UnixConn) (*Memory, error) { return nil, errNoMemory }
