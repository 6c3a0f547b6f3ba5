package tcp

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	"starling/wire"
	"starling/wire/wiretest"
)

// A wait without a deadline of its own lasts exactly the endpoint's timeout.
func TestTimeoutInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := wire.NewGroup(3, wire.DefaultOptions())
		defer wiretest.CloseAll(eps)
		k := wire.Key{Coflow: coflow.ID{Type: coflow.Rows, Epoch: 12, Layer: 1}}
		err := eps[2].Recv(0, k, wire.Activation, make([]byte, 8)).Wait(context.Background())
		want := "rank 2 waited 1m0s to receive from rank 0: activation (rows, epoch 12, layer 1, step 0)"
		if err.Error() != want {
			t.Errorf("%v\nexpected %s", err, want)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		begin := time.Now()
		if err := eps[2].Recv(1, k, wire.Activation, nil).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(begin) != time.Hour {
			t.Error(err, time.Since(begin))
		}
	})
}

// pipes joins two ranks by unbuffered connections, on which nothing moves unless
// the other side reads.
func pipes(t *testing.T, opt wire.Options, connections int) (a, b wire.Endpoint) {
	a, b, _, _ = carriers(t, opt, connections)
	return a, b
}

// carriers are pipes, and what carries the messages of both ranks.
func carriers(t *testing.T, opt wire.Options, connections int) (a, b wire.Endpoint, toB, toA *carrier) {
	t.Helper()
	var left, right []net.Conn
	for range connections {
		l, r := net.Pipe()
		left, right = append(left, l), append(right, r)
	}
	a, toB = open(0, 1, 2, opt, left...)
	b, toA = open(1, 0, 2, opt, right...)
	toB.run()
	toA.run()
	return a, b, toB, toA
}

// A peer that has stopped holds Close up for no longer than Linger.
func TestLingerInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := wire.DefaultOptions()
		opt.UnexpectedLimit = 1
		a, b := pipes(t, opt, 2)
		for i := range 10 { // b does not ask, so its readers stand still
			a.Send(1, wiretest.Key(i), wire.Feature, make([]byte, 1<<20))
		}
		synctest.Wait()
		a.Fail(errors.New("out of memory"))
		begin := time.Now()
		a.Close()
		if d := time.Since(begin); d > 2*opt.Linger {
			t.Errorf("closing took %v", d)
		}
		b.Fail(errors.New("the test is over"))
		b.Close()
	})
}

// Both may close at the same time, or one after the other, with messages on the way.
func TestCloseInFakeTime(t *testing.T) {
	for _, first := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			a, b := pipes(t, wire.DefaultOptions(), 3)
			into := make([]byte, 1<<20)
			got := b.Recv(0, wiretest.Key(0), wire.Feature, into)
			a.Send(1, wiretest.Key(0), wire.Feature, make([]byte, 1<<20))
			if err := got.Wait(context.Background()); err != nil {
				t.Error(err)
			}
			begin := time.Now()
			switch first {
			case 0:
				a.Close()
				b.Close()
			case 1:
				b.Close()
				a.Close()
			case 2:
				wiretest.CloseAll([]wire.Endpoint{a, b})
			}
			if d := time.Since(begin); d > 0 {
				t.Errorf("closing took %v, though neither had to wait", d)
			}
		})
	}
}
