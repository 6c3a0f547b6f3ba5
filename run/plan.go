package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/train"
)

// Plan is what a run will need, said before it starts.
type Plan struct {
	Parameters int
	// Matrices is the memory of parameters, activations, gradients, and rows of other
	// workers.
	Matrices int64
	// Graph is the memory of further copies of the graph and the features that the
	// model and the strategy need: with self-loops, transposed, of others' vertices.
	Graph int64
	// States is what keeping the state of the run takes: weights, and rows where the
	// strategy needs them from one epoch to the next.
	States int64
	// Early is for rows that come before they are asked for.
	Early int64
	// Processes is what those of the run take whatever they train.
	Processes int64
	// Mapped is the size of the dataset's files in use. The kernel may drop and reread
	// their pages, so they need not fit.
	Mapped int64
	// Peak is the most of Matrices in use at once, of the worker with most.
	Peak int64
	// CacheFirst is whether the first layer's sums are kept.
	CacheFirst bool

	// Of several workers: the above is of all together, Each the memory of each of them.
	// What all of them send, once, in an epoch, and to measure.
	Workers                          int
	Each                             []int64
	SentOnce, SentEpoch, SentMeasure int64
	AtMost                           bool // or less: it depends on the numbers computed
	Unplanned                        bool // what is sent is known only when the workers have met
	AtLeast                          bool // and so is the memory for copies of others' vertices, or it is far too much
	// Copies is about how much more a worker may take for those copies, 0: unknown.
	Copies int64
	// Rows between servers in a layer, and as many if each goes to a server once.
	Between, Once int64
}

// Needed is the memory that must fit.
func (p *Plan) Needed() int64 { return p.Matrices + p.Graph + p.Early + p.States + p.Processes }

// String is the plan as comment lines of a starling.yaml.
func (p *Plan) String() string {
	free := "unknown"
	if n := tensor.MemoryFree(); n > 0 {
		free = event.Bytes(n)
	}
	if p.Workers > 0 {
		text := fmt.Sprintf("# plan:\n#   workers %d, parameters %s\n#   memory %s; available %s\n#   the largest worker %s\n#   mapped files %s\n#   bytes sent %s\n",
			p.Workers, event.Count(int64(p.Parameters)), p.memory(), free, event.Bytes(p.largest()), event.Bytes(p.Mapped), p.sends())
		if hint := train.RelayHint(p.Between, p.Once); hint != "" {
			text += "#   " + hint + "\n"
		}
		return text
	}
	cache := map[bool]string{true: "kept", false: "not kept"}[p.CacheFirst]
	return fmt.Sprintf("# plan:\n#   parameters %s\n#   memory %s; available %s\n#   mapped files %s\n#   first layer's sums %s\n#   bytes sent 0\n",
		event.Count(int64(p.Parameters)), p.memory(), free, event.Bytes(p.Mapped), cache)
}

// largest is the memory of the worker with most.
func (p *Plan) largest() (most int64) {
	for _, m := range p.Each {
		most = max(most, m)
	}
	return most
}

// memory is what must fit, and what it is for.
func (p *Plan) memory() string {
	text := fmt.Sprintf("%s: matrices %s, graph %s", event.Bytes(p.Needed()), event.Bytes(p.Matrices), event.Bytes(p.Graph))
	if p.Early > 0 {
		text += ", rows that come early " + event.Bytes(p.Early)
	}
	text += fmt.Sprintf(", states kept %s, processes %s", event.Bytes(p.States), event.Bytes(p.Processes))
	if p.AtLeast {
		text = "at least " + text
	}
	if p.Copies > 0 {
		text += fmt.Sprintf(", and for copies up to about %s a worker", event.Bytes(p.Copies))
	}
	return text
}

// sends is what the workers will send, as far as is known.
func (p *Plan) sends() string {
	if p.Unplanned {
		return "are planned when the workers have met"
	}
	text := fmt.Sprintf("once %s, an epoch %s, a measurement %s", event.Bytes(p.SentOnce), event.Bytes(p.SentEpoch), event.Bytes(p.SentMeasure))
	if p.AtMost {
		text += ", or less"
	}
	return text
}

