package tcp

import (
	"net"

	"starling/wire"
)

// unsent is how much the kernel may hold of a connection beyond what the network has in flight. Left alone it takes
// megabytes, which an urgent message would have to wait behind.
const unsent = 2 * wire.ChunkSize

// TunePath readies the connection of one of several paths between two hosts, of which package paths bounds what is
// under way: the kernel holds at most held bytes that were not sent, and to a peer that is near it does not look for the
// link's rate, which BBR takes for a fraction of what it is when connections share the link and pause.
func TunePath(conn net.Conn, held int) {
	k := kernelOf(conn)
	if k == nil {
		return
	}
	k.holdUnsent(max(held, unsent))
	if least, _ := k.trips(); least < covered {
		k.plain()
	}
}
