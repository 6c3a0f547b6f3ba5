package plan

import (
	"cmp"
	"fmt"

	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/train"
)

// leastBatch is the smallest batch that is tried.
const leastBatch = 64

// BatchIfTooLarge turns a run of the full batch that does not fit into one of mini-batches, where its
// strategy has one that takes over and the user wants that: of the largest batches that fit.
func (c *Run) BatchIfTooLarge(events event.Listener) error {
	s := c.Spec
	choice, err := s.Choice()
	strategy, wanted := train.TakingOver(choice)
	if err != nil || !wanted {
		return err
	}
	memory, _ := train.OptionOf[exchange.BudgetOption](choice)
	budget := memory.Bytes()
	if setup.RemoteWorkers(s) {
		return spec.Mistake("--batch", "auto with workers on other hosts, whose memory is not known here", "full",
			"or give the batches yourself: --mode mini --strategy "+strategy)
	}
	full, err := c.planOf(*s, events)
	if err != nil || fits(full, budget) {
		return err
	}
	var need *Plan
	for size := int(c.Parts.Book.Train) / 2; size >= leastBatch; size /= 2 {
		batched := s.ForStrategy(strategy)
		batched.Mode, batched.Batches.Size = string(train.MiniBatch), size
		if err := c.checkBatched(batched); err != nil {
			return err
		}
		if need, err = c.planOf(batched, events); err != nil {
			return err
		}
		if fits(need, budget) {
			*s = batched
			events.On(event.Note{Text: fmt.Sprintf("the full batch needs %s per worker, which does not fit; training on "+
				"cooperative batches instead, which need %s: --mode mini --strategy %s --batch-size %d",
				event.Bytes(full.largest()), event.Bytes(need.largest()), strategy, size)})
			return nil
		}
	}
	if need == nil { // too few training vertices to divide
		need = full
	}
	return &graph.InputError{Field: "--batch", Found: fmt.Sprintf("auto, with a full batch that needs %s per worker "+
		"and batches that need %s", event.Bytes(full.largest()), event.Bytes(need.largest())),
		Want: fmt.Sprintf("at most %s", event.Bytes(cmp.Or(budget, tensor.MemoryFree()))),
		Fix:  "use more workers, a larger --memory-budget, fewer --layers or a smaller --hidden"}
}

// checkBatched refuses batches that would not go together with what the run was given for the full batch.
func (c *Run) checkBatched(s spec.Spec) error {
	err := s.Validate()
	if err == nil {
		err = c.Parts.Suits(&s)
	}
	if err == nil {
		_, err = setup.Options(&s, &c.Parts.Meta)
	}
	if err == nil {
		return nil
	}
	return &graph.InputError{Field: "--batch", Found: "auto, with a full batch that does not fit and batches that do not go " +
		"together with the other settings: " + err.Error(), Want: "settings that --strategy " + s.Strategy + " has too",
		Fix: "change them, or use --batch full with more workers"}
}

// planOf is the plan of the run with another spec.
func (c *Run) planOf(s spec.Spec, events event.Listener) (*Plan, error) {
	s.ForData(&c.Parts.Meta, simd.Best().String())
	other := &Run{Spec: &s, Parts: c.Parts}
	return other.Plan(events)
}

// fits reports whether workers fit a budget each (0: none), and all of them what is free.
func fits(p *Plan, budget int64) bool {
	free := tensor.MemoryFree()
	return (budget == 0 || p.largest() <= budget) && (free == 0 || p.Needed() <= free)
}
