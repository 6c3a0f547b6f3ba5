package hopgnn

import (
	"slices"

	"starling/rng"
	"starling/sample"
)

// itinerary is where the models of an iteration of HopGNN go, and what each computes there:
// at time step j model d is on server (d + at[j]) mod N. Every model has a batch of its own;
// seeds[j][d] are its seed vertices that are computed at step j.
type itinerary struct {
	at    []int        // of each step, how far models are from where they began
	seeds [][][]uint32 // by step and model
}

// newItinerary sends every seed vertex of every model's batch to the server that owns it, and
// then merges some time steps into the others: that with the fewest seed vertices of all
// models, or, with random, any (figure 18 of the paper).
func newItinerary(batches [][]uint32, owner func(uint32) int, merged int, random bool, key rng.Key) *itinerary {
	n := len(batches)
	it := &itinerary{}
	for t := range n {
		it.at = append(it.at, t)
		it.seeds = append(it.seeds, make([][]uint32, n))
	}
	for d, batch := range batches {
		for _, v := range batch {
			t := (owner(v) - d + n) % n
			it.seeds[t][d] = append(it.seeds[t][d], v)
		}
	}
	for i := range min(merged, n-1) {
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

// model is the one that is on a server at a step.
func (it *itinerary) model(step, server, n int) int { return ((server-it.at[step])%n + n) % n }

// server is where a model is at a step.
func (it *itinerary) server(step, model, n int) int { return (model + it.at[step]) % n }

var useMerge = sample.Use("merged time steps")
