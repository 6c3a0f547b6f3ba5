package paths

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"starling/internal/testdeadline"
	"starling/wire"
	"starling/wire/tcp"
)

// theirs opens connections, and tells of them.
func (h *Host) theirs(opened chan<- *Conn) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := h.Dial(ctx, addr)
		if err == nil {
			opened <- conn.(*Conn)
		}
		return conn, err
	}
}

// TestFailedEndpointWaitsForNoPath: an endpoint that has failed does not wait for another path to a peer that is gone,
// neither if it noticed that before nor if it does after. The clock of its paths stands still: graceTime never passes.
func TestFailedEndpointWaitsForNoPath(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		hosts := []*Host{hostAt(t, wire.NewVirtual()), hostAt(t, wire.Real)}
		addrs := []string{hosts[0].Addr().String(), hosts[1].Addr().String()}
		ends, errs, opened := make([]wire.Endpoint, 2), make([]error, 2), make(chan *Conn, 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var both sync.WaitGroup
		for r, h := range hosts {
			opt := wire.DefaultOptions()
			opt.Linger = time.Hour // it is not what ends the wait
			both.Go(func() {
				ends[r], errs[r] = tcp.Join(ctx, wire.Config{Options: opt, Rank: r, Size: 2, Job: "j", Addrs: addrs,
					Listener: h, Dial: h.theirs(opened), Connections: 1, Token: []byte("secret"), NoSharedMemory: true})
			})
		}
		both.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		there := <-opened
		die := func() {
			hosts[1].Close()
			there.mu.Lock()
			there.fail(errors.New("its process dies"))
			there.mu.Unlock()
		}
		if before {
			die()
		}
		ends[0].Fail(errors.New("rank 1 was lost"))
		if !before {
			die()
		}
		testdeadline.Do(t, time.Minute, "the endpoint closes", func() { ends[0].Close() })
		ends[1].Fail(errors.New("rank 0 was lost"))
		testdeadline.Do(t, time.Minute, "its peer closes", func() { ends[1].Close() })
	}
}
