package tcp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"

	"starling/wire"
	"starling/wire/wiretest"
)

// transport is one to be measured.
type transport struct {
	name string
	open func(t testing.TB, n int, opt wire.Options) []wire.Endpoint
}

var transports = []transport{
	{"inprocess", func(t testing.TB, n int, opt wire.Options) []wire.Endpoint { return wire.NewGroup(n, opt) }},
	{"tcp", openTCP},
	{"classes", openClasses},
	{"shm", openMemory},
	{"rings", openRings},
}

func openTCP(t testing.TB, n int, opt wire.Options) []wire.Endpoint {
	return joinAll(t, n, func(c *wire.Config) { c.Options, c.NoSharedMemory = opt, true })
}

// openClasses is TCP with a connection for each class of coflows.
func openClasses(t testing.TB, n int, opt wire.Options) []wire.Endpoint {
	return joinAll(t, n, func(c *wire.Config) { c.Options, c.NoSharedMemory, c.DSCP = opt, true, true })
}

// openRings is shared memory where the kernel does not let ranks read each other's.
func openRings(t testing.TB, n int, opt wire.Options) []wire.Endpoint {
	return joinAll(t, n, func(c *wire.Config) { c.Options, c.RingsOnly = opt, true })
}

// open is the endpoint of a rank over connections to one peer, and its carrier, which does not run yet.
func open(rank, peer, size int, opt wire.Options, conns ...net.Conn) (wire.Endpoint, *carrier) {
	var p *carrier
	far := slices.Repeat([]wire.Link{wire.SameHost}, size)
	far[rank] = wire.SameProcess
	e := wire.NewEndpoint(rank, far, opt, func(in *wire.Inbox) wire.Transport {
		p = newCarrier(in, peer, conns)
		to := wire.NewCarriers(size)
		to.To[peer] = p
		return to
	})
	return e, p
}

// configs of n ranks on this host, each with a listener.
func configs(t testing.TB, n int) []wire.Config {
	t.Helper()
	cfgs := make([]wire.Config, n)
	addrs, hosts := make([]string, n), make([]string, n)
	job := make([]byte, 8)
	rand.Read(job)
	for r := range cfgs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs[r], hosts[r] = l.Addr().String(), "this host"
		cfgs[r] = wire.Config{Rank: r, Size: n, Job: hex.EncodeToString(job), Addrs: addrs, HostIDs: hosts, Listener: l,
			Token: []byte("secret")}
	}
	return cfgs
}

// joinAll joins n ranks of this process, as if they were on their own.
func joinAll(t testing.TB, n int, change func(*wire.Config)) (out []wire.Endpoint) {
	t.Helper()
	for _, m := range joinMeshes(t, n, change) {
		out = append(out, m.endpoint)
	}
	return out
}

// joinMeshes is joinAll, with the connections of the endpoints.
func joinMeshes(t testing.TB, n int, change func(*wire.Config)) []*mesh {
	t.Helper()
	cfgs := configs(t, n)
	out, errs := make([]*mesh, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range cfgs {
		change(&cfgs[r])
		wg.Go(func() {
			ctx, cancel := cfgs[r].Begin(wiretest.Soon(t))
			defer cancel()
			complete(&cfgs[r])
			if errs[r] = validate(&cfgs[r]); errs[r] == nil {
				out[r] = newMesh(&cfgs[r])
				_, errs[r] = out[r].join(ctx)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return out
}

// connections of a rank to a peer.
func (m *mesh) connections(peer int) []*connection { return m.carriers.To[peer].(*carrier).conns }

func openMemory(t testing.TB, n int, opt wire.Options) []wire.Endpoint {
	return joinAll(t, n, func(c *wire.Config) { c.Options = opt })
}
