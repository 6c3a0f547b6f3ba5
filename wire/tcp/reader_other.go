//go:build !linux

package tcp

import "net"

// readBoth is not to be had here.
func readBoth(net.Conn) func(first, second []byte) (int, error) { return nil }
