package cluster

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"testing"
	"time"

	"starling/internal/testdeadline"
	"starling/internal/testflood"
	"starling/wire"
)

// dialThrough dials with a delay: the round trip of opening the connection, then each message.
func dialThrough(delay time.Duration) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		time.Sleep(delay)
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		near, far := net.Pipe()
		go testflood.Forward(far, conn, delay)
		go testflood.Forward(conn, far, delay)
		return addressedPipe{near, conn}, nil
	}
}

// addressedPipe has the addresses of a TCP connection.
type addressedPipe struct {
	net.Conn
	tcp net.Conn
}

func (p addressedPipe) LocalAddr() net.Addr  { return p.tcp.LocalAddr() }
func (p addressedPipe) RemoteAddr() net.Addr { return p.tcp.RemoteAddr() }

// TestFlood: 5,000 silent connections per second, half from the workers' own address, through a
// delay of 20 ms that every handshake needs several times: workers with the token join, and join
// again after one was lost.
func TestFlood(t *testing.T) {
	c, err := Listen(Config{Workers: 2, Job: "j", Version: "v", Token: []byte("secret"), Again: true,
		Timeout: time.Minute, Silence: time.Minute, Grace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, began := testflood.Start(c.Addr(), 5000), time.Now()
	join := func(rank int) *Member {
		in := JoinRequest{Coordinator: c.Addr(), Rank: rank, Version: "v", Token: []byte("secret"), Timeout: time.Minute,
			Silence: time.Minute, dial: dialThrough(20 * time.Millisecond)}
		for end := time.Now().Add(time.Minute); ; {
			m, err := Join(context.Background(), in)
			if err == nil || time.Now().After(end) {
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
				return m
			}
			t.Logf("rank %d tries again: %v", rank, err)
			wire.Sleep(context.Background(), wire.Real, 100*time.Millisecond)
		}
	}
	for start := range 2 {
		ran := make(chan error, 1)
		go func() {
			_, err := c.Run(context.Background(), nil)
			ran <- err
		}()
		var wg sync.WaitGroup
		for rank := range 2 {
			wg.Go(func() {
				m := join(rank)
				switch {
				case m == nil:
				case start == 0 && rank == 1:
					m.control.conn.Close() // it is lost
				case start == 0:
					<-m.Ended()
					m.control.conn.Close()
				default:
					m.Done(json.RawMessage(`1`), nil)
				}
			})
		}
		testdeadline.Wait(t, &wg, "the workers")
		if err := testdeadline.Receive(t, ran, "the end of the run"); (err != nil) != (start == 0) {
			t.Errorf("start %d: %v", start, err)
		}
		c.Next(nil, nil, nil, nil)
	}
	took := time.Since(began)
	n, perSecond := f.Stop()
	t.Logf("%d connections, %.0f per second; all joined twice in %.1f s", n, perSecond, took.Seconds())
}
