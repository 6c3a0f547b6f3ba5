package tcp

import (
	"context"
	"net"
	"testing"
	"time"

	"starling/internal/testdeadline"
	"starling/wire"
	"starling/wire/wiretest"
)

// halfJoin is a worker that exchanges memory with rank 0, and dies before it says so.
func halfJoin(t *testing.T, cfg wire.Config) {
	t.Helper()
	_, cancel := cfg.Begin(wiretest.Soon(t))
	defer cancel()
	complete(&cfg)
	m := newMesh(&cfg)
	closeSock := m.openMemory()
	defer closeSock()
	if m.hub == nil {
		t.Skip("this system has no memory to share")
	}
	defer m.hub.Close()
	conn, memorySocket, err := m.dial(wiretest.Soon(t), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	mem, err := m.fetch(0, memorySocket)
	if err != nil {
		t.Fatal(err)
	}
	mem.Close()
}

// A worker that dies while it joins, and is started again, is joined with its new memory,
// not with what the dead one left.
func TestJoinAfterDeath(t *testing.T) {
	wiretest.NoLeaks(t)
	cfgs := configs(t, 2)
	joined := make(chan wire.Endpoint)
	go func() {
		e, err := Join(wiretest.Soon(t), cfgs[0])
		if err != nil {
			t.Error(err)
		}
		joined <- e
	}()
	halfJoin(t, cfgs[1])
	b, err := Join(wiretest.Soon(t), cfgs[1])
	if err != nil {
		t.Fatal(err)
	}
	a := <-joined
	if a == nil {
		t.FailNow()
	}
	defer wiretest.CloseAll([]wire.Endpoint{a, b})
	a.Send(1, wiretest.Key(0), wire.Feature, make([]byte, 100))
	if err := b.Recv(0, wiretest.Key(0), wire.Feature, make([]byte, 100)).Wait(wiretest.Soon(t)); err != nil {
		t.Error(err)
	}
}

// What a worker that died left to a Join that failed is freed.
func TestJoinFailsAfterDeath(t *testing.T) {
	wiretest.NoLeaks(t)
	cfgs := configs(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan struct{})
	go func() {
		Join(ctx, cfgs[0])
		close(failed)
	}()
	halfJoin(t, cfgs[1])
	cfgs[1].Listener.Close()
	cancel()
	testdeadline.Receive(t, failed, "Join after its cancellation")
}

// A connection that is accepted while shared memory makes it unneeded is counted once: all
// other peers are still waited for.
func TestUnneededConnection(t *testing.T) {
	m := newMesh(&wire.Config{Rank: 0, Size: 3, Connections: 2, Addrs: make([]string, 3)})
	a, b := net.Pipe()
	m.reserve(1, 0)
	m.reserve(1, 1)
	m.fill(1, 0, a)
	m.skipRest(1)
	m.fill(1, 1, b)
	if m.mu.missing != 2 {
		t.Errorf("%d connections are missing, expected both of rank 2", m.mu.missing)
	}
	b.SetDeadline(time.Now().Add(time.Minute))
	if _, err := b.Write([]byte{1}); err == nil {
		t.Error("it was kept")
	}
}
