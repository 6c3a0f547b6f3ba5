//go:build !linux

package serve

import "net"

// refuseNew does nothing where sockets have no filters: a connection that comes in the moment
// of closing may be reset.
func refuseNew(net.Listener) {}

// queued knows of no connection that waits.
func queued(net.Listener) bool { return false }

// readNow reads nothing.
func readNow(net.Conn, []byte) int { return 0 }
