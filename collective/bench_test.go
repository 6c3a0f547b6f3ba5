package collective

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"starling/coflow"
	"starling/wire"
	"starling/wire/tcp"
)

// transports are the ways to join n ranks, all in this process.
var transports = []struct {
	name string
	open func(t testing.TB, n int) []*Comm
}{
	{"inprocess", func(t testing.TB, n int) []*Comm { return group(t, n, wire.Options{}) }},
	{"tcp", func(t testing.TB, n int) []*Comm { return joined(t, n, nil) }},
	{"shm", func(t testing.TB, n int) []*Comm { return joined(t, n, slices.Repeat([]string{"here"}, n)) }},
}

// joined is n Comms over sockets of this host, or its memory if they have a host.
func joined(t testing.TB, n int, hosts []string) []*Comm {
	listeners, addrs := make([]net.Listener, n), make([]string, n)
	for r := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[r], addrs[r] = l, l.Addr().String()
	}
	comms := make([]*Comm, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			ep, err := tcp.Join(context.Background(), wire.Config{Rank: r, Size: n, Job: "collective", Addrs: addrs,
				HostIDs: hosts, Listener: listeners[r]})
			if err != nil {
				t.Error(err)
				return
			}
			comms[r] = New(ep)
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		// All at once: an endpoint that closes waits for its peers to hear.
		_ = flock(comms, func(c *Comm) error { return c.ep.Close() })
	})
	return comms
}

// TestTransports: a few random collectives at once over each of them.
func TestTransports(t *testing.T) {
	for _, tr := range transports {
		for _, n := range []int{2, 3, 5} {
			comms := tr.open(t, n)
			rng := rand.New(rand.NewPCG(uint64(n), 5))
			for i := range 100 {
				f, id := drawCase(rng, n), coflow.ID{Epoch: uint32(i), Type: coflow.Rows}
				if err := flock(comms, func(c *Comm) error {
					return f.drive(t.Context(), c, id,
						i%2 == 0)
				}); err != nil {
					t.Fatalf("%s, %s: %v", tr.name, f.name, err)
				}
				if err := f.check(); err != nil {
					t.Fatalf("%s, %s: %v", tr.name, f.name, err)
				}
			}
		}
	}
}

// BenchmarkAllReduce is where the thresholds of Choose come from.
func BenchmarkAllReduce(b *testing.B) {
	for _, tr := range transports {
		for _, n := range []int{2, 3, 4, 8, 16} {
			for _, size := range []int{8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20} {
				for _, alg := range []Algorithm{Ring, Doubling, Tree, Direct, Whole} {
					b.Run(fmt.Sprintf("wire=%s/n=%d/size=%d/alg=%v", tr.name, n, size, alg), func(b *testing.B) {
						x := make([][]float32, n)
						for r := range x {
							x[r] = make([]float32, size/4)
						}
						benchmark(b, tr.open(b, n), size, func(c *Comm, id coflow.ID) error {
							return c.AllReduce(context.Background(), id, wire.Parameter, x[c.Rank()], alg)
						})
					})
				}
			}
		}
	}
}

// BenchmarkAllToAll gives each peer an equal share.
func BenchmarkAllToAll(b *testing.B) {
	for _, tr := range transports {
		for _, n := range []int{2, 4, 8} {
			for _, size := range []int{1 << 10, 64 << 10, 1 << 20, 16 << 20} {
				b.Run(fmt.Sprintf("wire=%s/n=%d/size=%d", tr.name, n, size), func(b *testing.B) {
					bufs := make([][][]byte, 2*n)
					for r := range bufs {
						for range n {
							bufs[r] = append(bufs[r], make([]byte, size/n))
						}
					}
					benchmark(b, tr.open(b, n), size, func(c *Comm, id coflow.ID) error {
						return c.AllToAll(context.Background(), id, wire.Activation, bufs[c.Rank()], bufs[n+c.Rank()])
					})
				})
			}
		}
	}
}

// benchmark has all ranks make b.N calls one after the other.
func benchmark(b *testing.B, comms []*Comm, size int, call func(*Comm, coflow.ID) error) {
	b.SetBytes(int64(size))
	b.ResetTimer()
	err := flock(comms, func(c *Comm) error {
		for range b.N {
			if err := call(c, coflow.ID{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
