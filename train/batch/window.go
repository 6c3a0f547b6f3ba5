package batch

import (
	"context"
	"slices"

	"starling/graph"
	"starling/sample"
	"starling/store"
	"starling/train"
)

// Batches that are drawn before their rows are fetched: a window of them is known when those of the first are asked for
// (store.Lookahead). Where rows are not fetched ahead, a batch asks for its own when it is drawn.
const (
	windowBytes = 256 << 20 // that blocks of a window take, where its length is not given
	mostWindow  = 64        // batches of it, where its length is not given
	leastWindow = 2
)

// window is a pipeline's batches that are drawn and have no rows yet.
type window struct {
	options store.LookaheadOptions
	of      *store.Lookahead // since training began
	first   int64            // batch of the run that it begins with
}

// lookAhead has the rows of batches of seeds fetched ahead, and estimates what that takes from the first batches of an
// epoch, which it draws.
func (p *Pipeline) lookAhead(o *CacheOptions, seeds Seeds) error {
	if f := p.Site.Part.Features; p.Store.AllInPlace() || p.Site.Part.Book.Schema == nil && (f.Cols == 0 ||
		f.Kind() == graph.Sparse) {
		return nil // nothing is fetched, or no cache could keep it
	}
	var lists [][]uint32
	most := int64(1)
	first := upTo(min(CountedBatches, p.all))
	err := p.probe(seeds, 0, first, func(_ Sampler, b *sample.Batch, _ *store.Known, _ bool) {
		lists = append(lists, slices.Compact(slices.Sorted(slices.Values(b.Vertices))))
		most = max(most, drawnBytes(b))
	})
	if err != nil {
		return err
	}
	a := &window{options: store.LookaheadOptions{Bytes: o.bytes(), Window: o.Window, Group: 1}}
	if o.Window == 0 {
		a.options.Window = int(max(leastWindow, min(windowBytes/most, mostWindow)))
	}
	p.ahead = a
	p.Store.ExpectOf(a.options, lists)
	return nil
}

// drawnBytes is about what a batch's buffer takes without rows: ids and degrees, edges both ways.
func drawnBytes(b *sample.Batch) (n int64) {
	n = 24 * int64(len(b.Vertices))
	for i := range b.Blocks {
		n += 16*int64(b.Blocks[i].Dst) + 16*int64(len(b.Blocks[i].Indices))
	}
	return n
}

// begin begins to look ahead from a state of a run on, and returns how many more batches are drawn at a time.
func (a *window) begin(s *store.Store, h *Host, batches int, at train.State, last int) int {
	if a == nil {
		return 0
	}
	h.returned = func(b *Batch) { a.of.Return(b.Pulled.lent(b.Temporal)...) }
	a.first = int64(at.Epoch*batches + at.Batch)
	a.options.Total = max(int64(last)*int64(batches)-a.first, 0)
	a.of = s.NewLookahead(a.options)
	return a.drawn()
}

// drawn is the number of batches that are drawn and have no rows yet.
func (a *window) drawn() int {
	if a == nil {
		return 0
	}
	return int(min(int64(a.options.Window*a.options.Group), a.options.Total))
}

// unfilled is the number of buffers without rows that a run of some batches has more than this one.
func (a *window) unfilled(batches int) int64 {
	if a == nil {
		return 0
	}
	return min(int64(a.options.Window*a.options.Group), int64(batches)) - int64(a.drawn())
}

// lent are the rows that a look-ahead pulled, by type. They are used again for the batch that is next.
func (p *Pulled) lent(temporal bool) []*graph.Features {
	switch {
	case temporal:
		return []*graph.Features{&p.once}
	case p.Types == nil:
		return []*graph.Features{&p.Features}
	}
	list := make([]*graph.Features, len(p.Types))
	for t := range list {
		list[t] = &p.Types[t]
	}
	return list
}

// batch begins to draw a batch of a run, whose rows a puller brings, and returns what ends that.
func (a *window) batch(ctx context.Context, from Puller, number int) (end func(error) error) {
	if a == nil {
		return func(err error) error { return err }
	}
	p := from.(*store.AheadPuller)
	p.Begin(int64(number) - a.first)
	return func(err error) error { return p.End(ctx, err) }
}

// newPuller is a puller of batches.
func (p *Pipeline) newPuller() Puller {
	if p.ahead == nil {
		return p.Store.Puller()
	}
	return p.ahead.of.Puller()
}

// sharedSamplers are a few samplers that many drawers use in turn: of the batches of a window most wait.
type sharedSamplers struct{ free chan Sampler }

// shareSamplers makes n samplers, and returns what gives a drawer its sampler.
func (p *Pipeline) shareSamplers(n int) func() Sampler {
	if p.ahead == nil {
		return p.Sampler
	}
	s := &sharedSamplers{make(chan Sampler, n)}
	for range n {
		s.free <- p.Sampler()
	}
	return func() Sampler { return s }
}

func (s *sharedSamplers) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	select {
	case m := <-s.free:
		defer func() { s.free <- m }()
		return m.Fill(ctx, b, known, epoch, number)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Drawn and Traffic are of a sampler by itself.
func (s *sharedSamplers) Drawn() []store.Traffic                  { return nil }
func (s *sharedSamplers) Traffic(_ *sample.Batch) []store.Traffic { return nil }
