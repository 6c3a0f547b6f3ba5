package shm

import (
	"time"

	"starling/wire"
)

// Workers that poll for messages never sleep while they do, so to the kernel all
// processors are busy, however they are spread: it moves none for tens of milliseconds
// when three of four poll from one processor and one from the other, and everything
// takes half as long again. So they write into the rings which processor they poll from,
// and one of too many moves. It is free to be moved elsewhere afterwards.

// moveEvery is how long a worker stays at least: a move costs some tens of microseconds.
const moveEvery = int64(2 * time.Millisecond)

// placeThread announces this thread's processor, and moves to another if too many workers poll from this one.
// REQUIRES: the caller has set polling.
func (h *Hub) placeThread() {
	here := processor()
	if here < 0 {
		return
	}
	if here != h.cpu {
		h.announceCPU(here)
	}
	if now := wire.Monotonic(); now-h.moved > moveEvery {
		h.moved = now
		if to := lessBusyCPU(here, h.inbox.Rank(), h.peerCPUs(), processors()); to >= 0 && moveTo(to) {
			h.announceCPU(to)
		}
	}
}

// announceCPU writes into the rings which processor this worker polls from.
func (h *Hub) announceCPU(cpu int) {
	h.cpu = cpu
	for _, p := range h.peers {
		p.pumping.Lock()
		if p.out != nil {
			p.out.writerCPU.Store(uint32(cpu) + 1)
		}
		p.pumping.Unlock()
	}
}

// peerCPUs are the processors that peers have announced, by rank.
func (h *Hub) peerCPUs() map[int]int {
	of := map[int]int{}
	for _, p := range h.peers {
		p.reading.Lock()
		if p.in != nil && p.in.writerCPU.Load() > 0 {
			of[p.peer] = int(p.in.writerCPU.Load()) - 1
		}
		p.reading.Unlock()
	}
	return of
}

// lessBusyCPU is the processor of all that has the fewest workers, if it has at least two
// fewer than here; otherwise -1. Of those here only the last by rank moves, or all would.
func lessBusyCPU(here, rank int, cpus map[int]int, all []int) int {
	count := map[int]int{here: 1}
	for peer, cpu := range cpus {
		if cpu == here && peer > rank {
			return -1
		}
		count[cpu]++
	}
	best := here
	for _, cpu := range all {
		if count[cpu] < count[best] {
			best = cpu
		}
	}
	if count[best]+2 > count[here] {
		return -1
	}
	return best
}
