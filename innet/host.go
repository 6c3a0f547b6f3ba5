package innet

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Host is one host: a pure step machine. Exchange begins an exchange; until Finished,
// Receive takes each packet that arrives, and Poll emits what is due and says when to call
// it again. Times are of any clock that starts at 0.
type Host struct {
	plan  *Plan
	rank  int
	units int
	job   uint64
	opt   HostOptions
	own   []*ownBlock // by block, made when first used

	x     *Exchange
	round uint32
	last  uint16 // the value agreed on in the round before
	step  int    // of the exchange: -1 is the opening round
	shift int
	r     roundState
	reply bool // another host asks whether the round before is over
	timers
	out   []float64
	body  []int32
	moves uint64 // see Moves
	Count HostCounts
}

// HostOptions are the timers of a host.
type HostOptions struct {
	// Timeout is how long a host waits, without anything arriving, until it pulls rows or repeats a packet, as long as
	// it has measured nothing. Afterwards it follows what it measures, from MinTimeout on, and doubles with every
	// attempt in vain, up to MaxTimeout.
	Timeout, MinTimeout, MaxTimeout time.Duration
	// PullRows is how many rows are pulled at most at a time.
	PullRows int
	Rate     Rate
	// Gate, if set, reports whether another row may leave now. When it opens again, the
	// caller polls.
	Gate func() bool
}

// DefaultHost has the timers of one data centre.
var DefaultHost = HostOptions{Timeout: 20 * time.Millisecond, MinTimeout: time.Millisecond, MaxTimeout: time.Second,
	PullRows: 1024, Rate: DefaultRate}

// HostCounts is what a host has sent and received.
type HostCounts struct {
	Rows       int64 // that left for the first time in their round
	RowBytes   int64 // of their bodies, as far as they are columns of the exchange
	OtherBytes int64 // headers, padding, repeated rows, fetches, ACKs, barriers
	// Repeats is rows that left again, because a sum was lost or late, RepeatBytes those of their bodies: both are among
	// OtherBytes.
	Repeats, RepeatBytes int64
	Sums, Raw            int64 // results: from the switch, added up here
	SumBytes             int64 // of the switch's, as far as they are columns of the exchange
	Pulls                int64 // rows pulled
	Resends              int64 // rows sent again without a pull
	Marks                int64 // packets with ECN
	Rounds               int64 // that are over
	// Moving is the time in rounds until the own sums were there, Barriers from then on until all hosts had theirs.
	Moving, Barriers time.Duration
}

// Exchange is rows that leave and sums that arrive, over blocks Lo to Hi of the plan.
type Exchange struct {
	Lo, Hi int
	Width  int
	// Most is the largest magnitude of any number that this host sends.
	Most float64
	// Row is columns lo to hi of a vertex's row; it is read again for resends.
	Row func(vertex uint32, lo, hi int) []float64
	// Add adds a sum to columns from lo on of a vertex.
	Add func(vertex uint32, lo int, sum []float64)
}

// ErrNotFinite: a number to be sent has no fixed-point form.
var ErrNotFinite = errors.New("a number is infinite or not a number, which fixed point cannot hold: training has " +
	"diverged (try a smaller --lr)")

// ownBlock is what a host has to do in a block.
type ownBlock struct {
	rows   []uint32 // rows of this host, in sending order
	lo, hi int      // slots of this host
}

