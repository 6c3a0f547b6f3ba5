package innet

import (
	"fmt"
	"slices"
)

// Switch is one switch of one job: a pure function of its table, its registers and a packet.
// It does what a pipeline can do: it finds a row in its table, reads and writes a register
// array once per pass, and sends packets. A row for d aggregators of one unit takes d passes.
type Switch struct {
	table *Table

	// Registers.
	round  uint32   // that is under way
	last   uint16   // the value agreed on in the round before
	value  uint16   // the largest of done packets of this round
	done   []uint64 // a bit per port below that is done
	left   int      // ports below that are not done
	added  []uint32 // per row: the round it was added in
	state  []aggregator
	lanes  []int32 // of all aggregators
	passes passes
	begun  bool // a packet has announced the round

	below []uint64 // a bit per port below
}

// aggregator is the state of an aggregator beside its lanes.
type aggregator struct {
	round    uint32
	count    uint16
	overflow bool
}

// Took is what a packet cost: passes through the pipeline beyond the first, and whether it
// was dropped without having any effect.
type Took struct {
	Recirculated int
	Dropped      bool
}

// Emit takes a packet that leaves by a port. It is valid until the call returns.
type Emit func(port int, p *Packet)

// NewSwitch is a switch with a table, which must pass Check, and empty registers.
func NewSwitch(t *Table) *Switch {
	rows, slots := t.most()
	s := &Switch{table: t, added: make([]uint32, rows), state: make([]aggregator, slots),
		lanes: make([]int32, slots*t.Units*UnitLanes), done: make([]uint64, int(slices.Max(t.Below))/64+1)}
	s.left, s.below = len(t.Below), make([]uint64, len(s.done))
	for _, port := range t.Below {
		s.below[port/64] |= 1 << (port % 64)
	}
	return s
}

// Round is the round that is under way.
func (s *Switch) Round() uint32 { return s.round }

// Forget empties the registers: the next packet says which round it is.
func (s *Switch) Forget() { s.begun = false }

// Occupied is how many aggregators hold rows of the round that is under way. When a round
// ends it is 0 until rows of the next arrive.
func (s *Switch) Occupied() (n int) {
	for i := range s.state {
		if s.state[i].count > 0 && s.state[i].round == s.round {
			n++
		}
	}
	return n
}

// Handle takes one packet from a port, and emits what follows from it.
func (s *Switch) Handle(port int, p *Packet, emit Emit) Took {
	s.passes.next()
	if p.Job != s.table.Job || int(p.Block) >= len(s.table.Blocks) && !p.Has(Done|ACK) {
		return Took{Dropped: true}
	}
	if p.Flags&^ECN == Done|Fetch {
		s.multicast(port, p, emit)
		return Took{}
	}
	s.passes.touch(roundRegister)
	if ahead := int32(p.Round - s.round); ahead > 0 || !s.begun {
		s.begin(p.Round, p.Last)
	} else if ahead < 0 {
		return s.late(port, p, emit)
	}
	switch {
	case p.Has(Done):
		return s.barrier(port, p, emit)
	case p.Has(ACK):
		s.multicast(port, p, emit)
	case p.Has(Fetch):
		return s.forward(p, emit)
	case p.Has(Resend):
		s.release(p)
		return s.forward(p, emit)
	case p.Has(Sum) && s.table.isAbove(port):
		return s.forward(p, emit)
	default:
		return s.add(port, p, emit)
	}
	return Took{}
}

// begin starts a round. What was left in registers belongs to other rounds.
func (s *Switch) begin(round uint32, last uint16) {
	if !s.begun { // 0 in a register must be the number of no round near this one
		s.begun = true
		for i := range s.added {
			s.added[i] = round - 1
		}
		for i := range s.state {
			s.state[i].round = round - 1
		}
	}
	s.round, s.last, s.value = round, last, 0
	clear(s.done)
	s.left = len(s.table.Below)
}

// late is a packet of a round that is over. All hosts have what they needed of it; one that
// is still done with it has not received that the others are.
func (s *Switch) late(port int, p *Packet, emit Emit) Took {
	switch {
	case p.Has(Done) && s.table.isAbove(port): // for hosts below
		s.announce(p, emit)
	case p.Has(Done) && p.Round == s.round-1:
		emit(port, &Packet{Header: Header{Flags: Done, Round: p.Round, Value: s.last, Job: p.Job}})
	default:
		return Took{Dropped: true}
	}
	return Took{}
}

// barrier counts the hosts, or switches below, that are done.
func (s *Switch) barrier(port int, p *Packet, emit Emit) Took {
	if s.table.isAbove(port) {
		s.announce(p, emit)
		s.begin(s.round+1, p.Value)
		return Took{}
	}
	word, bit := port/64, uint64(1)<<(port%64)
	if word >= len(s.below) || s.below[word]&bit == 0 {
		return Took{Dropped: true}
	}
	s.passes.touch(doneRegister)
	if s.done[word]&bit == 0 {
		s.done[word] |= bit
		s.left--
	}
	if s.value = max(s.value, p.Value); s.left > 0 {
		return Took{}
	}
	all := &Packet{Header: Header{Flags: Done, Round: s.round, Value: s.value, Last: s.last, Job: p.Job}}
	if s.table.Above != NoPort {
		all.Block = p.Block
		emit(s.table.upward(p.Block, 0), all)
		return Took{}
	}
	s.announce(all, emit)
	s.begin(s.round+1, s.value)
	return Took{}
}

