package llm

import "starling/netsim"

// group is a coflow under way.
type group struct {
	traits
	number uint32 // of those whose queues are counted, from 1
	began  netsim.Time
	left   int // flows
	done   func()
}

// flow is bytes from a GPU to another; done may be nil.
type flow struct {
	from, to int
	bytes    int64
	done     func()
}

// start begins a coflow's flows. done is called when all have ended.
func (r *run) start(t traits, flows []flow, done func()) {
	g := &group{traits: t, began: r.net.Now(), left: len(flows), done: done}
	if len(flows) == 0 {
		r.net.At(r.net.Now(), done)
		return
	}
	for i := range flows {
		r.bytes[t.kind] += flows[i].bytes
		r.submit(g, flows[i])
	}
}

// end counts a flow that has ended.
func (r *run) end(g *group, f *flow) {
	g.left--
	if g.left == 0 {
		r.took[g.kind] += (r.net.Now() - g.began).Seconds()
		r.count[g.kind]++
	}
	if f.done != nil {
		f.done()
	}
	if g.left == 0 && g.done != nil {
		g.done()
	}
}

// submit hands a flow to the network, or to its host's queue where hosts order transfers.
func (r *run) submit(g *group, f flow) {
	turn := -1
	if r.Policy.turn != nil {
		turn = r.Policy.turn(r, g.traits)
	}
	if turn < 0 {
		r.transmit(g, &f, f.bytes, func() { r.end(g, &f) })
		return
	}
	h := &r.hosts[f.from]
	h.waiting = append(h.waiting, &queued{group: g, flow: f, rest: f.bytes, turn: turn})
	r.release(h)
}

func (r *run) transmit(g *group, f *flow, bytes int64, done func()) {
	var urgency uint8
	if r.Policy.urgency != nil {
		urgency = r.Policy.urgency(r, g.traits)
	}
	t := &netsim.Transfer{From: f.from, To: f.to, Bytes: bytes, DSCP: urgency, Start: r.net.Now(), Done: done}
	if r.queued != nil {
		if g.number == 0 {
			r.coflows++
			g.number = r.coflows
		}
		t.Group = g.number
	}
	if r.core != nil {
		t.Traced, t.Done = true, func() {
			r.core.end(g, t.Through, r.net.Now())
			done()
		}
	}
	netsim.Begin(r.net, t)
	if r.core != nil {
		r.core.begin(g, t.Through, r.net.Now())
	}
}

// host has the transfers of a GPU that wait for their turn.
type host struct {
	waiting []*queued
	active  []int // turns of pieces under way
}

type queued struct {
	*group
	flow
	rest  int64
	turn  int
	under int // pieces under way, with a credit
}

// release hands the network a piece of every transfer that nothing more urgent is before.
func (r *run) release(h *host) {
	if r.Policy.credit > 0 {
		r.spend(h)
		return
	}
	first := int(^uint(0) >> 1)
	for _, t := range h.active {
		first = min(first, t)
	}
	for _, q := range h.waiting {
		first = min(first, q.turn)
	}
	var still []*queued
	for _, q := range h.waiting {
		if q.turn > first {
			still = append(still, q)
			continue
		}
		r.piece(h, q)
	}
	h.waiting = still
}

// spend hands the network pieces of what is most urgent, the oldest first, as long as there is credit. A piece that has
// arrived gives its credit back.
func (r *run) spend(h *host) {
	for len(h.active) < r.Policy.credit && len(h.waiting) > 0 {
		at := 0
		for i, q := range h.waiting {
			if q.turn < h.waiting[at].turn {
				at = i
			}
		}
		q := h.waiting[at]
		bytes := min(q.rest, r.Piece)
		if q.rest -= bytes; q.rest == 0 {
			h.waiting = append(h.waiting[:at:at], h.waiting[at+1:]...)
		}
		h.active = append(h.active, q.turn)
		q.under++
		r.transmit(q.group, &q.flow, bytes, func() {
			h.active = h.active[1:] // turns do not matter here
			q.under--
			r.spend(h)
			if q.rest == 0 && q.under == 0 {
				r.end(q.group, &q.flow)
			}
		})
	}
}

func (r *run) piece(h *host, q *queued) {
	bytes := min(q.rest, r.Piece)
	q.rest -= bytes
	h.active = append(h.active, q.turn)
	r.transmit(q.group, &q.flow, bytes, func() {
		for i, t := range h.active {
			if t == q.turn {
				h.active = append(h.active[:i], h.active[i+1:]...)
				break
			}
		}
		last := q.rest == 0 // release may hand over the rest
		if !last {
			h.waiting = append(h.waiting, q)
		}
		r.release(h)
		if last {
			r.end(q.group, &q.flow)
		}
	})
}
