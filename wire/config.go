package wire

import (
	"context"
	"net"
)

// Config is what a worker needs to know to join its peers. Where the addresses
// come from is the business of a rendezvous.
type Config struct {
	Options
	// Rank of this worker, and how many there are.
	Rank, Size int
	// Job tells apart runs on the same hosts.
	Job string
	// Addrs are where the ranks listen, host:port. This rank's own is not used.
	Addrs []string
	// HostIDs say which ranks share a host, and so can share memory. Nil: none do.
	HostIDs []string
	// Listener is where this rank listens. Join owns it from here on.
	Listener net.Listener
	// Token is the secret that all ranks share. None is needed on loopback.
	Token []byte
	// Insecure allows listening beyond loopback without a token.
	Insecure bool
	// Connections to each peer over TCP; 0: 2, or with DSCP one per class.
	Connections int
	// DSCP gives each class of coflows (coflow.Classes) a connection of its own, whose packets
	// have the mark of the class, for networks that look at it.
	DSCP bool
	// NoSharedMemory makes ranks of one host use TCP too.
	NoSharedMemory bool
	// RingsOnly keeps peers from reading this rank's memory, as the settings of some kernels do.
	RingsOnly bool
	// Dial opens a connection to a peer; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Refused, if set, is told of every connection that was refused.
	Refused func(from net.Addr, reason error)
}

// Links says how far every peer is.
func (c *Config) Links() []Link {
	far := make([]Link, c.Size)
	for p := range far {
		switch {
		case p == c.Rank:
			far[p] = SameProcess
		case c.ServerOf != nil && c.ServerOf[p] == c.ServerOf[c.Rank], c.ServerOf == nil && c.SameHost(p):
			far[p] = SameHost
		default:
			far[p] = BetweenServers
		}
	}
	return far
}

// SameHost reports whether a rank is known to run on this host.
func (c *Config) SameHost(p int) bool {
	return c.HostIDs != nil && c.HostIDs[p] != "" && c.HostIDs[p] == c.HostIDs[c.Rank]
}

// Begin completes the options, and bounds ctx by the timeout if it has no deadline.
func (c *Config) Begin(ctx context.Context) (context.Context, context.CancelFunc) {
	c.Options = c.Options.withDefaults()
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return WithTimeout(ctx, c.Clock, c.Timeout)
}

// Endpoint is this rank's, over the transport that open makes.
func (c *Config) Endpoint(open func(*Inbox) Transport) Endpoint {
	e := newEndpoint(c.Rank, c.Links(), c.Options)
	e.addrs = c.Addrs
	e.transport = open(e.inbox)
	return e
}