// roundState is what a round begins without.
type roundState struct {
	sent     int                // own rows that have left to be added
	left     bitmap             // rows of the block that have left
	have     bitmap             // own slots whose sums are there
	missing  int                // own slots whose sums are not
	rows     map[uint32][]int32 // raw rows, shared by all slots here
	needs    map[uint32]int     // raw rows that slots still need, of slots that have any
	acked    bitmap             // slots of all hosts
	newSums  bool               // since the last ACK
	overflow []uint32           // slots whose rows are to be pulled
	answers  []answer           // fetched rows to send
	asked    map[answer]bool    // those in answers

	pullAt, ackAt, resendAt, doneAt time.Duration
	probeAt                         time.Duration // when others are asked whether the round is over
	doneSent, probes                int
	sentAt                          time.Duration   // when the last own row left
	pulled                          map[uint32]bool // rows asked for that have not come
	asks                            map[uint32]int  // how often a row was asked for
	askedAt                         time.Duration
	pulls, retries                  int // fetches in this round; of those, in vain since the last answer
	window                          int // rows that are pulled at a time
	sumAt                           time.Duration
	acks                            int
	resendFrom                      int
	echoed, echoBack                bool
	echoAt                          time.Duration
	started                         bool
	begunAt, readyAt                time.Duration // readyAt: own sums were there
}

// answer is a raw row for one host, for the sake of a slot.
type answer struct {
	row, slot uint32
	to        uint16
}

// NewHost is host rank of a plan.
func NewHost(p *Plan, rank, units int, job uint64, opt HostOptions) *Host {
	return &Host{plan: p, rank: rank, units: units, job: job, opt: opt, own: make([]*ownBlock, len(p.Blocks)), round: 1}
}

// Begin starts an exchange. REQUIRES: the one before is finished.
func (h *Host) Begin(x *Exchange) {
	h.x, h.step = x, -1
	h.r = roundState{}
}

// Finished reports whether the exchange is over for all hosts.
func (h *Host) Finished() bool { return h.x == nil }

// Err is why the exchange cannot go on: a number of some host has no fixed-point form.
func (h *Host) Err() error {
	if h.last == notFinite {
		return ErrNotFinite
	}
	return nil
}

// Round is the round that the host is in.
func (h *Host) Round() uint32 { return h.round }

// Moves grows with all that brings an exchange nearer to its end: an own row that leaves, a sum or a row that arrives,
// what another host has or asks for, the end of a round. A host whose Moves stays the same is stalled, or waits for
// others, whatever else arrives.
func (h *Host) Moves() uint64 { return h.moves }

// Shift is the fractional bits of the last exchange.
func (h *Host) Shift() int { return h.shift }

// Waiting describes what the host waits for.
func (h *Host) Waiting() string {
	switch {
	case h.x == nil:
		return "nothing"
	case h.step < 0:
		return "all hosts to begin the exchange"
	case h.r.missing > 0:
		return fmt.Sprintf("%d of %d sums of block %d", h.r.missing, h.ownBlock().hi-h.ownBlock().lo, h.blockNumber())
	}
	return fmt.Sprintf("all hosts to have the sums of block %d", h.blockNumber())
}

func (h *Host) lanes() int { return h.units * UnitLanes }

// blockNumber is the plan's block of this round: blocks change faster than columns.
func (h *Host) blockNumber() int {
	if h.step < 0 {
		return h.x.Lo
	}
	return h.x.Lo + h.step%(h.x.Hi-h.x.Lo)
}

func (h *Host) block() *Block { return h.plan.Blocks[h.blockNumber()] }

// columns returns the columns of this round.
func (h *Host) columns() (lo, hi int) {
	lo = h.step / (h.x.Hi - h.x.Lo) * h.lanes()
	return lo, min(lo+h.lanes(), h.x.Width)
}

// rowLanes is the lanes of a packet of this round: its columns, in whole units.
func (h *Host) rowLanes() int {
	lo, hi := h.columns()
	return (hi - lo + UnitLanes - 1) / UnitLanes * UnitLanes
}

// steps is how many rounds follow the opening one.
func (h *Host) steps() int { return (h.x.Hi - h.x.Lo) * ((h.x.Width + h.lanes() - 1) / h.lanes()) }

