package wire

import (
	"context"
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
		if len(got) != 2 || got[0] != (Wait{Peer: 2, What: "to receive from", Key: rows, Kind: Activation, Since: begin}) ||
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
		if len(sent) != 0 || received[Channel{Activation, SameProcess}] != 8 || received[Channel{Parameter, SameProcess}] != 8 {
			t.Error(sent, received)
		}
	})
}
