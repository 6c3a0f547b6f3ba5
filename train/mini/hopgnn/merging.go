package hopgnn

import (
	"fmt"
	"strconv"

	"starling/event"
	"starling/nn"
	"starling/store"
)

// Merging is decided before the first epoch, by bytes: --merge auto merges one time step more as long as the workers
// together then send less for a few batches, rows and models. Bytes are a function of the seed and the partition, as
// batches are, so that two runs of a seed decide alike. The paper's rule is --merge time (timed.go).

// mergeBatches are drawn to decide.
const mergeBatches = 2

// decide is the number of time steps that are merged.
func (h *hop) decide() (int, error) {
	most := ringOf(h.p.Site.Part.Book).servers - 1
	if n, err := strconv.Atoi(h.opt.Merge); err == nil {
		return min(n, most), nil
	}
	kept := h.resumed()
	switch {
	case h.opt.Merge == byTime && len(kept) == 3:
		h.trial = newTrial(most, h.p.Site.Opt.Resume.Epoch, min(int(kept[0]), most), kept[1], kept[2] > 0)
		return 0, nil
	case h.opt.Merge == byTime && h.p.Site.MemoryOnly:
		return 0, nil
	case h.opt.Merge == byTime:
		h.trial = newTrial(most, h.firstEpoch(), 0, 0, false)
		return 0, nil
	case len(kept) > 0:
		return min(int(kept[0]), most), nil
	}
	merged, err := h.fewestBytes(most)
	if err == nil && h.p.Site.End.Rank() == 0 {
		h.p.Site.Events.On(event.Note{Minor: true, Settings: map[string]string{"merge": strconv.Itoa(merged)},
			Text: fmt.Sprintf("hopgnn merges %d of %d time steps, with which workers send the fewest bytes; "+
				"--merge %d does the same", merged, most+1, merged)})
	}
	return merged, err
}

// fewestBytes is the first number of merged steps, up to most, of which one more would send no less.
func (h *hop) fewestBytes(most int) (merged int, err error) {
	if most == 0 {
		return 0, nil
	}
	best, err := h.bytes(0)
	for ; err == nil && merged < most; merged++ {
		var next float64
		if next, err = h.bytes(merged + 1); err != nil || next >= best {
			break
		}
		best = next
	}
	return merged, err
}

// bytes is what all workers send for a few batches, some steps of which are merged.
func (h *hop) bytes(merged int) (sum float64, err error) {
	s, numbers := h.p.Site, []int{}
	for number := range min(mergeBatches, h.p.AllSteps()) {
		numbers = append(numbers, number)
	}
	model := nn.New(s.Dev, s.Opt.Model, s.Opt.Seed)
	defer model.Free(s.Dev)
	mine := float64(len(numbers) * (ringOf(s.Part.Book).servers - 1 - merged) * modelBytes(model))
	if err := h.traffic(merged, 0, numbers, func(batch []store.Traffic, _ bool) {
		for _, t := range batch {
			mine += float64(t.Requests + t.Edges + t.Rows)
		}
	}); err != nil {
		return 0, err
	}
	all, err := h.p.Setup.Share(mine)
	for _, v := range all {
		sum += v[0]
	}
	return sum, err
}

const keptMerged = "merged time steps"

// kept is what a run that is resumed merges by, be it on other links.
func (h *hop) kept() []nn.Tensor {
	data := []float64{float64(h.merged)}
	if t := h.trial; t != nil {
		settled := 0.0
		if t.settled() {
			settled = 1
		}
		data = []float64{float64(h.mergedIn(h.training.Loop.State.Epoch)), t.before, settled}
	}
	return []nn.Tensor{{Name: keptMerged, Shape: []int{len(data)}, F64: true, Data: data}}
}

// resumed is what the run merged before it was resumed; nil: it was not, or by another number of options.
func (h *hop) resumed() []float64 {
	if h.p.Site.Opt.Resume == nil {
		return nil
	}
	for _, t := range h.p.Site.Opt.Resume.Caches {
		if data := t.Numbers(); t.Name == keptMerged && len(data) > 0 && data[0] >= 0 {
			return data
		}
	}
	return nil
}

// firstEpoch is where the run begins.
func (h *hop) firstEpoch() int {
	if r := h.p.Site.Opt.Resume; r != nil {
		return r.Epoch
	}
	return 0
}
