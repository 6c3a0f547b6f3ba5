package worker

import (
	"context"
	"errors"
	"time"

	"starling/wire"
)

// leaveTime is how long a worker that was told to end waits until its peers have read why its endpoint failed.
const leaveTime = 300 * time.Millisecond

// joinUnlessTold connects with the peers. It too ends by sending them why it failed: a worker that was told to end does
// not wait for those that do not read it.
func joinUnlessTold(ctx context.Context, join func() (wire.Endpoint, error)) (wire.Endpoint, error) {
	var end wire.Endpoint
	var err error
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		end, err = join()
	}()
	select {
	case <-joined:
		return end, err
	case <-ctx.Done():
	}
	select {
	case <-joined:
		return end, err
	case <-time.After(leaveTime):
		return nil, context.Cause(ctx)
	}
}

// leave closes an endpoint. One that has failed waits for its peers, of which one may be gone and never read the cause:
// a worker that was told to end does not wait for that. Without a failure the others end too, and read the goodbye.
func leave(ctx context.Context, end wire.Endpoint) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		end.Close()
	}()
	select {
	case <-closed:
		return
	case <-ctx.Done():
	}
	if err := end.Err(); err == nil || errors.Is(err, wire.ErrClosed) {
		<-closed
		return
	}
	select {
	case <-closed:
	case <-time.After(leaveTime):
	}
}
