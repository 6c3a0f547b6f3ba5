//go:build !linux

package wire

import "net"

// tune leaves the kernel's queue as it is.
func tune(net.Conn) {}
