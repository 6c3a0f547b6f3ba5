package innet

import (
	"math/bits"
	"time"
)

// acknowledged records which slots of another host have their sums.
func (h *Host) acknowledged(p *Packet) {
	for w, word := range p.Body {
		for set := uint32(word); set != 0; set &= set - 1 {
			if slot := int(p.Destination) + 32*w + bits.TrailingZeros32(set); slot < len(h.block().Slots) && !h.r.acked.has(slot) {
				h.moves++
				h.r.acked.set(slot)
			}
		}
	}
}

// fetched is a request for own rows. Those that have not left yet are on their way: were they sent as they are, the
// sums that need them could not be completed.
func (h *Host) fetched(p *Packet) {
	b := h.block()
	for i := 0; i+1 < len(p.Body); i += 2 {
		a := answer{uint32(p.Body[i]), uint32(p.Body[i+1]), p.From}
		if int(a.row) < len(b.Rows) && int(b.RowHost[a.row]) == h.rank && int(a.slot) < len(b.Slots) && h.r.left.has(int(a.row)) {
			h.answer(a)
		}
	}
}

// answer queues a raw row, once.
func (h *Host) answer(a answer) {
	if !h.r.asked[a] {
		h.moves++
		h.r.asked[a] = true
		h.r.answers = append(h.r.answers, a)
	}
}

// firstWindow is how many rows the first fetch of a round asks for: one packet of them. If the sums were only late, little
// is sent in vain, and they say so; if they were lost the window doubles with every fetch that is answered.
func (h *Host) firstWindow() int { return min(h.lanes()/2, h.opt.PullRows) }

// pull requests the rows of slots whose sums did not come.
func (h *Host) pull(now time.Duration, emit func(p *Packet)) time.Duration {
	if len(h.r.overflow) > 0 {
		h.ask(now, h.r.overflow, h.opt.PullRows, emit)
		h.r.overflow = nil
	}
	o := h.ownBlock()
	if h.r.sent < len(o.rows) { // others are likely to be sending too
		h.r.pullAt = max(h.r.pullAt, now+h.silence())
		h.r.resendAt = max(h.r.resendAt, now+resendAfter*h.silence())
	}
	if now < h.r.pullAt {
		return h.r.pullAt
	}
	var slots []uint32
	for slot := o.lo; slot < o.hi && len(slots) < h.r.window; slot++ {
		if !h.r.have.has(slot - o.lo) {
			slots = append(slots, uint32(slot))
		}
	}
	switch {
	case len(h.r.pulled) > 0: // some of the last ones did not come
		h.opt.Rate.Arrived(now, true)
		h.r.retries++
		h.r.window = max(h.r.window/2, h.firstWindow())
		clear(h.r.pulled)
	case h.r.pulls == 0 && h.r.sumAt > 0: // the sums that came took as long
		h.tail.measure(max(h.r.sumAt-h.r.sentAt, 0))
	}
	h.r.pulls++
	h.ask(now, slots, h.r.window, emit)
	h.r.pullAt = now + h.refetch(h.r.retries)
	return h.r.pullAt
}

// answered is a row that has come as it is, asked for or not.
func (h *Host) answered(now time.Duration, row uint32) {
	if !h.r.pulled[row] {
		h.r.pullAt = max(h.r.pullAt, now+h.refetch(h.r.retries))
		return
	}
	if h.r.asks[row] == 1 {
		h.fetch.measure(now - h.r.askedAt)
	}
	h.r.retries = 0 // not in vain: what is missing is asked for again soon
	h.r.pullAt = now + h.refetch(0)
	delete(h.r.pulled, row)
	if len(h.r.pulled) == 0 {
		h.r.pullAt = now // the next ones
		h.r.window = min(2*h.r.window, h.opt.PullRows)
	}
}

// ask sends each owner the list of its rows that slots need and that are not here, about as many as most.
func (h *Host) ask(now time.Duration, slots []uint32, most int, emit func(p *Packet)) {
	b, lists, rows := h.block(), make([][]int32, h.plan.Hosts), 0
	for _, slot := range slots {
		for _, row := range b.From[b.InPtr[slot]:b.InPtr[slot+1]] {
			if h.r.rows[row] == nil && !h.r.pulled[row] {
				h.r.pulled[row] = true
				h.r.asks[row]++
				rows++
				lists[b.RowHost[row]] = append(lists[b.RowHost[row]], int32(row), int32(slot))
			}
		}
		if rows >= most {
			break
		}
	}
	h.r.askedAt = now
	h.Count.Pulls += int64(rows)
	for host, list := range lists {
		for len(list) > 0 {
			n := min(len(list), h.lanes()) // an even number
			p := &Packet{Header: h.header(Fetch), Body: list[:n]}
			p.To = uint16(host)
			h.emitOther(p, emit)
			list = list[n:]
		}
	}
}

// ackAfter and resendAfter are when ACKs and rows are sent again, in times of silence: pulls come first.
const ackAfter, resendAfter = 4, 16

// sendACK sends all hosts which slots have their sums, where a block takes so long that
// rows might be sent again.
func (h *Host) sendACK(now time.Duration, emit func(p *Packet)) time.Duration {
	switch {
	case !h.r.newSums:
		return never
	case now < h.r.ackAt && (h.r.missing > 0 || h.r.acks == 0):
		return h.r.ackAt
	}
	o, words := h.ownBlock(), h.r.have.words()
	for at := 0; at < len(words); at += h.lanes() {
		p := &Packet{Header: h.header(ACK), Body: words[at:min(at+h.lanes(), len(words))]}
		p.Destination = uint32(o.lo + 32*at)
		h.emitOther(p, emit)
	}
	h.r.newSums, h.r.ackAt = false, now+h.opt.within(h.silence(), 1+h.r.acks)
	h.r.acks++
	return never
}

// resend sends rows again to hosts that have not acknowledged all slots that need them.
func (h *Host) resend(now time.Duration) time.Duration {
	o := h.ownBlock()
	if h.r.sent < len(o.rows) || len(o.rows) == 0 {
		return never
	}
	if now < h.r.resendAt {
		return h.r.resendAt
	}
	for n, budget := 0, h.opt.PullRows; n < len(o.rows) && budget > 0; n++ {
		row := o.rows[h.r.resendFrom%len(o.rows)]
		h.r.resendFrom++
		for _, a := range h.unacknowledged(row) {
			h.Count.Resends++
			h.answer(a)
			budget--
		}
	}
	h.r.resendAt = now + 4*h.opt.MaxTimeout
	return now // they leave as the rate allows
}

// unacknowledged is where a row is still needed: one slot per host.
func (h *Host) unacknowledged(row uint32) (list []answer) {
	b, hosts := h.block(), map[uint16]bool{}
	for _, slot := range b.Into[b.Ptr[row]:b.Ptr[row+1]] {
		if host := b.SlotHost[slot]; !h.r.acked.has(int(slot)) && !hosts[host] {
			hosts[host] = true
			list = append(list, answer{row, slot, host})
		}
	}
	return list
}
