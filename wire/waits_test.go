package wire

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
)

// Waits are told while they last, the longest first, each once.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := NewGroup(3, DefaultOptions())
		defer closeAll(eps)
		rows := Key{Coflow: coflow.ID{Type: coflow.Rows, Epoch: 12, Layer: 1}}
		sum := Key{Coflow: coflow.ID{Type: coflow.Params, Epoch: 12, Layer: -1, Backward: true}}
		begin := time.Now()
		first := eps[0].Recv(2, rows, Activation, make([]byte, 8))
		for range 2 {
			go first.Wait(context.Background())
		}
		time.Sleep(time.Second)
		go eps[0].Recv(1, sum, Parameter, make([]byte, 8)).Wait(context.Background())
		synctest.Wait()
		got := eps[0].Waits()
		if len(got) != 2 || got[0] != (Wait{Peer: 2, What: "to receive from", Key: rows, Kind: Activation,
			Since: begin}) ||
			got[1].Peer != 1 || got[1].Since.Sub(begin) != time.Second {
			t.Fatalf("%+v", got)
		}
		if a, b := got[0].Reason(), got[1].Reason(); a != "activation rows, layer 1" || b != "gradients of parameters" {
			t.Error(a, b)
		}
		eps[2].Send(0, rows, Activation, make([]byte, 8))
		eps[1].Send(0, sum, Parameter, make([]byte, 8))
		synctest.Wait()
		if got := eps[0].Waits(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		go eps[0].Recv(1, rows, Gradient, make([]byte, 8)).Wait(context.Background())
		synctest.Wait()
		if got := eps[0].Waits(); len(got) != 1 || got[0].Reason() != "gradients of rows, layer 1" {
			t.Errorf("%+v", got)
		}
		if got := (Wait{What: "to send to", Kind: Feature, Key: rows}).Reason(); got != "to take feature rows, layer 1" {
			t.Error(got)
		}
		sent, received := eps[0].Ledger().Channels()
		if len(sent) != 0 || received[Channel{Activation, SameProcess}] != 8 ||
			received[Channel{Parameter, SameProcess}] != 8 {
			t.Error(sent, received)
		}
	})
}

// Who waits for any of several waits for all of them, as far as others can see.
func TestWaitAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := NewGroup(3, DefaultOptions())
		defer closeAll(eps)
		var list []*Pending
		for _, peer := range []int{2, 1} {
			list = append(list, eps[0].Recv(peer, key(7), Feature, make([]byte, 8)))
		}
		ended := make(chan error, 1)
		wait := func(ctx context.Context) { go func() { ended <- WaitAny(ctx, list) }() }
		wait(context.Background())
		time.Sleep(3 * time.Second)
		if got := eps[0].Waits(); len(got) != 2 || time.Since(got[1].Since) != 3*time.Second {
			t.Errorf("%+v", got)
		}
		eps[1].Send(0, key(7), Feature, make([]byte, 8))
		if err := <-ended; err != nil || !list[1].IsDone() || len(eps[0].Waits()) != 0 {
			t.Error(err)
		}
		if err := WaitAny(context.Background(), list); err != nil {
			t.Error(err)
		}
		list = list[:1]
		begin := time.Now()
		wait(context.Background())
		if err := <-ended; err == nil || !strings.HasPrefix(err.Error(), "rank 0 waited 1m0s to receive from rank 2") ||
			time.Since(begin) != time.Minute {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		wait(ctx)
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		ctx, stop := context.WithCancelCause(context.Background())
		stop(ErrClosed)
		wait(ctx)
		if err := <-ended; err != ErrClosed {
			t.Error(err)
		}
		if err := WaitAny(ctx, nil); err != nil {
			t.Error(err)
		}
	})
}
