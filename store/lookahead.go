package store

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"starling/coflow"
	"starling/graph"
)

// Lookahead pulls rows of features for batches that are known before they are needed, since every draw is a function of
// seed, epoch, batch, layer and vertex. A worker's batches are numbered from the first that it draws. Some that follow
// one another are a group:
//
//	drawn     a batch says which rows it needs, when it is drawn, in any order
//	planned   a group, in order, when the groups of the window after it are drawn: belady says which of its rows the
//	          cache has, and which it keeps; the others are asked for at once, one request per owner
//	served    a group, in order, when these have come: its batches copy their rows, then the cache takes those it keeps
//	returned  a batch that was trained on: another one may take its rows
//
// What is fetched is a function of the draws, the window, the group and the size of the cache, not of time. Rows are
// what an owner would answer at any time, so that a batch is the same bits however they came.
type Lookahead struct {
	s       *Store
	options LookaheadOptions
	caches  []aheadCache // by type; one, in a graph without types
	rows    rowTable
	mu      struct {
		sync.Mutex
		drawn   map[int64]*aheadBatch
		first   int64 // batch that is in no group yet
		waiting []*aheadGroup
		last    *aheadGroup // the last that was planned
	}
	memory struct {
		sync.Mutex
		staged, held [][]graph.Features // by type; given back, of groups and of batches
	}
	room chan struct{} // as many as batches that may still take their rows
	end  struct {
		once   sync.Once
		err    error
		failed atomic.Bool
		done   chan struct{}
	}
}

// LookaheadOptions are of the window and its cache.
type LookaheadOptions struct {
	Bytes  int64 // of the cache
	Window int   // groups that are known when one is planned, with it
	Group  int   // batches
	Held   int   // batches that have their rows and were not given back; at least Group
	Total  int64 // batches
}

// aheadCache is the rows of a type.
type aheadCache struct {
	*belady
	width int
	rows  []byte
}

// aheadBatch is what one batch needs.
type aheadBatch struct {
	id     coflow.ID
	number int64
	places [][]uint32 // of rows that others own, in the batch's lists by type
	at     [][]uint32 // of these, in the group's lists
	group  *aheadGroup
	ready  chan struct{} // closed when the group is planned
}

// aheadGroup is batches that are fetched together.
type aheadGroup struct {
	batches  []*aheadBatch
	lists    [][]uint32 // distinct vertices that others own, by type
	plans    []*planned
	staged   []graph.Features // rows that the cache does not have, by type
	fetchers []*Puller        // nil: it has all
	before   *aheadGroup
	arrive   sync.Once
	err      error
	left     atomic.Int32  // batches that have not copied their rows
	served   chan struct{} // closed when all have, and the cache has taken rows
}

// NewLookahead makes one with an empty cache.
func (s *Store) NewLookahead(o LookaheadOptions) *Lookahead {
	l := &Lookahead{s: s, options: o}
	l.options.Window, l.options.Group = max(o.Window, 1), max(o.Group, 1)
	l.mu.drawn, l.end.done = map[int64]*aheadBatch{}, make(chan struct{})
	for t, rows := range s.shares(o.Bytes) {
		width := s.rowBytesOf(t)
		l.caches = append(l.caches, aheadCache{newBelady(rows), width, make([]byte, rows*width)})
	}
	l.memory.staged, l.memory.held = make([][]graph.Features, len(l.caches)), make([][]graph.Features, len(l.caches))
	l.room = make(chan struct{}, max(o.Held, l.options.Group))
	for range cap(l.room) {
		l.room <- struct{}{}
	}
	return l
}

// fail ends all waits.
func (l *Lookahead) fail(err error) error {
	l.end.once.Do(func() {
		l.end.err = err
		l.end.failed.Store(true)
		close(l.end.done)
	})
	return err
}

// Return gives back what was pulled for a batch, by type.
func (l *Lookahead) Return(rows ...*graph.Features) {
	for t, f := range rows {
		l.keepFree(l.memory.held, t, f)
	}
	l.room <- struct{}{}
}