// plan rehearses s.
func plan(s *Spec, data *graph.Dataset) (*Plan, error) {
	p := &Plan{CacheFirst: s.CacheFirst == "on", Mapped: mapped(data), Processes: processBytes}
	n, err := s.rehearse(func(dev *dry, opt train.Options, events event.Listener) (*train.Rehearsed, error) {
		return s.rehearseOn(dev, data, opt, events)
	}, &data.Meta)
	if large := tooLarge(0); errors.As(err, &large) {
		p.Matrices, p.AtLeast = int64(large), true
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.Parameters, p.Matrices, p.Peak = n.Parameters, n.matrices, n.peak
	p.States = n.weights()
	p.Graph = n.graph(s.Mode == "mini") + n.Ranking + s.scaledBytes(data.Features)
	debug.FreeOSMemory() // the run needs it
	return p, nil
}

// rehearseOn rehearses one worker in the mode that s says.
func (s *Spec) rehearseOn(dev *dry, data *graph.Dataset, opt train.Options, events event.Listener) (*train.Rehearsed, error) {
	ctx := context.Background()
	switch {
	case s.ofPairs():
		few := *s
		few.RankNegatives = 1
		l, err := few.pairs(ctx, data)
		if err != nil {
			return nil, err
		}
		return train.RehearseLink(ctx, dev, data, opt, *l, s.RankNegatives, events)
	case s.Mode == "full":
		return train.RehearseFull(ctx, dev, data, opt, events)
	}
	mini, err := s.mini()
	if err != nil {
		return nil, err
	}
	mini.Weighted = mini.Weighted && data.Graph.Weights != nil // else refused later
	return train.RehearseMini(ctx, dev, data, opt, mini, events)
}

// scaledBytes is what --row-normalize takes.
func (s *Spec) scaledBytes(f *graph.Features) int64 {
	if !s.RowNormalize {
		return 0
	}
	return 4*int64(len(f.Values)) + 4*int64(len(f.F32)) + 2*int64(len(f.BF16))
}

// mapped is the size of the arrays that training reads.
func mapped(d *graph.Dataset) (n int64) {
	f := d.Features
	n = 8*int64(len(d.Graph.Indptr)) + 4*int64(len(d.Graph.Indices)) + 4*int64(len(d.Graph.Weights))
	if l := d.Labels; l != nil {
		n += 4*int64(len(l.Class)) + int64(len(l.Multi)) + 4*int64(len(l.Values))
	}
	return n + 4*int64(len(f.F32)) + 2*int64(len(f.BF16)) + 8*int64(len(f.Indptr)) + 4*int64(len(f.Indices)) + 4*int64(len(f.Values))
}

// resolve settles what auto means for this dataset on this machine. It looks at
// the machine's memory, not at what is free now, so that the same run gives the
// same numbers tomorrow.
func (s *Spec) resolve(data *graph.Meta, level string) {
	if s.SIMD == "auto" && s.DType != "f64" { // which uses none
		s.SIMD = level
	}
	if s.CacheFirst != "auto" {
		return
	}
	s.CacheFirst = "off"
	f := data.Features
	more := data.Nodes * int64(f.Dim) * int64(s.rows().Size())
	if total := tensor.MemoryTotal(); f.Kind != graph.Sparse && (total == 0 || more < total/4) {
		s.CacheFirst = "on"
	}
}

// fits refuses a run that needs more than the free memory (0: unknown), and says
// what would fit.
func (s *Spec) fits(p *Plan, data *graph.Dataset, free int64) error {
	if !s.MemoryCheck || free == 0 || p.Needed() <= free {
		return nil
	}
	err := &graph.InputError{Field: "memory", Found: "a run that needs " + p.memory(),
		Want: fmt.Sprintf("at most the %s available", event.Bytes(free)), Fix: "nothing smaller of this model fits: use a machine with more memory (or try anyway with --memory-check=false)"}
	var fitting []string
	for _, other := range s.smaller() {
		if len(fitting) == 3 {
			break
		}
		if q, e := plan(&other.spec, data); e == nil && q.Needed() <= free {
			fitting = append(fitting, fmt.Sprintf("%s (%s)", other.flags, event.Bytes(q.Needed())))
		}
	}
	if len(fitting) > 0 {
		err.Fix = "these would fit: " + strings.Join(fitting, ", ") + "; --memory-check=false tries anyway"
	}
	return err
}

type variant struct {
	flags string
	spec  Spec
}

// smaller lists ways to need less memory, least painful first.
func (s *Spec) smaller() (list []variant) {
	now, flags := *s, ""
	step := func(flag string, change func(*Spec)) {
		change(&now)
		flags = strings.TrimSpace(flags + " " + flag)
		list = append(list, variant{flags, now})
	}
	if now.CacheFirst == "on" {
		step("--cache-first off", func(s *Spec) { s.CacheFirst = "off" })
	}
	if now.DType == "f32" || now.DType == "f64" {
		step("--dtype bf16", func(s *Spec) { s.DType = "bf16" })
	}
	base := flags
	for h := s.Hidden / 2; h >= 16 && (!nn.Attends(s.Model) || h%s.Heads == 0); h /= 2 {
		flags = base
		step(fmt.Sprintf("--hidden %d", h), func(s *Spec) { s.Hidden = h })
	}
	return list
}
