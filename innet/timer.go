package innet

import "time"

// Timers of a host follow what it measures (Jacobson and Karels, as in RFC 6298): a timeout is the smoothed time of
// what it waits for and four times its deviation. Three things are measured:
//
//   - echo: an empty fetch of a host for itself, which the switch forwards to it; once per round, behind its rows.
//     Barriers are repeated by it.
//   - fetch: from a fetch to a row of it, of rows that were asked for once (Karn's rule).
//   - tail: from a host's last row of a block to its last sum, in blocks of which nothing was pulled. Silence that is
//     longer starts pulls.
type estimate struct {
	mean, deviation time.Duration
	known           bool
}

// measure takes a time into the estimate.
func (e *estimate) measure(took time.Duration) {
	if !e.known {
		*e = estimate{took, took / 2, true}
		return
	}
	e.deviation += (max(took-e.mean, e.mean-took) - e.deviation) / 4
	e.mean += (took - e.mean) / 8
}

// timeout is how long to wait.
func (e *estimate) timeout() time.Duration { return e.mean + 4*e.deviation }

// timers are a host's.
type timers struct {
	echo, fetch, tail estimate
}

// within keeps a time within the limits of the options, after a number of attempts in vain.
func (o *HostOptions) within(t time.Duration, attempts int) time.Duration {
	return min(max(t, o.MinTimeout)<<min(attempts, 20), o.MaxTimeout)
}

// silence is how long nothing may arrive until rows are pulled.
func (h *Host) silence() time.Duration {
	if !h.timers.tail.known {
		return h.opt.within(max(h.opt.Timeout, h.timers.echo.timeout()), 0)
	}
	return h.opt.within(max(h.timers.tail.timeout(), h.timers.echo.timeout()), 0)
}

// again is how long after an attempt a barrier is announced again.
func (h *Host) again(attempts int) time.Duration {
	if !h.timers.echo.known {
		return h.opt.within(h.opt.Timeout, attempts)
	}
	return h.opt.within(h.timers.echo.timeout(), attempts)
}

// refetch is how long after a number of attempts in vain rows are asked for again: a fetch and its answer each pass the
// switch, which an echo does once.
func (h *Host) refetch(attempts int) time.Duration {
	switch t := &h.timers; {
	case t.fetch.known:
		return h.opt.within(t.fetch.timeout(), attempts)
	case t.echo.known:
		return h.opt.within(2*t.echo.timeout(), attempts)
	}
	return h.opt.within(h.opt.Timeout, attempts)
}

// sendEcho sends an echo, once per round.
func (h *Host) sendEcho(now time.Duration, emit func(p *Packet)) {
	if h.r.echoed {
		return
	}
	h.r.echoed, h.r.echoAt = true, now
	p := &Packet{Header: h.header(Fetch)}
	p.To = uint16(h.rank)
	h.emitOther(p, emit)
}

// isEcho reports whether a fetch is this host's echo.
func (h *Host) isEcho(p *Packet) bool {
	return p.Flags&^ECN == Fetch && int(p.From) == h.rank && len(p.Body) == 0
}

// echoed is an echo that has come back; a repeated one is the first again.
func (h *Host) echoed(now time.Duration) {
	if h.r.echoed && !h.r.echoBack {
		h.r.echoBack = true
		h.timers.echo.measure(now - h.r.echoAt)
		h.opt.Rate.Follow(h.timers.echo.mean)
	}
}