func (l *Lookahead) keepFree(in [][]graph.Features, t int, f *graph.Features) {
	l.memory.Lock()
	defer l.memory.Unlock()
	if cap(f.F32)+cap(f.BF16) > 0 {
		in[t] = append(in[t], graph.Features{F32: f.F32, BF16: f.BF16})
	}
	f.F32, f.BF16 = nil, nil
}

// lend gives to memory for n values of a type that was given back, if there is some. What is many times too large is
// let go of: the first groups find an empty cache, and stage far more than those after them.
func (l *Lookahead) lend(from [][]graph.Features, to *graph.Features, t, n int) {
	l.memory.Lock()
	defer l.memory.Unlock()
	last := len(from[t]) - 1
	if last < 0 || to.F32 != nil || to.BF16 != nil {
		return
	}
	f := from[t][last]
	from[t][last] = graph.Features{}
	from[t] = from[t][:last]
	if cap(f.F32)+cap(f.BF16) <= mostUnused*max(n, leastLent) {
		to.F32, to.BF16 = f.F32, f.BF16
	}
}

// Memory that is lent again has at most mostUnused times the values that are wanted, or leastLent.
const (
	mostUnused = 4
	leastLent  = 1 << 12
)

// drop ends what is under way for a batch after a failure.
func (l *Lookahead) drop(ctx context.Context, b *aheadBatch) {
	l.mu.Lock() // nothing is planned after it
	defer l.mu.Unlock()
	if g := b.group; g != nil && g.fetchers != nil {
		g.arrive.Do(func() { g.err = l.take(ctx, g, l.end.err) })
	}
}

// wait waits for what other batches do.
func (l *Lookahead) wait(ctx context.Context, done <-chan struct{}) error {
	ended, err := l.s.awaitUnless(ctx, done, l.end.done)
	switch {
	case ended:
		return l.end.err
	case err != nil:
		return l.fail(err)
	}
	return nil
}

