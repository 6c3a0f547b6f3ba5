package wire

import "fmt"

// This file has what a transport sees, through the Inbox, of the endpoint that it serves.

// Rank is the endpoint's.
func (in *Inbox) Rank() int { return in.endpoint.rank }

// Size is the number of ranks.
func (in *Inbox) Size() int { return in.endpoint.Size() }

// Options are the endpoint's, completed with defaults.
func (in *Inbox) Options() Options { return in.endpoint.opt }

// Name is how errors call a rank: by number, and by address where that is known.
func (in *Inbox) Name(rank int) string { return name(rank, in.endpoint.addr(rank)) }

// Err is the endpoint's cause, once it has ended.
func (in *Inbox) Err() error { return in.endpoint.Err() }

// Fail ends the endpoint with a cause.
func (in *Inbox) Fail(cause error) { in.endpoint.Fail(cause) }

// Lost is the error of everything pending with a peer that has gone.
func (in *Inbox) Lost(peer int, cause error) error { return in.endpoint.lost(peer, cause) }

// SetPoller makes goroutines that wait for a message help to move it.
func (in *Inbox) SetPoller(p Poller) { in.endpoint.poller = p }

// Posts counts the receives that were posted.
func (in *Inbox) Posts() uint64 { return in.posts.Load() }

// Handlers counts the goroutines that were started to handle calls.
func (in *Inbox) Handlers() uint32 { return in.endpoint.calls.started.Load() }

// Waiting reports whether any goroutine is blocked until a message leaves or arrives.
func (in *Inbox) Waiting() bool {
	w := &in.endpoint.waits
	w.Lock()
	defer w.Unlock()
	return len(w.all) > 0
}

// Overhead counts bytes that were sent and are not payload.
func (in *Inbox) Overhead(bytes int) { in.endpoint.ledger.addOverhead(bytes) }

// Control takes in a frame of calls that has no body. An error has ended the endpoint.
func (in *Inbox) Control(h *Header, text []byte) error {
	err := in.endpoint.calls.control(h, text)
	if err != nil {
		in.endpoint.Fail(err)
	}
	return err
}

// Ending is the last frame to a peer, a goodbye or the cause of a failure, without its checksum, and its chunk.
func (in *Inbox) Ending(to int) (Header, []byte) {
	h := Header{Frame: FrameGoodbye, From: in.Rank(), To: to}
	err := in.Err()
	if err == nil || err == ErrClosed {
		return h, nil
	}
	f := root(in.Rank(), err)
	text := []byte(causeText(f.Cause))
	h.Frame, h.Key.Step = FrameFailure, uint32(f.Rank)
	h.Length, h.Chunk = int64(len(text)), len(text)
	return h, text
}

// Ended takes in the cause of a failure that a peer has sent: this endpoint fails with it. A peer that passes on that
// another has lost this rank is no liar; as this rank knows of no failure, its error says whose word that is.
func (in *Inbox) Ended(h *Header, text []byte) error {
	if int64(h.Key.Step) >= int64(in.Size()) {
		return fmt.Errorf("%w: a failure of rank %d of %d, for rank %d", ErrFrame, h.Key.Step, in.Size(), in.Rank())
	}
	if !printable(text) {
		return fmt.Errorf("%w: a failure whose cause is no text", ErrFrame)
	}
	f := &Failure{Rank: int(h.Key.Step), Cause: remoteCause(text)}
	if f.Rank == in.Rank() {
		f.Cause = remoteCause(fmt.Sprintf("rank %d reports: %s", h.From, text))
	}
	in.Fail(f)
	return nil
}
