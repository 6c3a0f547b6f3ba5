package collective

import (
	"context"
	"errors"
	"fmt"

	"starling/coflow"
	"starling/tensor"
	"starling/wire"
)

// The steps in which devices meet, of a coflow of their own.
const (
	stepHello = iota
	stepMet
	stepParting
	stepReducers
	stepName
	stepJoined
)

func meeting(step uint32) wire.Key {
	return wire.Key{Step: step, Coflow: coflow.ID{Type: coflow.Bulk, Layer: -1, Epoch: 1 << 31}}
}

// Meet has the devices of workers meet, so that rows need not go through the host's memory. All workers of a run call
// it, also those whose devices cannot. n is how many peers this worker reads, of those of this
// host; err why not all.
func Meet(ctx context.Context, dev tensor.Device, end wire.Endpoint) (n, of int, err error) {
	link, _ := dev.(tensor.Linker)
	var hello []byte
	if link != nil {
		hello = link.Hello()
	}
	hellos, err := swap(ctx, end, stepHello, near, func(int) []byte { return hello })
	if err != nil {
		return 0, 0, err
	}
	var why error
	met := make([]byte, end.Size())
	for q := range hellos {
		if link == nil || hello == nil || hellos[q] == nil {
			continue
		}
		err := link.Meet(q, hellos[q])
		if errors.Is(err, tensor.ErrElsewhere) { // hosts that --servers made one of
			continue
		}
		if of++; err == nil {
			met[q] = 1
		} else if why == nil {
			why = &NotMet{q, err}
		}
	}
	answers, err := swap(ctx, end, stepMet, near, func(q int) []byte { return met[q : q+1] })
	if err != nil {
		return 0, of, err
	}
	for q, a := range answers {
		switch {
		case met[q] == 1 && len(a) == 1 && a[0] == 1:
			n++
		case met[q] == 1:
			link.Part(q)
			if why == nil {
				why = &NotMet{q, errors.New("it cannot read this one's")}
			}
		}
	}
	return n, of, why
}

// NotMet: the memory of a worker's device cannot be read.
type NotMet struct {
	Peer  int
	Cause error
}

func (e *NotMet) Error() string { return fmt.Sprintf("the GPU of worker %d: %v", e.Peer, e.Cause) }
func (e *NotMet) Unwrap() error { return e.Cause }

// Part returns when no worker reads another's memory any more: it may be freed then.
func Part(ctx context.Context, dev tensor.Device, end wire.Endpoint) error {
	link, ok := dev.(tensor.Linker)
	if !ok {
		return nil
	}
	dev.Sync()
	var waits []*wire.Pending
	for q := range end.Size() {
		if q != end.Rank() && link.Met(q) {
			waits = append(waits, end.Recv(q, meeting(stepParting), wire.Control, nil),
				end.Send(q, meeting(stepParting), wire.Control, nil))
		}
	}
	for _, p := range waits {
		if err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// mostHello bounds what a peer may send.
const mostHello = 1 << 10

// near reports whether a peer is on this host.
func near(end wire.Endpoint, peer int) bool { return end.Link(peer) != wire.BetweenServers }

// all is every peer.
func all(wire.Endpoint, int) bool { return true }

// swap sends each of some workers its bytes, and returns theirs by rank; nil for the others. The ledger has them as
// overhead: how workers reach each other is no part of what a strategy sends.
func swap(ctx context.Context, end wire.Endpoint, step uint32, whom func(wire.Endpoint, int) bool,
	what func(peer int) []byte) ([][]byte, error) {
	in := make([][]byte, end.Size())
	waits, sent := make([]*wire.Pending, end.Size()), []*wire.Pending(nil)
	for q := range in {
		if q == end.Rank() || !whom(end, q) {
			continue
		}
		in[q] = make([]byte, mostHello)
		waits[q] = end.RecvAtMost(q, meeting(step), wire.Control, in[q])
		out := what(q)
		sent = append(sent, end.Send(q, meeting(step), wire.Control, out))
		end.Ledger().Stand(true, wire.Control, end.Link(q), meeting(step), len(out), 0)
	}
	for q, p := range waits {
		if p == nil {
			continue
		}
		if err := p.Wait(ctx); err != nil {
			return nil, err
		}
		in[q] = in[q][:p.Bytes()]
		end.Ledger().Stand(false, wire.Control, end.Link(q), meeting(step), p.Bytes(), 0)
	}
	for _, p := range sent {
		if err := p.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return in, nil
}
