package site

import (
	"fmt"

	"starling/collective"
	"starling/cost"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/train"
	"starling/wire"
)

// Costs says what an epoch's parts cost the workers of a site.
type Costs struct {
	l     *exchange.Setup
	input func(*graph.Features) nn.Input
	typed func(runs []graph.Run, f []*graph.Features) nn.Input
}

// NewCosts agrees with peers on what was measured.
func NewCosts(s *train.Site, l *exchange.Setup) *Costs {
	return &Costs{l, func(f *graph.Features) nn.Input { return train.Input(s.Dev, f, s.Opt) },
		func(runs []graph.Run, f []*graph.Features) nn.Input {
			return train.TypedInput(s.Dev, runs, f, s.Part.Book.Schema, s.Opt)
		}}
}

// ToChoose are what parts of an epoch cost and the memory that a worker may fill: as given, or as
// measured here, now or when the run began. They are the same on all workers, and decide what a
// strategy chooses: the run is told them as settings, so that another one can be given them.
func (c *Costs) ToChoose(o cost.RatesOption, b exchange.BudgetOption) (e *cost.Epoch, budget int64, err error) {
	w := c.l.W
	m := nn.New(w.Dev, w.Model, w.Seed)
	defer m.Free(w.Dev)
	v, err := o.Given(m.Convs())
	if v == nil && err == nil {
		v, err = w.Figures("rates", 2*m.Convs()+2, func() ([]float64, error) { return c.measure(m) })
	}
	if err != nil {
		return nil, 0, err
	}
	if budget, err = c.budget(b); err != nil {
		return nil, 0, err
	}
	r := cost.FromNumbers(v)
	if o.Rates == "" || b.MemoryBudget == "" {
		w.Chosen(map[string]string{"rates": r.String(), "memory_budget": fmt.Sprintf("%dMiB", budget>>20)})
	}
	return cost.NewEpoch(r, c.counts(m)), budget, nil
}

func (c *Costs) measure(m *nn.Model) ([]float64, error) {
	w := c.l.W
	step := &cost.Step{Dev: w.Dev, Model: m, In: w.Part.In, Features: w.Part.Features,
		Input: c.input, Rows: w.Rows, CacheFirst: w.CacheFirst, Seed: w.Seed}
	if s := w.Part.Book.Schema; s != nil {
		step.Typed = &cost.TypedStep{Schema: s, Core: w.Part.CoreTypes(), All: w.Part.Types,
			Features: w.Part.TypeFeatures, Input: c.typed}
	}
	r, err := cost.Measure(c.l, step)
	return r.Numbers(), err
}

// budget is the memory that every worker may fill with replicas: that of the one with least.
func (c *Costs) budget(b exchange.BudgetOption) (int64, error) {
	mine := c.l.W.Budget(b)
	if b.MemoryBudget != "" {
		return mine, nil
	}
	all, err := c.l.Share(float64(mine))
	for _, v := range all {
		mine = min(mine, int64(v[0]))
	}
	return mine, err
}

// Unmeasured knows bytes, and takes no time.
func (c *Costs) Unmeasured() *cost.Epoch {
	m := nn.New(c.l.W.Dev, c.l.W.Model, c.l.W.Seed)
	defer m.Free(c.l.W.Dev)
	return cost.NewEpoch(cost.Rates{}, c.counts(m))
}

func (c *Costs) counts(m *nn.Model) cost.Counts {
	w, f := c.l.W, c.l.W.Part.Features
	number := w.Dev.RowType(w.Rows).Size()
	out := cost.Counts{Layers: m.Traffic(w.SparseFeatures(), w.FirstSum(), true),
		RowBytes: exchange.NewRows(w).EpochBytes, Reduced: wire.Bytes{},
		In: w.Model.In, Hidden: w.Model.Hidden, Number: number}
	switch {
	case w.Part.Book.Schema != nil:
		out.In, out.Feature = w.Model.Hidden, meanWidth(w.Part.Book.Schema)*int64(number)
	case f.Indptr != nil && f.Rows > 0:
		out.Feature = 16 * f.Indptr[f.Rows] / int64(f.Rows) // index and value, in both orientations
	default:
		out.Feature = int64(f.Cols * number)
	}
	for q, t := range collective.AllReduceSent(collective.Among(w.Part.Book.Servers), w.End.Rank(), w.End.Size(),
		m.Size(), w.Dev.Type().Size()) {
		out.Reduced.Add(w.Class(wire.Parameter, -1, q), t.Bytes)
	}
	return out
}

// meanWidth is the mean width of the features of vertices that have any.
func meanWidth(s *graph.Schema) int64 {
	var numbers, vertices int64
	for i := range s.Types {
		if t := &s.Types[i]; t.Features != nil {
			numbers, vertices = numbers+t.Count*int64(t.Features.Dim), vertices+t.Count
		}
	}
	return numbers / max(vertices, 1)
}
