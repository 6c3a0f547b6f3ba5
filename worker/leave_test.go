package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"starling/wire"
)

// slowToClose is an endpoint whose peers do not read how it ended.
type slowToClose struct {
	wire.Endpoint
	err error
}

func (s slowToClose) Err() error { return s.err }

func (s slowToClose) Close() error {
	time.Sleep(4 * time.Second)
	return s.err
}

// TestAWorkerToldToEndDoesNotWaitForLostPeers: SIGTERM is obeyed within a second after a peer was lost, also if it
// comes while the endpoint is being closed; a run that ends without a failure sends its goodbyes.
func TestAWorkerToldToEndDoesNotWaitForLostPeers(t *testing.T) {
	lost := errors.New("rank 0 lost rank 2")
	for _, c := range []struct {
		err        error
		told, took time.Duration
	}{{lost, 0, leaveTime}, {lost, time.Second, time.Second + leaveTime}, {lost, time.Hour, 4 * time.Second},
		{wire.ErrClosed, 0, 4 * time.Second}, {nil, time.Second, 4 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.told)
			defer cancel()
			began := time.Now()
			leave(ctx, slowToClose{err: c.err})
			if took := time.Since(began); took != c.took {
				t.Errorf("%v, told after %v: it took %v, want %v", c.err, c.told, took, c.took)
			}
			time.Sleep(time.Minute) // in the bubble: the endpoint has closed
		})
	}
}

// TestAWorkerToldToEndDoesNotWaitToConnect: the same while it connects with its peers.
func TestAWorkerToldToEndDoesNotWaitToConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began, missing := time.Now(), errors.New("rank 2 is missing")
		end, err := joinUnlessTold(ctx, func() (wire.Endpoint, error) { return nil, missing })
		if end != nil || err != missing || time.Since(began) != 0 {
			t.Errorf("a failure before: %v, %v after %v", end, err, time.Since(began))
		}
		_, err = joinUnlessTold(ctx, func() (wire.Endpoint, error) {
			<-ctx.Done()
			time.Sleep(4 * time.Second)
			return nil, missing
		})
		if took := time.Since(began); took != time.Second+leaveTime || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("told after a second: %v after %v", err, took)
		}
		time.Sleep(time.Minute) // in the bubble: it has ended
	})
}
