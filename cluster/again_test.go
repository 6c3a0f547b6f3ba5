package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"starling/internal/testdeadline"
	"starling/wire"
)

// Every worker of a job that goes on is told to rejoin, also the first that
// leaves, and every time the listener is open again.
func TestRejoin(t *testing.T) {
	c, err := Listen(Config{Workers: 3, Job: "job", Version: "v1", Again: true, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for start := range 60 {
		over := make(chan error, 1)
		go func() {
			_, err := c.Run(context.Background(), nil)
			over <- err
		}()
		var wg sync.WaitGroup
		for r := range 3 {
			wg.Go(func() {
				m, err := Join(context.Background(), JoinRequest{Coordinator: c.Addr(), Rank: r, Version: "v1",
					Timeout: time.Minute})
				if err != nil {
					t.Errorf("start %d, rank %d: %v", start, r, err)
					return
				}
				m.Listener.Close()
				if r > 0 {
					<-m.Ended()
				}
				m.Fail(fmt.Errorf("epoch 3: %w", &wire.PeerLost{Peer: 2}), false)
				if !m.Again() {
					t.Errorf("start %d, rank %d was not told to rejoin", start, r)
				}
			})
		}
		testdeadline.Wait(t, &wg, "workers of a lost run")
		var died *Died
		if err := testdeadline.Receive(t, over, "the end of the run"); !errors.As(err, &died) || !died.Lost() {
			t.Fatalf("start %d: %v", start, err)
		}
		c.Next(nil, nil, nil, nil)
	}
}

// A worker that waits for others, of a job that starts again, is told so.
func TestAgainWhileMeeting(t *testing.T) {
	s := &session{size: 2, job: "job", version: "v1", again: true, launched: true, exits: make([]*exit, 2)}
	s.arrive(1, Hello{Version: "v1", Rank: 0})
	s.exited(1, 7, "host", errors.New("was killed"), "")
	want := `{"again":true,"why":"rank 1 (pid 7 on host): its process was killed"}`
	if len(s.out) != 1 || s.out[0].conn != 1 || s.out[0].message.Type != "abort" ||
		string(s.out[0].message.Body) != want {
		t.Errorf("%+v", s.out)
	}
}

// TestPatience: workers that are started over ssh have the time that was asked for.
func TestPatience(t *testing.T) {
	for _, x := range []struct {
		launched, remote bool
		want             time.Duration
	}{{false, false, time.Minute}, {true, false, 21 * time.Second}, {true, true, time.Minute}} {
		c := &Coordinator{cfg: Config{Timeout: time.Minute, Silence: 7 * time.Second, Remote: x.remote},
			session: &session{launched: x.launched, again: true}}
		if got := c.patience(); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}
