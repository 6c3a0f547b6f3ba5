package innet

import (
	"context"
	"time"
)

// Client is a host that has joined a switch, whatever carries its packets.
type Client interface {
	// Memory is the bytes of registers that the switch has for the job.
	Memory() int64
	// Leaves is how many switches there are below the root; 1: the root is the only one.
	Leaves() int
	// Install begins a plan, the same on all hosts. It returns when all hosts have.
	Install(ctx context.Context, p *Plan) error
	// Start begins an exchange; wait returns when it is over.
	Start(x *Exchange) (wait func(ctx context.Context) error)
	// Counts is what the host has sent and received.
	Counts() HostCounts
	Close() error
}

// Pipelined is a client of simulated switches, which know what their pipelines did.
type Pipelined interface {
	Passes() (passes int64, busiest time.Duration)
}

// Timed is a client of simulated switches, which know how long an exchange of a row per packet takes: with blocks first
// to last-1 of a plan, and with the strawman of a number of aggregators and without a limit. All are 0 where that is
// not asked for.
type Timed interface {
	Times(p *Plan, first, last int, g *Graph, limit int) (blocks, strawman, unlimited time.Duration, err error)
}

// Fabric is an endpoint's network, where that has switches which add: a simulated one. Without
// it hosts reach a switch through sockets.
type Fabric interface {
	// JoinSwitch joins the switches between the hosts.
	JoinSwitch(o JoinOptions) (Client, error)
	// Shared is what make returns, made once for all hosts of the process, which share it.
	Shared(make func() (any, error)) (any, error)
}

// JoinOptions describe a host's job to the switch.
type JoinOptions struct {
	Units  int   // of a row in a packet
	Memory int64 // bytes of registers that a switch may use
}
