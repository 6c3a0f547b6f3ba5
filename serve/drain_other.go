//go:build !linux

package serve

import "net"

// refuseNew does nothing where sockets have no filters: a connection that comes in the moment
// of closing may be reset.
func refuseNew(net.Listener) {}
