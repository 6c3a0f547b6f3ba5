package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/event"
)

// Ctrl-C while workers measure is an interruption, not the failure that each of them tells.
func TestBenchWireIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	usual := wireOps
	defer func() { wireOps = usual }()
	wireOps = append(slices.Clone(usual), wireOp{"until stopped", func(size, _ int) int { return size }, func(b *wireBench, size, _ int) error {
		cancel()
		for {
			if err := b.roundTrip(size, 1); err != nil {
				return err
			}
		}
	}})
	s := DefaultWireBench()
	s.Workers, s.NoLaunch, s.Listen, s.Transports, s.Ops, s.Sizes = 2, true, "127.0.0.1:0", []string{"tcp"}, []string{"until stopped"}, []int{4096}
	var workers sync.WaitGroup
	join := func(e event.Event) { // once they may come
		n, ok := e.(event.Note)
		_, rest, waits := strings.Cut(n.Text, "--join ")
		if !ok || !waits {
			return
		}
		for rank := range s.Workers {
			workers.Go(func() {
				if err := JoinWireBench(t.Context(), WorkerSpec{Join: strings.Fields(rest)[0], Rank: rank, Timeout: 60, Heartbeat: 7}); err == nil {
					t.Errorf("rank %d was not interrupted", rank)
				}
			})
		}
	}
	if _, err := BenchWire(ctx, s, event.Func(join)); !errors.Is(err, ErrInterrupted) {
		t.Errorf("%v, want %v", err, ErrInterrupted)
	}
	workers.Wait()
}
