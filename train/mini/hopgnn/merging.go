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
// batches are, so that two runs of a seed decide alike. (The paper merges one more per epoch as long as epochs get
// shorter, and a clock never says the same twice.)

// mergeBatches are drawn to decide.
const mergeBatches = 2

// decide is the number of time steps that are merged.
func (h *hop) decide() (int, error) {
	most := ringOf(h.p.Site.Part.Book).servers - 1
	if n, err := strconv.Atoi(h.opt.Merge); err == nil {
		return min(n, most), nil
	}
	if n, ok := h.resumed(); ok {
		return min(n, most), nil
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
	return []nn.Tensor{{Name: keptMerged, Shape: []int{1}, F64: true, Data: []float64{float64(h.merged)}}}
}

// resumed is what the run merged before it was resumed.
func (h *hop) resumed() (merged int, ok bool) {
	if h.p.Site.Opt.Resume == nil {
		return 0, false
	}
	for _, t := range h.p.Site.Opt.Resume.Caches {
		if t.Name == keptMerged && len(t.Data) == 1 && t.Data[0] >= 0 {
			return int(t.Data[0]), true
		}
	}
	return 0, false
}
