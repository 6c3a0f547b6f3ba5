package wire_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	"starling/wire"
	"starling/wire/wiretest"
)

// openSimulated joins endpoints by links of 1 GiB per second and 5 microseconds.
func openSimulated(t testing.TB, n int, opt wire.Options) []wire.Endpoint {
	return wiretest.Simulate(t, n, opt, wiretest.Uniform(5*time.Microsecond, 1<<30))
}

// simulatedTest runs a test on 3 ranks in virtual time. The link from rank 0 to rank 1 has 1 MB/s
// and 2 ms, that from 0 to 2 has 4 MB/s and 1 ms, all others take no time.
func simulatedTest(t *testing.T, opt wire.Options, test func(t *testing.T, eps []wire.Endpoint, clock wire.Clock)) {
	synctest.Test(t, func(t *testing.T) {
		eps := wiretest.Simulate(t, 3, opt, func(from, to int) wiretest.SimulatedLink {
			switch [2]int{from, to} {
			case [2]int{0, 1}:
				return wiretest.SimulatedLink{Latency: 2 * time.Millisecond, Rate: 1e6}
			case [2]int{0, 2}:
				return wiretest.SimulatedLink{Latency: time.Millisecond, Rate: 4e6}
			}
			return wiretest.SimulatedLink{}
		})
		test(t, eps, eps[0].Clock())
		for _, e := range eps {
			e.Close()
		}
	})
}

// receive takes a message and returns when it came.
func receive(t *testing.T, e wire.Endpoint, from, step, bytes int) time.Duration {
	t.Helper()
	k := wire.Key{Coflow: coflow.ID{Type: coflow.Rows}, Step: uint32(step)}
	if err := e.Recv(from, k, wire.Feature, make([]byte, bytes)).Wait(context.Background()); err != nil {
		t.Error(err)
	}
	return wire.Since(e.Clock(), wire.VirtualStart)
}

func send(e wire.Endpoint, to, step, bytes int) *wire.Pending {
	k := wire.Key{Coflow: coflow.ID{Type: coflow.Rows}, Step: uint32(step)}
	return e.Send(to, k, wire.Feature, make([]byte, bytes))
}

// A transfer takes its bytes over the rate of its link, and the latency, to the nanosecond;
// chunks of large messages are pipelined, and each link has its own rate.
func TestSimulatedTransferTimes(t *testing.T) {
	simulatedTest(t, wire.DefaultOptions(), func(t *testing.T, eps []wire.Endpoint, _ wire.Clock) {
		for step, bytes := range []int{1000, 1 << 20} {
			send(eps[0], 1, step, bytes)
			send(eps[0], 2, step, bytes)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			// 1000 B and 1 MiB at 4 MB/s, 1 ms: the first chunk leaves when the link is free.
			for step, want := range []time.Duration{1250 * time.Microsecond, 263394 * time.Microsecond} {
				if got := receive(t, eps[2], 0, step, []int{1000, 1 << 20}[step]); got != want {
					t.Errorf("message %d reached rank 2 after %v, want %v", step, got, want)
				}
			}
		}()
		for step, want := range []time.Duration{3 * time.Millisecond, 1051576 * time.Microsecond} {
			if got := receive(t, eps[1], 0, step, []int{1000, 1 << 20}[step]); got != want {
				t.Errorf("message %d reached rank 1 after %v, want %v", step, got, want)
			}
		}
		<-done
	})
}

// Timeouts are virtual: a wait for a message that does not come ends at once in real time.
func TestSimulatedTimeout(t *testing.T) {
	opt := wire.DefaultOptions()
	opt.Timeout = 30 * 24 * time.Hour
	simulatedTest(t, opt, func(t *testing.T, eps []wire.Endpoint, clock wire.Clock) {
		err := eps[1].Recv(0, wire.Key{}, wire.Feature, make([]byte, 8)).Wait(context.Background())
		if err == nil || wire.Since(clock, wire.VirtualStart) != opt.Timeout {
			t.Errorf("%v after %v", err, wire.Since(clock, wire.VirtualStart))
		}
	})
}

// ServerOf decides which links count as being between servers.
func TestSimulatedServers(t *testing.T) {
	opt := wire.DefaultOptions()
	opt.ServerOf = []int{0, 0, 1}
	simulatedTest(t, opt, func(t *testing.T, eps []wire.Endpoint, _ wire.Clock) {
		want := []wire.Link{wire.SameProcess, wire.SameHost, wire.BetweenServers}
		for r, l := range want {
			if eps[0].Link(r) != l {
				t.Errorf("the link to rank %d is %v, want %v", r, eps[0].Link(r), l)
			}
		}
	})
}
