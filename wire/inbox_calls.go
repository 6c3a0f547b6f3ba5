package wire

import "starling/event"

// placeCall is place for requests and responses, for which there always is space: how many
// and how long they may be was agreed on before. An error means that a peer does not
// keep to it.
// REQUIRES: mu held.
func (in *Inbox) placeCall(s slot, h *Header) (Place, error) {
	if in.mu.failed != nil {
		return Place{}, in.mu.failed
	}
	r, calls := in.mu.slots[s], in.endpoint.calls
	if r == nil && s.frame == FrameRequest {
		if err := calls.violation(h.From, calls.admit(h)); err != nil {
			return Place{}, err
		}
		r = &receive{head: *h, begun: true, request: in.pool.take(int(h.Length))}
		in.mu.slots[s] = r
	}
	switch {
	case r == nil:
		return Place{}, calls.violation(h.From, badCall("a response to call %d, which is not under way", s.key.Step))
	case r.call != nil && h.Length > int64(r.limit):
		return Place{}, calls.violation(h.From, badCall("a response of %s, where %d are allowed",
			event.Tally(h.Length, "byte"), r.limit))
	}
	if !r.begun {
		in.land(r, h)
	}
	for r.landing {
		in.mu.change.Wait()
	}
	switch {
	case r.head.Number != h.Number || r.head.Length != h.Length || r.placed+int64(h.Chunk) > h.Length:
		return Place{}, calls.violation(h.From, badCall("two messages of call %d", s.key.Step))
	}
	r.placed += int64(h.Chunk)
	r.writing++
	return in.at(r, h), nil
}

// land asks a call where its response goes, without the lock.
// REQUIRES: mu held.
func (in *Inbox) land(r *receive, h *Header) {
	r.head, r.begun = *h, true
	call := &r.call.call
	if call.Each != nil || r.dropped != nil {
		return
	}
	r.landing = true
	r.writing++ // so that it does not end meanwhile
	in.mu.Unlock()
	into := landing(call, int(h.Length))
	in.mu.Lock()
	r.into, r.landing = into, false
	r.writing--
	in.mu.change.Broadcast()
	if len(into) != int(h.Length) && r.dropped == nil {
		r.dropped = &CallError{Rank: h.To, Peer: h.From, PeerAddr: in.endpoint.addr(h.From), Service: call.Service,
			Cause: errNoPlace}
	}
}

// landing is the buffer of a response.
func landing(c *Call, bytes int) []byte {
	if c.Into != nil {
		return c.Into(bytes)
	}
	return make([]byte, bytes)
}

// postResponse posts the receive of a call's response.
func (in *Inbox) postResponse(from int, number uint32, r *receive) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.mu.failed != nil:
		r.end(in.mu.failed)
	case in.mu.gone[from] != nil:
		r.end(in.mu.gone[from])
	default:
		in.mu.slots[slot{from, FrameResponse, callKey(number)}] = r
	}
}

// endResponse ends the receive of a response that will not come.
func (in *Inbox) endResponse(from int, number uint32, cause error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := slot{from, FrameResponse, callKey(number)}
	if r := in.mu.slots[s]; r != nil {
		in.drop(s, r, cause)
	}
}

// dropResponse makes the rest of a response go nowhere: it is not waited for any more.
func (in *Inbox) dropResponse(from int, number uint32, cause error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	r := in.mu.slots[slot{from, FrameResponse, callKey(number)}]
	if r == nil || r.dropped != nil {
		return
	}
	r.dropped = cause
	if r.writing == 0 {
		r.call.ended(nil, cause)
	}
}

// takeResponse takes out the receive of a response in whose place a refusal has come. It
// reports whether none of the response has.
func (in *Inbox) takeResponse(from int, number uint32) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := slot{from, FrameResponse, callKey(number)}
	r := in.mu.slots[s]
	if r == nil || r.begun {
		return false
	}
	delete(in.mu.slots, s)
	return true
}
