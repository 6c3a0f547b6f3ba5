package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/report"
	"starling/wire"
	"starling/wire/tcp"
)

// localWorker is a worker over TCP on this host.
type localWorker struct {
	addr string
	rank int
}

func (w localWorker) Join(ctx context.Context) (*cluster.Member, error) {
	return cluster.Join(ctx, cluster.JoinRequest{Coordinator: w.addr, Rank: w.rank, Timeout: time.Minute,
		Silence: 7 * time.Second})
}

func (w localWorker) Connect(ctx context.Context, m *cluster.Member, _ string, timeout time.Duration) (wire.Endpoint,
	error) {
	cfg := wire.Config{Options: wire.DefaultOptions(), Rank: m.Rank, Size: len(m.Peers), Job: m.Job,
		Listener:       m.Listener,
		NoSharedMemory: true}
	cfg.Timeout = timeout
	for _, p := range m.Peers {
		cfg.Addrs, cfg.HostIDs = append(cfg.Addrs, p.Addr), append(cfg.HostIDs, p.Host)
		cfg.ServerOf = append(cfg.ServerOf, p.Server)
	}
	return tcp.Join(ctx, cfg)
}

// TestWireIsInterrupted: Ctrl-C while workers measure is an interruption, not the failure that
// each of them reports.
func TestWireIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	usual := wireOps
	defer func() { wireOps = usual }()
	untilStopped := func(b *wireRank, size, _ int) error {
		cancel()
		for {
			if err := b.roundTrip(size, 1); err != nil {
				return err
			}
		}
	}
	wireOps = append(slices.Clone(usual), wireOp{"until stopped", func(size, _ int) int { return size }, untilStopped})
	s := DefaultWire()
	s.Workers, s.NoLaunch, s.Listen, s.Transports = 2, true, "127.0.0.1:0", []string{"tcp"}
	s.Ops, s.Sizes = []string{"until stopped"}, []int{4096}
	var workers sync.WaitGroup
	join := func(e event.Event) { // once the rendezvous is open
		n, ok := e.(event.Note)
		_, rest, waits := strings.Cut(n.Text, "--join ")
		if !ok || !waits {
			return
		}
		for rank := range s.Workers {
			workers.Go(func() {
				if err := WorkWire(t.Context(), localWorker{strings.Fields(rest)[0], rank}); err == nil {
					t.Errorf("rank %d was not interrupted", rank)
				}
			})
		}
	}
	if _, err := TimeWire(ctx, s, event.Func(join)); !errors.Is(err, report.ErrInterrupted) {
		t.Errorf("%v, want %v", err, report.ErrInterrupted)
	}
	workers.Wait()
}

// TestJoinCommandOfWireHasTokenFile: the command that workers are to be started by has all they need to join.
func TestJoinCommandOfWireHasTokenFile(t *testing.T) {
	shown := ""
	s := DefaultWire()
	s.NoLaunch, s.TokenFile = true, "the token"
	if _, err := s.launch("10.0.0.1:7000", "job", nil, event.Func(func(e event.Event) {
		shown = e.(event.Note).Text
	})); err != nil || !strings.Contains(shown, "--join 10.0.0.1:7000 --token-file 'the token' --rank R") {
		t.Errorf("%q, %v", shown, err)
	}
}
