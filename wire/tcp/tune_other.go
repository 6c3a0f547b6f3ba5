//go:build !linux

package tcp

import (
	"errors"
	"net"
	"time"
)

// kernel is the kernel's end of a connection, of which nothing is known here.
type kernel struct{}

func kernelOf(net.Conn) *kernel { return nil }

func (*kernel) tune()                             {}
func (*kernel) holdUnsent(int)                    {}
func (*kernel) hold(int)                          {}
func (*kernel) plain()                            {}
func (*kernel) unacked() int                      { return 0 }
func (*kernel) trips() (least, now time.Duration) { return 0, 0 }
func (*kernel) mark(uint8) error                  { return errors.New("marks are set on Linux only") }
