package udp

import "starling/innet"

// rounds tells which rounds packets of a job's hosts can be of. A host learns from the switch alone that a round is
// over, so no host is in a later one than the switch: such a packet is forged or corrupted, and a switch that went on to
// its round would drop all that its hosts send, for ever. A switch whose registers are empty, as after a restart, does
// not know its round: until it has ended one itself, it is in the latest that a host was in by its last packet.
type rounds struct {
	sw   *innet.Switch
	last map[int]uint32 // by host; nil: the switch has ended a round itself
}

func newRounds(sw *innet.Switch) *rounds { return &rounds{sw: sw, last: map[int]uint32{}} }

// possible reports whether a host can be in a round.
func (r *rounds) possible(host int, round uint32) bool {
	if r.last == nil {
		return !later(round, r.sw.Round())
	}
	r.last[host] = round
	latest := round
	for _, other := range r.last {
		if later(other, latest) {
			latest = other
		}
	}
	if later(r.sw.Round(), latest) {
		r.sw.Forget() // a packet that was forged had said so
	}
	return true
}

// handled takes note of a packet of a round that the switch was in before it.
func (r *rounds) handled(p *innet.Packet, before uint32) {
	if p.Has(innet.Done) && p.Round == before && r.sw.Round() == before+1 {
		r.last = nil
	}
}

func later(a, b uint32) bool { return int32(a-b) > 0 }
