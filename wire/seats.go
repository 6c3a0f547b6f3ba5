package wire

import "time"

// Workers that look for messages never sleep while they do, so to the kernel all
// processors are busy, however they are spread: it moves nobody for tens of milliseconds
// when three of four look from one processor and one from the other, and everything
// takes half as long again. So they say in the rings which processor they look from,
// and one of too many moves. It is free to be moved elsewhere afterwards.

// moveEvery is how long a worker stays at least: a move costs some tens of microseconds.
const moveEvery = int64(2 * time.Millisecond)

// takeSeat says which processor this is, and moves to another if workers crowd this one.
// REQUIRES: looking is true, by whoever calls this.
func (h *hub) takeSeat() {
	here := processor()
	if here < 0 {
		return
	}
	if here != h.seat {
		h.sit(here)
	}
	if now := h.clock(); now-h.moved > moveEvery {
		h.moved = now
		if to := betterSeat(here, h.node.rank, h.seats(), processors()); to >= 0 && moveTo(to) {
			h.sit(to)
		}
	}
}

// sit tells the peers.
func (h *hub) sit(seat int) {
	h.seat = seat
	for _, p := range h.peers {
		p.pumping.Lock()
		if p.out != nil {
			p.out.seat.Store(uint32(seat) + 1)
		}
		p.pumping.Unlock()
	}
}

// seats are those of the peers that have said it, by rank.
func (h *hub) seats() map[int]int {
	of := map[int]int{}
	for _, p := range h.peers {
		p.reading.Lock()
		if p.in != nil && p.in.seat.Load() > 0 {
			of[p.peer] = int(p.in.seat.Load()) - 1
		}
		p.reading.Unlock()
	}
	return of
}

// betterSeat is the processor of all that has the fewest workers, if it has at least two
// fewer than here; otherwise -1. Of those here only the last by rank moves, or all would.
func betterSeat(here, rank int, seats map[int]int, all []int) int {
	count := map[int]int{here: 1}
	for peer, seat := range seats {
		if seat == here && peer > rank {
			return -1
		}
		count[seat]++
	}
	best := here
	for _, seat := range all {
		if count[seat] < count[best] {
			best = seat
		}
	}
	if count[best]+2 > count[here] {
		return -1
	}
	return best
}
