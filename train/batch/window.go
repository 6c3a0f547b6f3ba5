package batch

import (
	"context"
	"math"
	"slices"

	"starling/graph"
	"starling/sample"
	"starling/store"
	"starling/train"
)

// Batches that are drawn before their rows are fetched: a window of them is known when those of the first are asked for
// (store.Lookahead). Where rows are not fetched ahead, a batch asks for its own when it is drawn.
const (
	windowBytes = 64 << 20 // that blocks of a window take beyond what is freed, where its length is not given
	mostWindow  = 64       // batches of it, where its length is not given
	leastWindow = 2
	// Batches by which it is known what is fetched, of the first epochs where one has fewer.
	leastPredicted = 24
	leastHeld      = 2 // batches that have their rows: one is trained on, and one is next
	stagedHeld     = 1 // batches' rows that may be on their way or not copied yet
)

// window is a pipeline's batches that are drawn and have no rows yet.
type window struct {
	options store.LookaheadOptions
	of      *store.Lookahead // since training began
	first   int64            // batch of the run that it begins with
	drawn   *drawnFirst
}

// lookAhead has the rows of batches of seeds fetched ahead, and estimates what that takes from the first batches of an
// epoch, which it draws.
func (p *Pipeline) lookAhead(o *CacheOptions, seeds Seeds) error {
	p.looksAhead = true
	if f := p.Site.Part.Features; p.Store.AllInPlace() || p.Site.Part.Book.Schema == nil && (f.Cols == 0 ||
		f.Kind() == graph.Sparse) {
		return p.keepEdges(o, seeds) // no rows are fetched, or no cache could keep them
	}
	threads := p.Options.ThreadCount()
	a := &window{options: store.LookaheadOptions{Window: o.Window, Group: 1, Held: heldOf(threads)}}
	// Without a window all batches that are under way have their rows.
	freed := func(rows int64) int64 {
		all := p.all * max(1, p.Site.Opt.Epochs)
		return rows * int64(max(0, min(underWay(threads, p.AtOnce()), all)-a.options.Held-stagedHeld))
	}
	if err := p.drawAhead(a, o, seeds, freed); err != nil {
		return err
	}
	most, rows := int64(1), int64(0)
	for _, x := range a.drawn.list {
		most = max(most, x.bytes)
		rows += p.Store.RowBytes(x.needs)
	}
	frees := freed(rows / int64(max(1, len(a.drawn.list))))
	if err := a.choose(p, o.bytes(p.Store), frees, most, a.drawn.needs()); err != nil {
		return err
	}
	kept, err := p.least(a.kept(p.AtOnce(), frees, most))
	if a.drawn.keep(kept); p.Redrawn {
		a.drawn.list = nil
	}
	p.ahead = a
	return err
}

// drawAhead draws the first batches of a run. Those that there is memory for are trained on as they were drawn, unless
// the run goes on from a later state.
func (p *Pipeline) drawAhead(a *window, o *CacheOptions, seeds Seeds, freed func(rows int64) int64) (err error) {
	all := p.all * max(1, p.Site.Opt.Epochs)
	counted := min(countedDraws, all/2)
	least := min(all, max(p.all, leastPredicted), CountedBatches)
	most := least
	if p.Site.MemoryOnly {
		least = min(least, counted+plannedBatches)
		most = least
	}
	from := p.Site.Opt.Resume
	a.drawn, err = p.drawFirst(seeds, min(least, leastPredicted), most, func(first *drawnBatch) int64 {
		if p.Redrawn || from != nil && (from.Epoch > 0 || from.Batch > 0) {
			return 0
		}
		return windowBytes + freed(p.Store.RowBytes(first.needs))
	}, counted, func(list []*drawnBatch) error {
		first := list[0]
		frees := freed(p.Store.RowBytes(first.needs)) - int64(max(o.Window, leastWindow))*first.bytes
		cache := o.bytes(p.Store) + max(0, frees)
		saved := p.savedRows(list)
		return p.keep(o.edgeBytes(p.Store, cache), counted, func(edges int64) float64 { return -saved(cache - edges) })
	})
	return err
}

// savedRows is about how many bytes of rows batches do not fetch with a cache of some size: those of the rows that most
// of them need.
func (p *Pipeline) savedRows(list []*drawnBatch) func(cache int64) float64 {
	batches := map[uint32]int{}
	for _, x := range list {
		for _, v := range x.needs {
			if !p.Store.InPlace(p.Store.Book.Owner(v)) {
				batches[v]++
			}
		}
	}
	bytes := make([]int64, len(list)+1) // of rows that n batches need
	for v, n := range batches {
		bytes[n] += p.Store.RowBytes([]uint32{v})
	}
	return func(cache int64) (saved float64) {
		for n := len(list); n > 0; n-- {
			saved += float64(int64(n) * max(0, min(bytes[n], cache)))
			cache -= bytes[n]
		}
		return saved
	}
}

// countedDraws is of how many batches it is counted which vertices draw, to know whose in-edges are kept. Of a run of
// few batches it is half.
const countedDraws = 8