func (h *Host) ownBlock() *ownBlock {
	i := h.blockNumber()
	if h.own[i] == nil {
		b, o := h.plan.Blocks[i], &ownBlock{}
		for r, host := range b.RowHost {
			if int(host) == h.rank {
				o.rows = append(o.rows, uint32(r))
			}
		}
		for o.lo < len(b.SlotHost) && int(b.SlotHost[o.lo]) < h.rank {
			o.lo++
		}
		for o.hi = o.lo; o.hi < len(b.SlotHost) && int(b.SlotHost[o.hi]) == h.rank; o.hi++ {
		}
		h.own[i] = o
	}
	return h.own[i]
}

// start opens the state of a round.
func (h *Host) start(now time.Duration) {
	if h.r.started {
		return
	}
	h.r = roundState{started: true, begunAt: now, doneAt: now, sentAt: now, probeAt: now + h.opt.Timeout}
	if h.step < 0 {
		return
	}
	b, o := h.block(), h.ownBlock()
	h.r.have, h.r.acked = newBitmap(o.hi-o.lo), newBitmap(len(b.Slots))
	h.r.missing = o.hi - o.lo
	h.r.left, h.r.asked = newBitmap(len(b.Rows)), map[answer]bool{}
	h.r.rows, h.r.needs = map[uint32][]int32{}, map[uint32]int{}
	h.r.pulled, h.r.asks, h.r.window = map[uint32]bool{}, map[uint32]int{}, h.firstWindow()
	h.progress(now)
	h.r.ackAt, h.r.resendAt = now+ackAfter*h.silence(), now+resendAfter*h.silence()
}

// progress puts a pull off: something has arrived.
func (h *Host) progress(now time.Duration) { h.r.pullAt = now + h.silence() }

// finish goes on to the next round; value is what was agreed on.
func (h *Host) finish(now time.Duration, value uint16) {
	h.Count.Rounds++
	if ready := h.r.readyAt; ready > 0 {
		h.Count.Moving += ready - h.r.begunAt
		h.Count.Barriers += now - ready
	} else if h.r.started {
		h.Count.Barriers += now - h.r.begunAt
	}
	h.round++
	h.moves++
	h.last = value
	if h.step < 0 {
		h.shift = shiftOf(value, h.plan.MaxNeed(h.x.Lo, h.x.Hi))
	}
	h.step++
	h.r = roundState{}
	if h.step == h.steps() || value == notFinite {
		h.x = nil
	}
}

// Receive takes a packet.
func (h *Host) Receive(now time.Duration, p *Packet) {
	if p.Job != h.job {
		return
	}
	if p.Has(ECN) {
		h.Count.Marks++
	}
	h.opt.Rate.Arrived(now, p.Has(ECN))
	if p.Flags&^ECN == Done|Fetch {
		h.reply = h.reply || p.Round == h.round-1
		return
	}
	if h.x != nil && p.Round == h.round+1 && (h.step >= 0 || h.r.started) {
		h.finish(now, p.Last) // the barrier was passed
	}
	if h.x == nil || p.Round != h.round || p.Flags == ECN {
		return
	}
	h.start(now)
	switch {
	case h.isEcho(p):
		h.echoed(now)
	case p.Has(Done):
		h.finish(now, p.Value)
	case h.step < 0 || int(p.Block) != h.blockNumber():
	case p.Has(ACK):
		h.acknowledged(p)
	case p.Has(Fetch):
		h.fetched(p)
	case p.Has(Resend):
		h.raw(now, p)
	case p.Has(Sum):
		h.sum(now, p)
	}
}

// slotOf is a slot of this host's own, from 0.
func (h *Host) slotOf(slot uint32) (i int, ok bool) {
	o := h.ownBlock()
	i = int(slot) - o.lo
	return i, i >= 0 && int(slot) < o.hi
}

