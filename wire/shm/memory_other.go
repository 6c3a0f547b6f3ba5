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
	wakeup   struct{ *notifier }
	notifier struct{}
	// Memory is what two processes share.
	Memory struct {
		in, out  *ring
		notifier *notifier
		pid      int
		lends    bool
	}
)

func newWakeup() (wakeup, error) { return wakeup{}, errNoMemory }

func (w *wakeup) wait() {}

func (w *wakeup) waitFor(time.Duration) bool { return false }
func (w *wakeup) close()                     {}
func (n *notifier) notify()                  {}
func (n *notifier) close()                   {}

// Close gives the memory back.
func (m *Memory) Close() {}

func processor() int    { return -1 }
func processors() []int { return nil }
func moveTo(int) bool   { return false }
func unmap(mem []byte)  {}

func readFrom(pid int, at uint64, into []byte) error { return errNoMemory }

// Listen fails.
func Listen(name string) (net.Listener, error) { return nil, errNoMemory }

// Dial fails.
func Dial(name string, within time.Duration) (*net.UnixConn, error) { return nil, errNoMemory }

// Swap fails.
func (h *Hub) Swap(conn *net.UnixConn) (*Memory, error) { return nil, errNoMemory }
