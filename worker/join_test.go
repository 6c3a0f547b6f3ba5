package worker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"starling/cluster"
	"starling/graph"
	"starling/internal/testdeadline"
	"starling/internal/version"
)

// TestRankTaken: a worker whose rank is taken tries again a few times, less and less often, since
// the end of the other may not have been noticed yet; then it gives up and says why.
func TestRankTaken(t *testing.T) {
	t.Parallel() // it waits
	var refused atomic.Int32
	co, err := cluster.Listen(cluster.Config{Workers: 2, Job: "j", Version: version.Name(), Token: []byte("secret"), Again: true,
		Silence: 2 * time.Second,
		Refused: func(string, string) { refused.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	defer co.Close()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() {
		_, err := co.Run(ctx, nil)
		over <- err
	}()
	ends := make(chan error, 2) // one of the two joins, and waits for a rank 1
	for range 2 {
		go func() {
			w := Spec{Addr: co.Addr(), Rank: 0, Token: []byte("secret"), Timeout: 60, Heartbeat: 2}
			_, err := w.Join(ctx)
			ends <- err
		}()
	}
	err = testdeadline.Receive(t, ends, "the second worker")
	if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "--rank") ||
		!strings.Contains(err.Error(), "rank 0 has joined already") {
		t.Error(err)
	}
	// For two heartbeats, with pauses of 0.1, 0.2, 0.4, 0.8, 1.6 and 2 s, however slow the machine is.
	if n := refused.Load(); n < 2 || n > 7 {
		t.Errorf("it tried %d times", n)
	}
	cancel()
	testdeadline.Receive(t, over, "the coordinator")
	testdeadline.Receive(t, ends, "the first worker")
}

// TestJobHasEnded: a worker that comes to a job that has ended is refused, which is no mistake of
// its user.
func TestJobHasEnded(t *testing.T) {
	co, err := cluster.Listen(cluster.Config{Workers: 2, Job: "j", Version: version.Name(), Token: []byte("secret")})
	if err != nil {
		t.Fatal(err)
	}
	defer co.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		co.RefuseLate(errors.New("rank 1 was lost"), 2*time.Second, 0)
	}()
	w := Spec{Addr: co.Addr(), Rank: -1, Token: []byte("secret"), Timeout: 60, Heartbeat: 60}
	if _, err = w.Join(context.Background()); err == nil || errors.Is(err, graph.ErrInput) ||
		!strings.Contains(err.Error(), "rank 1 was lost") {
		t.Error(err)
	}
	testdeadline.Receive(t, over, "the coordinator")
}

// TestJobEndsWhenAllWereRefused: the job that was interrupted waits for its workers only, to tell them.
func TestJobEndsWhenAllWereRefused(t *testing.T) {
	co, err := cluster.Listen(cluster.Config{Workers: 3, Job: "j", Version: version.Name(), Token: []byte("secret")})
	if err != nil {
		t.Fatal(err)
	}
	defer co.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		co.RefuseLate(errors.New("it was interrupted"), time.Hour, 2)
	}()
	for rank := range 2 {
		w := Spec{Addr: co.Addr(), Rank: rank, Token: []byte("secret"), Timeout: 60, Heartbeat: 60}
		if _, err := w.Join(context.Background()); err == nil || !strings.Contains(err.Error(), "it was interrupted") {
			t.Error(err)
		}
		select {
		case <-over:
			if rank == 0 {
				t.Error("it ended before all had come")
			}
		default:
		}
	}
	testdeadline.Receive(t, over, "the coordinator")
}
