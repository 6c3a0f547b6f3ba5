package hopgnn

import (
	"starling/rng"
	"starling/train/batch"
)

// share is what a worker computes of batches at a time step: the seed vertices, or pairs, of the model that is there.
// Samplers draw for it as for any other division of a batch.
type share struct {
	whole
	of     *hop
	merged int
	step   int        // or allSteps
	last   *itinerary // of the batch that was divided
}

// whole is the seed vertices of all workers.
type whole = batch.Seeds

// allSteps is what a worker computes of a batch in all of its steps.
const allSteps = -1

// share is what this worker computes with some steps merged, at a step.
func (h *hop) share(merged, step int) *share {
	return &share{whole: h.p.Seeds, of: h, merged: merged, step: step}
}

// steps is the number of time steps with some of them merged.
func (h *hop) steps(merged int) int { return max(1, ringOf(h.p.Site.Part.Book).servers-merged) }

// knowsSeeds reports whether the seed vertices of a batch are known before it is drawn.
func (h *hop) knowsSeeds() bool {
	switch h.p.Options.Sampler {
	case "neighbour", "pinsage", "fastgcn", "ladies":
		return h.empty == 0
	}
	return false
}

// itineraryOf is where the models go of a batch of all workers.
func (s *share) itineraryOf(all []uint32, epoch, number int) *itinerary {
	h, seed := s.of, s.of.p.Site.Opt.Seed
	key := rng.New(seed).Fold(useMerge).Fold(uint64(epoch)).Fold(uint64(number))
	shares := batch.Deal(all, h.p.Site.End.Size(), seed, epoch, number)
	return newItinerary(ringOf(h.p.Site.Part.Book), shares, h.p.OwnerOf, s.merged, h.opt.MergeOrder == "random", key)
}

// Seeds are this worker's of a batch.
func (s *share) Seeds(epoch, number int) []uint32 {
	return s.Divide(s.Whole(epoch, number), epoch, number)
}

// Divide is what this worker computes of any seed vertices of a batch.
func (s *share) Divide(all []uint32, epoch, number int) (list []uint32) {
	it, me := s.itineraryOf(all, epoch, number), s.of.p.Site.End.Rank()
	s.last = it
	if s.step != allSteps {
		return it.seeds[s.step][it.model(s.step, me)]
	}
	for j := range it.at {
		list = append(list, it.seeds[j][it.model(j, me)]...)
	}
	return list
}
