package hopgnn

import (
	"slices"

	"starling/partition"
	"starling/rng"
	"starling/sample"
)

// ring is the servers that models go around, each of the same number of workers. A model keeps its place among a
// server's workers.
type ring struct{ servers, each int }

// ringOf is the ring of a partition's servers; without them every worker is one.
func ringOf(book *partition.Book) ring {
	if book.Servers > 1 {
		return ring{book.Servers, book.Parts / book.Servers}
	}
	return ring{book.Parts, 1}
}

// ahead is the worker some servers after a worker's, or with a negative number before it.
func (r ring) ahead(worker, servers int) int {
	return ((worker/r.each+servers)%r.servers+r.servers)%r.servers*r.each + worker%r.each
}

// itinerary is where the models of an iteration of HopGNN go, and what each computes there:
// at time step j model d is at[j] servers after its own, of N. Every model has a batch of its
// own; seeds[j][d] are its seed vertices that are computed at step j.
type itinerary struct {
	ring  ring
	at    []int        // of each step, how far models are from where they began
	seeds [][][]uint32 // by step and model
}

// newItinerary sends every seed vertex of every model's batch to the server that owns it, and
// then merges some time steps into the others: that with the fewest seed vertices of all
// models, or, with random, any (figure 18 of the paper).
func newItinerary(r ring, batches [][]uint32, owner func(uint32) int, merged int, random bool, key rng.Key) *itinerary {
	it := &itinerary{ring: r}
	for t := range r.servers {
		it.at = append(it.at, t)
		it.seeds = append(it.seeds, make([][]uint32, len(batches)))
	}
	for d, batch := range batches {
		for _, v := range batch {
			t := (owner(v)/r.each - d/r.each + r.servers) % r.servers
			it.seeds[t][d] = append(it.seeds[t][d], v)
		}
	}
	for i := range min(merged, r.servers-1) {
		at := it.fewest()
		if random {
			at = key.IntN(uint64(i), len(it.at))
		}
		it.merge(at)
	}
	return it
}

// fewest is the step with the fewest seed vertices, the first of equals.
func (it *itinerary) fewest() (at int) {
	least := -1
	for j, models := range it.seeds {
		n := 0
		for _, s := range models {
			n += len(s)
		}
		if least < 0 || n < least {
			at, least = j, n
		}
	}
	return at
}

// merge removes a step: its seed vertices go to the other steps of the same model, to those
// with the fewest first, so that a model takes about as long in each.
func (it *itinerary) merge(at int) {
	gone := it.seeds[at]
	it.at, it.seeds = slices.Delete(it.at, at, at+1), slices.Delete(it.seeds, at, at+1)
	for d, seeds := range gone {
		for _, v := range seeds {
			to := 0
			for j := range it.seeds {
				if len(it.seeds[j][d]) < len(it.seeds[to][d]) {
					to = j
				}
			}
			it.seeds[to][d] = append(it.seeds[to][d], v)
		}
	}
}

// model is the one that a worker has at a step.
func (it *itinerary) model(step, worker int) int { return it.ring.ahead(worker, -it.at[step]) }

// worker is where a model is at a step.
func (it *itinerary) worker(step, model int) int { return it.ring.ahead(model, it.at[step]) }

var useMerge = sample.Use("merged time steps")