// sum is a result of the switch.
func (h *Host) sum(now time.Duration, p *Packet) {
	i, ok := h.slotOf(p.Destination)
	if !ok || h.r.have.has(i) || p.Count != h.block().Need[p.Destination] {
		return
	}
	h.r.sumAt = now
	if h.r.pulls > 0 { // too early: the switch was still at work
		h.tail.measure(max(now-h.r.sentAt, 0))
	}
	h.progress(now)
	if p.Has(Overflow) {
		h.r.overflow = append(h.r.overflow, p.Destination)
		return
	}
	if len(p.Body) != h.rowLanes() {
		return
	}
	lo, hi := h.columns()
	h.Count.Sums++
	h.Count.SumBytes += int64(4 * (hi - lo))
	h.out = slices.Grow(h.out[:0], hi-lo)[:hi-lo]
	dequantiseLanes(h.out, p.Body, h.shift)
	h.deliver(p.Destination, h.out)
	if h.r.missing == 0 && h.r.pulls == 0 {
		h.tail.measure(max(now-h.r.sentAt, 0))
	}
}

// raw is a row that bypassed the aggregators. It serves all slots of this host that need it.
func (h *Host) raw(now time.Duration, p *Packet) {
	b := h.block()
	if int(p.Source) >= len(b.Rows) || len(p.Body) != h.rowLanes() || h.r.rows[p.Source] != nil || h.r.missing == 0 {
		return
	}
	h.progress(now)
	h.moves++
	h.r.rows[p.Source] = append([]int32(nil), p.Body...)
	h.answered(now, p.Source)
	for _, slot := range b.Into[b.Ptr[p.Source]:b.Ptr[p.Source+1]] {
		i, ok := h.slotOf(slot)
		if !ok || h.r.have.has(i) {
			continue
		}
		if _, known := h.r.needs[slot]; !known {
			h.r.needs[slot] = int(b.Need[slot])
		}
		if h.r.needs[slot]--; h.r.needs[slot] == 0 {
			h.Count.Raw++
			lo, hi := h.columns()
			sum := make([]float64, hi-lo)
			dequantise(sum, h.addUp(slot), h.shift)
			h.deliver(slot, sum)
		}
	}
}

// addUp is the sum of a slot's raw rows.
func (h *Host) addUp(slot uint32) []int64 {
	b, sum := h.block(), make([]int64, h.rowLanes())
	for _, row := range b.From[b.InPtr[slot]:b.InPtr[slot+1]] {
		for c, x := range h.r.rows[row] {
			sum[c] += int64(x)
		}
	}
	return sum
}

// deliver gives a finished sum to the exchange.
func (h *Host) deliver(slot uint32, sum []float64) {
	i, _ := h.slotOf(slot)
	h.r.have.set(i)
	h.moves++
	h.r.missing--
	h.r.newSums = true
	lo, _ := h.columns()
	h.x.Add(h.block().Slots[slot], lo, sum)
}

// never is a time that does not come.
const never = time.Duration(1<<63 - 1)

// Poll emits what is due and returns when to call it again, unless a packet comes before.
func (h *Host) Poll(now time.Duration, emit func(p *Packet)) (next time.Duration) {
	if h.reply {
		h.reply = false
		h.emitOther(&Packet{Header: Header{Flags: ACK, From: uint16(h.rank), Last: h.last, Round: h.round, Job: h.job}}, emit)
	}
	if h.x == nil {
		return never
	}
	h.start(now)
	if h.step < 0 {
		h.sendEcho(now, emit)
		return h.sendDone(now, exponentOf(h.x.Most), emit)
	}
	if h.r.missing == 0 && h.r.readyAt == 0 {
		h.r.readyAt = now
	}
	next = h.sendRows(now, emit)
	if h.r.sent == len(h.ownBlock().rows) {
		h.sendEcho(now, emit)
	}
	if h.r.missing == 0 {
		next = min(next, h.sendDone(now, 0, emit))
	} else {
		next = min(next, h.pull(now, emit))
	}
	return min(next, h.sendACK(now, emit), h.resend(now))
}

// mostDoubled is how often the time between repeated done packets doubles: others may compute for long, and one that is
// lost then is to be repeated soon.
const mostDoubled = 4

// header returns the header of a packet of this round.
func (h *Host) header(flags uint8) Header {
	return Header{Flags: flags, Block: uint16(h.blockNumber()), Units: uint8(h.units), From: uint16(h.rank), Last: h.last,
		Round: h.round, Job: h.job}
}

