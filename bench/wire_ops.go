package bench

import (
	"starling/coflow"
	"starling/collective"
	"starling/wire"
)

// wireOp runs an operation count times. sent is how many bytes a rank must send per operation.
type wireOp struct {
	name string
	sent func(size, ranks int) int
	run  func(b *wireRank, size, count int) error
}

var wireOps = []wireOp{
	// There and back between ranks 0 and 1. The rate is of one direction.
	{"round-trip", func(size, _ int) int { return 2 * size }, (*wireRank).roundTrip},
	// One direction, a few messages at a time, each with a posted receive.
	{"stream", func(size, _ int) int { return size }, (*wireRank).stream},
	// A small request to rank 1 and a response of that size; one after the other, and a few at a time.
	{"call", func(size, _ int) int { return size }, (*wireRank).call},
	{"call-stream", func(size, _ int) int { return size }, (*wireRank).callStream},
	// The same over a plain TCP connection.
	{"socket", func(size, _ int) int { return size }, (*wireRank).socketCall},
	{"socket-stream", func(size, _ int) int { return size }, (*wireRank).socketStream},
	// A sum of float32 numbers.
	{"all-reduce", func(size, n int) int { return 2 * size / n * (n - 1) }, (*wireRank).allReduce},
	// A share of 1/n of the size to each rank.
	{"all-to-all", func(size, n int) int { return size / n * (n - 1) }, (*wireRank).allToAll},
}

// WireOps are the names of the operations that TimeWire can time.
func WireOps() []string { return append(wireOpsNamed(wireOps), wireOpsNamed(storeOps)...) }

func wireOpsNamed(list []wireOp) (names []string) {
	for _, op := range list {
		names = append(names, op.name)
	}
	return names
}

// key is the key of the next message: ranks 0 and 1 count alike.
func (b *wireRank) key() wire.Key {
	b.messages++
	return wire.Key{Coflow: coflow.ID{Type: coflow.Bulk}, Step: b.messages}
}

func (b *wireRank) roundTrip(size, count int) error {
	me := b.end.Rank()
	if me > 1 {
		return nil
	}
	for range count {
		there := b.key()
		back := b.end.Recv(1-me, there, wire.Feature, b.to[:size])
		if me == 1 {
			if err := back.Wait(b.ctx); err != nil {
				return err
			}
		}
		if err := b.end.Send(1-me, there, wire.Feature, b.from[:size]).Wait(b.ctx); err != nil {
			return err
		}
		if err := back.Wait(b.ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *wireRank) stream(size, count int) error {
	me := b.end.Rank()
	if me > 1 {
		return nil
	}
	var flying [inFlight]*wire.Pending
	for i := range count + inFlight {
		slot := i % inFlight
		if flying[slot] != nil {
			if err := flying[slot].Wait(b.ctx); err != nil {
				return err
			}
			flying[slot] = nil
		}
		switch {
		case i >= count:
		case me == 0:
			flying[slot] = b.end.Send(1, b.key(), wire.Feature, b.from[:size])
		default:
			flying[slot] = b.end.Recv(0, b.key(), wire.Feature, b.to[slot*size:][:size])
		}
	}
	if me == 0 { // the receiver confirms
		return b.end.Recv(1, b.key(), wire.Control, nil).Wait(b.ctx)
	}
	return b.end.Send(0, b.key(), wire.Control, nil).Wait(b.ctx)
}

func (b *wireRank) allReduce(size, count int) error {
	x := b.numbers[:size/4]
	for range count {
		if err := b.comm.AllReduce(b.ctx, coflow.ID{}, wire.Parameter, x, collective.Auto); err != nil {
			return err
		}
	}
	return nil
}

func (b *wireRank) allToAll(size, count int) error {
	n := b.end.Size()
	send, recv := make([][]byte, n), make([][]byte, n)
	for q := range n {
		send[q], recv[q] = b.from[size/n*q:size/n*(q+1)], b.to[size/n*q:size/n*(q+1)]
	}
	for range count {
		if err := b.comm.AllToAll(b.ctx, coflow.ID{}, wire.Activation, send, recv); err != nil {
			return err
		}
	}
	return nil
}