// keepEdges keeps in-edges of vertices of other hosts that draw often, where batches are not drawn ahead.
func (p *Pipeline) keepEdges(o *CacheOptions, seeds Seeds) error {
	bytes, counted := o.edgeBytes(p.Store, o.bytes(p.Store)), min(countedDraws, p.all)
	if slices.Max(bytes) == 0 || p.Store.AllInPlace() {
		return nil
	}
	p.Store.CountDraws()
	if err := p.probe(seeds, 0, upTo(counted), func(Sampler, *sample.Batch, *store.Known, bool) {}); err != nil {
		return err
	}
	return p.keep(bytes, counted, nil)
}

// keep keeps in-edges by the draws of some batches, which were counted, in the memory with which they fetch fewest
// bytes; rows is what they fetch of rows.
func (p *Pipeline) keep(bytes []int64, counted int, rows func(edges int64) float64) error {
	all := p.all * max(1, p.Site.Opt.Epochs)
	return p.Store.KeepEdges(p.Site.Ctx, store.KeepOptions{Bytes: bytes, Beside: rows,
		Times: float64(all-counted) / float64(max(counted, 1)), Draws: p.Draws()})
}

// kept is the number of batches, of those drawn before training, that training takes: those that it draws first anyway,
// and more within what a window may take. A batch that is not prepared takes half of drawn.
func (a *window) kept(atOnce int, freed, drawn int64) int {
	left := windowBytes - max(0, int64(a.options.Window)*drawn-freed)
	return a.options.Window + atOnce + int(max(0, left)/max(drawn/2, 1))
}

// took is what batches took that training does not draw again, by owner.
func (a *window) took(owners int) []store.Traffic {
	if a == nil {
		return make([]store.Traffic, owners)
	}
	return a.drawn.took(owners)
}

// heldOf is the number of batches that have their rows at a time.
func heldOf(threads int) int { return max(leastHeld, 1+threads/2) }

// FreedBatches is the number of batches, of those under way, whose rows are not in memory since they are fetched ahead,
// where parts are on several hosts.
func FreedBatches(threads int) int {
	return max(0, underWay(threads, threads+waiting)-heldOf(threads)-stagedHeld)
}

// choose has the cache take what batches under way do not, beside its own budget: memory is freed by batches without
// rows, and a window takes some. Where its length is not given, it is the one that fetches fewest rows, as one vertex
// in sampledVertices tells, in a cache as much smaller. Workers that draw together have the shortest of theirs.
func (a *window) choose(p *Pipeline, budget, freed, drawn int64, lists [][]uint32) (err error) {
	needed, n := p.Store.Elsewhere(lists), a.options.Window
	cache := func(window int) int64 { return max(0, budget+max(0, freed-int64(window)*drawn)) }
	if n == 0 {
		some, least := sampled(needed), math.Inf(1)
		for _, window := range []int{leastWindow, 4, 16, mostWindow} {
			if window > leastWindow && int64(window)*drawn > windowBytes+freed {
				break
			}
			o := a.options
			o.Window, o.Bytes = window, cache(window)/sampledVertices
			if bytes := p.Store.Predict(o, some).Bytes(); bytes < least {
				n, least = window, bytes
			}
		}
	}
	if a.options.Window, err = p.least(n); err != nil {
		return err
	}
	a.options.Bytes = cache(a.options.Window)
	p.Store.Predict(a.options, needed).Expect()
	return nil
}

// sampledVertices is of how many vertices one tells what the others do.
const sampledVertices = 8

// sampled are lists of vertices, by batch and type, without all but one of sampledVertices.
func sampled(lists [][][]uint32) [][][]uint32 {
	some := make([][][]uint32, len(lists))
	for k, types := range lists {
		for _, list := range types {
			var kept []uint32
			for _, v := range list {
				if v*0x9e3779b1>>16%sampledVertices == 0 {
					kept = append(kept, v)
				}
			}
			some[k] = append(some[k], kept)
		}
	}
	return some
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
	h.late = true
	h.returned = func(b *Batch) { a.of.Return(b.Pulled.lent(b.Temporal)...) }
	a.first = int64(at.Epoch*batches + at.Batch)
	a.options.Total = max(int64(last)*int64(batches)-a.first, 0)
	a.of = s.NewLookahead(a.options)
	return a.waiting()
}

// waiting is the number of batches that are drawn and have no rows yet.
func (a *window) waiting() int {
	if a == nil {
		return 0
	}
	return int(min(int64(a.options.Window*a.options.Group), a.options.Total))
}

// unfilled is the number of buffers without rows, of some.
func (a *window) unfilled(buffers int64) int64 {
	if a == nil {
		return 0
	}
	return max(0, buffers-int64(a.options.Held))
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
	switch {
	case p.disk != nil:
		return &diskPuller{Puller: p.Store.Puller(), store: p.Store, of: p.disk}
	case p.ahead == nil:
		return p.Store.Puller()
	}
	return p.ahead.of.Puller()
}