func (h *Host) sendDone(now time.Duration, value uint16, emit func(p *Packet)) time.Duration {
	if now >= h.r.doneAt {
		p := &Packet{Header: h.header(Done)}
		p.Value = value
		h.emitOther(p, emit)
		h.r.doneAt = now + h.again(min(h.r.doneSent, mostDoubled))
		h.r.doneSent++
	}
	if now >= h.r.probeAt { // a switch that lost its registers does not know who is further
		h.emitOther(&Packet{Header: h.header(Done | Fetch)}, emit)
		h.r.probes++
		h.r.probeAt = now + min(h.opt.Timeout<<min(h.r.probes, 20), h.opt.MaxTimeout)
	}
	return min(h.r.doneAt, h.r.probeAt)
}

func (h *Host) emitOther(p *Packet, emit func(p *Packet)) {
	h.Count.OtherBytes += int64(p.Bytes())
	emit(p)
}

// sendRows emits answers and rows as fast as the rate allows.
func (h *Host) sendRows(now time.Duration, emit func(p *Packet)) time.Duration {
	o, size := h.ownBlock(), HeaderBytes+4*h.rowLanes()
	h.body = slices.Grow(h.body[:0], h.rowLanes())[:h.rowLanes()]
	body := h.body
	for len(h.r.answers) > 0 || h.r.sent < len(o.rows) {
		if h.opt.Gate != nil && !h.opt.Gate() {
			return never
		}
		if ok, next := h.opt.Rate.Allow(now, size); !ok {
			return next
		}
		if len(h.r.answers) > 0 {
			a := h.r.answers[0]
			h.r.answers = h.r.answers[1:]
			delete(h.r.asked, a)
			h.emitRaw(a, body, emit)
			continue
		}
		row := o.rows[h.r.sent]
		h.r.sent++
		h.r.sentAt = now
		h.emitRow(&Packet{Header: h.rowHeader(row), Body: h.fixed(row, body)}, emit)
	}
	return never
}

func (h *Host) rowHeader(row uint32) Header {
	head, b := h.header(0), h.block()
	head.Source = row
	head.Count = uint16(min(b.Ptr[row+1]-b.Ptr[row], maxNeed))
	return head
}

// emitRaw sends a row to one host; it bypasses the aggregators.
func (h *Host) emitRaw(a answer, body []int32, emit func(p *Packet)) {
	p := &Packet{Header: h.rowHeader(a.row), Body: h.fixed(a.row, body)}
	p.Flags, p.Destination, p.To = Resend, a.slot, a.to
	h.emitRow(p, emit)
}

// emitRow sends a row. The first time that it leaves in a round it is counted as such.
func (h *Host) emitRow(p *Packet, emit func(p *Packet)) {
	lo, hi := h.columns()
	if useful := int64(4 * (hi - lo)); h.r.left.has(int(p.Source)) {
		h.Count.OtherBytes += int64(p.Bytes())
		h.Count.Repeats++
		h.Count.RepeatBytes += useful
	} else {
		h.r.left.set(int(p.Source))
		h.moves++
		h.Count.Rows++
		h.Count.RowBytes += useful
		h.Count.OtherBytes += int64(p.Bytes()) - useful
	}
	emit(p)
}

// fixed is a row of this round in fixed point.
func (h *Host) fixed(row uint32, body []int32) []int32 {
	lo, hi := h.columns()
	quantise(body, h.x.Row(h.block().Rows[row], lo, hi), h.shift)
	return body
}

// bitmap is bits, in the words that packets carry.
type bitmap []int32

func newBitmap(n int) bitmap    { return make(bitmap, (n+31)/32) }
func (b bitmap) set(i int)      { b[i/32] |= 1 << (i % 32) }
func (b bitmap) has(i int) bool { return b[i/32]&(1<<(i%32)) != 0 }
func (b bitmap) words() []int32 { return b }