// need says which rows a batch needs, by type.
func (l *Lookahead) need(id coflow.ID, number int64, lists [][]uint32) *aheadBatch {
	b := &aheadBatch{id: id, number: number, ready: make(chan struct{})}
	for t, list := range lists {
		var places, vertices []uint32
		for i, v := range list {
			if l.caches[t].width == 0 {
				break
			}
			if !l.s.InPlace(l.s.Book.Owner(v)) {
				places, vertices = append(places, uint32(i)), append(vertices, v)
			}
		}
		b.places, b.at = append(b.places, places), append(b.at, vertices) // until its group has these
		if l.caches[t].width > 0 {
			l.s.rows.needed.Add(int64(len(list)))
		}
		l.s.rows.remote.Add(int64(len(places)))
		l.s.rows.spared.Add(int64(len(places)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.drawn[number] = b
	l.advance()
	return b
}

// advance adds groups whose batches are drawn, and plans those whose window is known. REQUIRES: mu held.
func (l *Lookahead) advance() {
	for first := l.mu.first; first < l.options.Total; first = l.mu.first {
		g, end := &aheadGroup{served: make(chan struct{})}, min(first+int64(l.options.Group), l.options.Total)
		for n := first; n < end && l.mu.drawn[n] != nil; n++ {
			g.batches = append(g.batches, l.mu.drawn[n])
		}
		if int64(len(g.batches)) < end-first {
			break
		}
		l.mu.first = end
		l.add(g)
	}
	all := l.mu.first >= l.options.Total
	for !l.end.failed.Load() && (len(l.mu.waiting) >= l.options.Window || all && len(l.mu.waiting) > 0) {
		l.plan(l.mu.waiting[0])
		l.mu.waiting = l.mu.waiting[1:]
	}
}

// add makes known what a group needs.
func (l *Lookahead) add(g *aheadGroup) {
	g.left.Store(int32(len(g.batches)))
	g.lists = make([][]uint32, len(l.caches))
	for t := range l.caches {
		l.rows.begin()
		for _, b := range g.batches {
			for i, v := range b.at[t] {
				b.at[t][i], g.lists[t] = l.rows.add(g.lists[t], v)
			}
		}
		l.caches[t].add(g.lists[t])
	}
	for _, b := range g.batches {
		b.group = g
		delete(l.mu.drawn, b.number)
	}
	l.mu.waiting = append(l.mu.waiting, g)
}

// plan decides what the cache has of a group's rows and asks for the others.
func (l *Lookahead) plan(g *aheadGroup) {
	g.before, l.mu.last = l.mu.last, g
	n := len(l.caches)
	g.plans, g.staged, g.fetchers = make([]*planned, n), make([]graph.Features, n), make([]*Puller, n)
	for t := range l.caches {
		p := l.caches[t].plan()
		if g.plans[t] = p; len(p.missed) == 0 || l.caches[t].width == 0 {
			continue
		}
		missed := make([]uint32, len(p.missed))
		for k, i := range p.missed {
			missed[k] = g.lists[t][i]
		}
		l.s.rows.spared.Add(-int64(len(missed)))
		l.lend(l.memory.staged, &g.staged[t], t, len(missed)*l.s.colsOf(t))
		g.fetchers[t] = l.s.Puller()
		g.fetchers[t].ahead = true
		form := l.s.featuresOf(&g.staged[t], t, len(missed))
		if err := g.fetchers[t].askRows(g.batches[0].id, form, featureBytes(&g.staged[t]), missed); err != nil {
			l.fail(err)
		}
	}
	for _, b := range g.batches {
		close(b.ready)
	}
}

// arrived waits until a batch's rows have come, the groups before have theirs, and it may take them.
func (l *Lookahead) arrived(ctx context.Context, b *aheadBatch) error {
	g := b.group
	g.arrive.Do(func() { g.err = l.take(ctx, g, nil) })
	if g.err != nil {
		return l.fail(g.err)
	}
	if g.before != nil {
		if err := l.wait(ctx, g.before.served); err != nil {
			return err
		}
	}
	return l.wait(ctx, l.room)
}

// serve gives a batch its rows, which have arrived: copy is called for each type, and row(k) belongs to the batch's
// place k among its places.
func (l *Lookahead) serve(b *aheadBatch, copy func(t int, row func(k int) []byte)) {
	g := b.group
	for t := range l.caches {
		if l.s.unread {
			break
		}
		c, staged := &l.caches[t], featureBytes(&g.staged[t])
		copy(t, func(k int) []byte {
			at := g.plans[t].slot[b.at[t][k]]
			if at >= 0 {
				return c.rows[int(at)*c.width : (int(at)+1)*c.width]
			}
			return staged[(-int(at)-1)*c.width : -int(at)*c.width]
		})
	}
	if g.left.Add(-1) == 0 {
		l.keep(g)
	}
}

// take waits for a group's rows, unless something failed.
func (l *Lookahead) take(ctx context.Context, g *aheadGroup, err error) error {
	for _, p := range g.fetchers {
		if p != nil {
			err = p.calls.waitAfter(ctx, err)
		}
	}
	for _, p := range g.fetchers {
		if err == nil && p != nil {
			err = p.Take()
		}
	}
	return err
}

// keep has the cache take what it keeps of a group.
func (l *Lookahead) keep(g *aheadGroup) {
	for t := range l.caches {
		c, staged := &l.caches[t], featureBytes(&g.staged[t])
		for _, p := range g.plans[t].puts {
			if c.width > 0 && !l.s.unread {
				copy(c.rows[int(p.slot)*c.width:(int(p.slot)+1)*c.width], staged[int(p.place)*c.width:])
			}
		}
		l.keepFree(l.memory.staged, t, &g.staged[t])
	}
	g.before, g.staged, g.plans, g.fetchers = nil, nil, nil, nil
	close(g.served)
}

// Predicted is what a look-ahead fetches for the first batches of a run.
type Predicted struct {
	s           *Store
	first, then rowCounts // of halves
}

// Elsewhere are the vertices of batches whose rows are not read in place, by batch and type.
func (s *Store) Elsewhere(batches [][]uint32) (lists [][][]uint32) {
	for _, b := range batches {
		lists = append(lists, s.remoteByType(b))
	}
	return lists
}

// Predict finds what a look-ahead would fetch for batches that need the rows of some vertices, by batch and type, and
// which are the first.
func (s *Store) Predict(o LookaheadOptions, lists [][][]uint32) *Predicted {
	types := len(s.shares(o.Bytes))
	x := &Predicted{s, newRowCounts(types, s.Book.Parts), newRowCounts(types, s.Book.Parts)}
	var caches []*belady
	for _, rows := range s.shares(o.Bytes) {
		caches = append(caches, newBelady(rows))
	}
	known := 0
	for k := range lists {
		for ; known < min(len(lists), k+max(o.Window, 1)); known++ {
			for t, c := range caches {
				c.add(lists[known][t])
			}
		}
		into := &x.then
		if 2*k < len(lists) && len(lists) > 1 {
			into = &x.first
		}
		for t, c := range caches {
			into.add(s, t, lists[k][t], c.plan().missed)
		}
	}
	return x
}

// Bytes is how many bytes of rows that is.
func (x *Predicted) Bytes() (n float64) {
	for _, c := range []*rowCounts{&x.first, &x.then} {
		for t, fetched := range c.fetched {
			for _, rows := range fetched {
				n += rows * float64(x.s.rowBytesOf(t))
			}
		}
	}
	return n
}

// rowCounts are of rows that batches need, and of those that are fetched, by type and owner.
type rowCounts struct{ needed, fetched [][]float64 }

func newRowCounts(types, parts int) (c rowCounts) {
	for range types {
		c.needed, c.fetched = append(c.needed, make([]float64, parts)), append(c.fetched, make([]float64, parts))
	}
	return c
}

func (c *rowCounts) add(s *Store, typ int, list, missed []uint32) {
	for _, v := range list {
		c.needed[typ][s.Book.Owner(v)]++
	}
	for _, i := range missed {
		c.fetched[typ][s.Book.Owner(list[i])]++
	}
}

// Expect has plans count what is predicted: of the second half of the batches the share of rows that are fetched, by
// type and owner, and of all what is beyond that since a cache is empty at the first.
func (x *Predicted) Expect() {
	s := x.s
	s.fetchShare, s.once = nil, make([]Traffic, s.Book.Parts)
	for t, fetched := range x.then.fetched {
		share := make([]float64, s.Book.Parts)
		for q := range share {
			share[q] = fetched[q] / max(x.then.needed[t][q], 1)
			n := int64(math.Round(x.first.fetched[t][q] - share[q]*x.first.needed[t][q]))
			if n <= 0 {
				continue
			}
			if s.once[q].addPulls(s, t, n); share[q] > 0 { // they are asked for with others
				s.once[q].Requests--
			}
		}
		s.fetchShare = append(s.fetchShare, share)
	}
}

// Once is what is expected to be sent and received beside what each batch is, by owner.
func (s *Store) Once() []Traffic {
	if s.once == nil {
		return make([]Traffic, s.Book.Parts)
	}
	return s.once
}

// remoteByType are the vertices whose rows are not read in place.
func (s *Store) remoteByType(vertices []uint32) (lists [][]uint32) {
	if s.Book.Schema != nil {
		lists = s.byType(nil, vertices)
	} else {
		lists = [][]uint32{slices.Clone(vertices)}
	}
	for t := range lists {
		lists[t] = slices.DeleteFunc(lists[t], func(v uint32) bool { return s.InPlace(s.Book.Owner(v)) })
	}
	return lists
}