// announce multicasts that a round is over.
func (s *Switch) announce(p *Packet, emit Emit) {
	for _, port := range s.table.Below {
		emit(int(port), p)
	}
}

// multicast sends a packet to all ports but the one it came from; of several switches above, one
// takes it to the others below.
func (s *Switch) multicast(from int, p *Packet, emit Emit) {
	for _, port := range s.table.Below {
		if int(port) != from {
			emit(int(port), p)
		}
	}
	if s.table.Above != NoPort && !s.table.isAbove(from) {
		emit(s.table.upward(p.Block, p.Destination), p)
	}
}

// forward sends a packet towards its host, through the spine that has the slot it names: a row that
// bypasses aggregators releases them on its way.
func (s *Switch) forward(p *Packet, emit Emit) Took {
	if int(p.To) >= len(s.table.Route) {
		return Took{Dropped: true}
	}
	port := int(s.table.Route[p.To])
	if s.table.isAbove(port) {
		port = s.table.upward(p.Block, p.Destination)
	}
	emit(port, p)
	return Took{}
}

// release empties an aggregator whose host adds the rows itself. A sum of this round that
// has rows in it cannot be completed any more.
func (s *Switch) release(p *Packet) {
	slot, b := p.Destination, &s.table.Blocks[p.Block]
	if b.Index != nil {
		if int(slot) >= len(b.Index) {
			return
		}
		slot = b.Index[slot]
	}
	if int(slot) < len(b.Slots) {
		s.passes.touch(aggregators)
		s.state[slot].count = 0
		s.state[slot].round = s.round
	}
}

// add is a row for the aggregators that the table has for it.
func (s *Switch) add(port int, p *Packet, emit Emit) Took {
	b, row := &s.table.Blocks[p.Block], int(p.Source)
	if row >= len(b.Port) || int(b.Port[row]) != port || !s.fits(p) {
		return Took{Dropped: true}
	}
	s.passes.touch(rowRegister)
	if s.added[row] == s.round {
		return Took{Dropped: true} // a duplicate
	}
	s.added[row] = s.round
	into := b.Into[b.Ptr[row]:b.Ptr[row+1]]
	for i, slot := range into {
		if i > 0 {
			s.passes.next()
		}
		s.passes.touch(aggregators)
		if i+1 < len(into) {
			s.prefetch(int(into[i+1]), len(p.Body))
		}
		s.addTo(int(slot), b.Slots[slot], p, emit)
	}
	return Took{Recirculated: max(len(into)*len(p.Body)/UnitLanes-1, 0)}
}

// prefetch brings an aggregator into the cache: they lie far from each other.
func (s *Switch) prefetch(i, lanes int) {
	if units := lanes / UnitLanes; canAddUnits && units > 0 {
		prefetchUnits(&s.lanes[i*s.table.Units*UnitLanes], units)
	}
}

// fits reports whether a row is of whole units, no more than the table has. All rows of a
// round have as many; the last columns of an exchange may be fewer than a packet carries.
func (s *Switch) fits(p *Packet) bool {
	units := len(p.Body) / UnitLanes
	return len(p.Body)%UnitLanes == 0 && units <= s.table.Units && (units > 0 || p.Has(Overflow))
}

// addTo adds a row to one aggregator, and sends the sum if that was its last.
func (s *Switch) addTo(i int, slot TableSlot, p *Packet, emit Emit) {
	a, n := &s.state[i], s.table.Units*UnitLanes
	sum := s.lanes[i*n : i*n+len(p.Body)]
	first := a.round != s.round || a.count == 0
	if first {
		*a = aggregator{round: s.round}
	}
	switch {
	case p.Has(Overflow):
		a.overflow = true
	case first:
		copy(sum, p.Body)
	case !a.overflow:
		a.overflow = addLanes(sum, p.Body)
	}
	if p.Has(Sum) {
		a.count += p.Count
	} else {
		a.count++
	}
	if a.count != slot.Need {
		return
	}
	out := &Packet{Header: Header{Source: slot.Next, Destination: slot.Next, Block: p.Block, Count: a.count, Flags: Sum,
		Units: uint8(s.table.Units), To: slot.Host, Round: s.round, Last: s.last, Job: p.Job}, Body: sum}
	if a.overflow {
		out.Flags, out.Body = Sum|Overflow, nil
	}
	a.count = 0 // released
	emit(int(slot.Port), out)
}

// Register arrays.
const (
	roundRegister = iota
	doneRegister
	rowRegister
	aggregators
	registerArrays
)

// passes checks that no register array is used twice in one pass through the pipeline.
type passes struct {
	now  uint64
	used [registerArrays]uint64
}

func (p *passes) next() { p.now++ }

func (p *passes) touch(array int) {
	if p.used[array] == p.now {
		panic(fmt.Sprintf("innet: register array %d is used twice in a pass", array))
	}
	p.used[array] = p.now
}
