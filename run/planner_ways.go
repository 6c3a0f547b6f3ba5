package run

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"starling/cost"
	"starling/event"
	"starling/spec"
	"starling/tensor/cuda"
	"starling/wire/paths"
)

// way is how the runs of a plan compute and send, whatever their strategy.
type way struct {
	flags    string // of training, beside those that were given
	set      func(s *spec.Spec)
	computes *cost.Compute // at these rates; nil: at those of the plan
	memory   int64         // of a worker; 0: that of the plan
	links    int           // that a server has to each other
}

// ways are those that this host has the cards and networks for, the given one first. What is lacking is told with its
// reason. Only a plan that a user reads has several: a run that chooses by itself keeps the devices and links that it
// was given.
func (p *planner) ways(out *Choices) ([]way, error) {
	given := way{set: func(*spec.Spec) {}, links: 1}
	if p.Cluster.Paths != "" {
		f, err := planOf(p.Cluster.Paths)
		if err != nil {
			return nil, err
		}
		given.links = socketPaths(f.File)
	}
	if strings.HasPrefix(p.Machine.Device, "cuda") {
		err := p.onCard(&given)
		switch {
		case errors.Is(err, cuda.ErrUnavailable): // the workers' hosts may have some
			out.drop("rates of --device "+p.Machine.Device, p.method,
				"those of processors take their place: "+reason(err))
		case err != nil:
			return nil, err
		}
	}
	list := []way{given}
	if !p.Ways {
		return list, nil
	}
	if p.Cluster.SendOrder == spec.Default().Cluster.SendOrder {
		out.drop("--send-order fifo, hermod", p.method, "a plan has the bytes that links carry and not their order, and "+
			"would predict the same epoch; docs/simulator.md has what orders change")
	}
	if p.Machine.Device == "cpu" {
		card := given
		card.flags, card.set = "--device cuda", func(s *spec.Spec) { s.Machine.Device = "cuda" }
		if err := p.onCard(&card); err != nil {
			out.drop(card.flags, p.method, reason(err))
		} else {
			list = append(list, card)
		}
	}
	if p.Cluster.Paths == "" {
		list = append(list, p.onPaths(list, out)...)
	}
	return list, nil
}

// onPaths are ways with every network that this host is in.
func (p *planner) onPaths(list []way, out *Choices) (more []way) {
	const flags = "--paths auto"
	f, err := paths.Auto()
	switch {
	case p.Cluster.Servers < 2:
		out.drop(flags, p.method, "all workers are on one server, and there are no links to choose from")
		return nil
	case err != nil:
		out.drop(flags, p.method, reason(err))
		return nil
	case socketPaths(f) < 2:
		out.drop(flags, p.method, "this host is in one network, and two are the least; --paths FILE names those of other hosts")
		return nil
	}
	for _, w := range list {
		before := w.set
		w.flags, w.links = strings.TrimSpace(w.flags+" "+flags), socketPaths(f)
		w.set = func(s *spec.Spec) { before(s); s.Cluster.Paths = "auto" }
		more = append(more, w)
	}
	return more
}

// socketPaths is how many paths carry sockets.
func socketPaths(f *paths.File) (n int) {
	for _, one := range f.Paths {
		if one.Address != "" {
			n++
		}
	}
	return n
}

// onCard gives a way the rates and the memory of this host's cards, which the workers of a machine share.
func (p *planner) onCard(w *way) error {
	one := p.Spec
	one.Machine.Device = "cuda"
	if err := one.Validate(); err != nil {
		return err
	}
	cards, err := cuda.Cards()
	if err != nil {
		return err
	}
	dev, err := openCard(&one, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	book, sharing := p.parts.book, (p.Sharing+len(cards)-1)/len(cards)
	c := cost.MeasureCompute(dev, cost.Shape{Rows: int(book.Nodes) / p.Cluster.Workers,
		Degree: int(book.Edges / max(book.Nodes, 1)), In: one.Model.Hidden, Hidden: one.Model.Hidden,
		Type: one.Machine.RowType()}, time.Now).Shared(sharing)
	w.computes, w.memory = &c, cards[0].Free/int64(sharing)
	return nil
}

// known are the rates of a way, and how much slower steps are than they say: that was measured on processors only.
func (w *way) known(k *cost.Known, slowness float64) (*cost.Known, float64) {
	out := *k
	out.Between.Rate *= float64(w.links)
	if w.computes == nil {
		return &out, slowness
	}
	out.Compute = *w.computes
	return &out, 1
}

// fits says why a way has too little memory for a prediction; "": it has not.
func (p *planner) fits(w *way, predicted *cost.Prediction) string {
	have, of := p.memory, "per worker"
	if w.memory > 0 {
		have, of = w.memory, "of a card per worker"
	}
	if have > 0 && predicted.Memory > have {
		return fmt.Sprintf("needs %s %s, and there are %s", event.Bytes(predicted.Memory), of, event.Bytes(have))
	}
	return ""
}

// goes refuses a way that a candidate's strategy is not for.
func (w *way) goes(s spec.Spec) (spec.Spec, error) {
	w.set(&s)
	if w.flags == "" {
		return s, nil
	}
	return s, s.Validate()
}
