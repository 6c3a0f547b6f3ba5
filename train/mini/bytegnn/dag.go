package bytegnn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"starling/sample"
	"starling/store"
	"starling/train/batch"
)

// dag is the sampling of a batch. Its operators are
//
//	seeds, positives, negatives   which vertices the batch is for, in branches (batch.InBranches)
//	neighbourhood                 a chunk of a hop draws, or of a subgraph (store.Chunk)
//	features                      rows of the vertices that were found are fetched: fetch.go
//
// and the end, which prepares the batch. Draws, replies and rows of one batch are at work side by side; what is in
// order runs by order: branches are added and chunks are stitched one after the other.
type dag struct {
	s             *dags
	batch         *batch.Batch
	number        int64 // counted from the first that is sampled
	epoch, ofBoth int   // of the batch, and its number there
	seeder        batch.Seeder
	chunks        *store.Chunks // nil: batches are subgraphs
	subgraph      *store.SubgraphSampler
	divide        func(epoch, number int) func(all []uint32) []bool
	order         serial
	cutting       int // chunks of a subgraph that were not taken

	fetches []*fetch
	fetched int // rows whose fetch has begun
	active  int // fetches that have
	labels  *store.Puller
	rows    *store.AheadPuller // nil: rows are fetched when their vertices are found
	by      batch.Guidance

	began  time.Time
	left   atomic.Int32 // operators until the end
	failed atomic.Pointer[error]
}

// newDAG makes one, with memory of its own.
func (s *dags) newDAG() *dag {
	p := s.of
	g := &dag{s: s, batch: batch.NewBatch(s.host), labels: p.Store.Puller()}
	g.batch.Kept = g
	if s.ahead != nil {
		g.rows = s.ahead.Puller()
	}
	if m, ok := p.Sampler().(interface {
		Subgraph() (*store.SubgraphSampler, func(epoch, number int) func(all []uint32) []bool)
	}); ok {
		g.subgraph, g.divide = m.Subgraph()
		return g
	}
	g.chunks, g.seeder = p.Chunks(), p.Seeder(p.Seeds)
	return g
}

// start begins with the seed vertices.
func (g *dag) start(number int64) {
	s, p := g.s, g.s.of
	g.number, g.began = number, s.clock.Now()
	g.failed.Store(nil)
	g.left.Store(1)
	g.fetched, g.active, g.by = 0, 0, batch.Guidance{}
	at := int(s.first + number)
	g.epoch, g.ofBoth = at/p.Steps(), at%p.Steps()
	switch {
	case s.ahead != nil && s.ahead.Drawn(g.batch, g.epoch, g.ofBoth):
		g.task("seeds", 0, func() {
			g.fetchLabels(g.batch.Vertices[:g.batch.Outputs()])
			g.arrived()
		})
	case g.subgraph != nil:
		g.apart("seeds", g.drawSubgraph, g.cutSubgraph)
	case p.AsksForSeeds() || p.Guided():
		var seeds *batch.SeedBatch
		g.apart("seeds", func(ctx context.Context) (err error) {
			seeds, err = g.findSeeds(ctx)
			return err
		}, func() { g.task("seeds", 0, func() { g.complete(seeds) }) })
	default:
		g.task("seeds", 0, func() {
			seeds, err := g.findSeeds(s.ctx)
			g.fail(err)
			g.complete(seeds)
		})
	}
}

// findSeeds finds the seed vertices, whose branches begin to draw at once.
func (g *dag) findSeeds(ctx context.Context) (*batch.SeedBatch, error) {
	g.chunks.Begin(&g.batch.Batch, &g.batch.Pulled.Known, g.epoch, g.ofBoth)
	if err := g.guide(ctx); err != nil {
		return nil, err
	}
	return batch.InBranches(ctx, g.seeder, g.chunks.Sampler, g.epoch, g.ofBoth, func(branch []uint32) {
		g.order.do(func() {
			g.ask(g.chunks.Add(branch))
			g.fetch(false)
		})
	})
}

// guide waits for what the batch is drawn and fetched by.
func (g *dag) guide(ctx context.Context) (err error) {
	if !g.s.of.Guided() {
		return nil
	}
	g.by, err = g.s.of.Guidance(ctx, g.epoch, g.ofBoth)
	g.chunks.Guide(g.by.Masks)
	return err
}

// complete goes on when all seed vertices are known; nil: they could not be found.
func (g *dag) complete(seeds *batch.SeedBatch) {
	g.order.do(func() {
		if seeds == nil {
			seeds = &batch.SeedBatch{Complete: func(*sample.Batch) {}}
		}
		g.batch.Empty = seeds.Empty
		list := g.chunks.Complete()
		seeds.Complete(&g.batch.Batch)
		g.fetchLabels(seeds.Vertices)
		g.ask(list)
		g.fetch(true)
		g.stitch() // what was drawn meanwhile
		g.arrived()
	})
}

// ask has chunks draw.
func (g *dag) ask(list []*store.Chunk) {
	for _, x := range list {
		g.left.Add(1)
		g.draw(x, func() {
			g.chunks.Taken(x)
			g.stitch()
			g.arrived()
		})
	}
}

// draw has a chunk draw, and then, in the batch's order. Each step of walks is an operator.
func (g *dag) draw(x *store.Chunk, then func()) {
	hop := fmt.Sprintf("hop %d", x.Hop+1)
	var step func()
	ends := func() {
		if g.failed.Load() == nil {
			g.fail(x.Take())
		}
		if x.GoesOn() && g.failed.Load() == nil {
			g.task("walk "+hop, x.Cost, step)
			return
		}
		g.order.do(then)
	}
	step = func() {
		if g.failed.Load() != nil {
			g.order.do(then)
			return
		}
		if g.fail(x.Ask()); !x.Waits() {
			ends()
			return
		}
		g.apart("wait for "+hop, x.Wait, func() { g.task("take "+hop, int64(len(x.Vertices)), ends) })
	}
	g.task("draw "+hop, x.Cost, step)
}

// stitch adds the chunks that are next, whose vertices are fetched, and has those that can be draw.
func (g *dag) stitch() {
	for next := g.chunks.Next(); next != nil && g.failed.Load() == nil; next = g.chunks.Next() {
		ended := g.chunks.Ended()
		g.ask(g.chunks.Stitch(next))
		g.fetch(g.chunks.Ended() > ended)
	}
}

// drawSubgraph draws the vertices of a subgraph: the seed operator.
func (g *dag) drawSubgraph(ctx context.Context) error {
	return g.subgraph.Begin(ctx, &g.batch.Batch, &g.batch.Pulled.Known, g.epoch, g.ofBoth)
}

// cutSubgraph has the edges between them found, in chunks.
func (g *dag) cutSubgraph() {
	g.task("seeds", 0, func() {
		if g.failed.Load() != nil {
			g.arrived()
			return
		}
		list := g.subgraph.Cut(max(leastRows, (len(g.batch.Vertices)+3)/4))
		g.cutting = len(list)
		for _, x := range list {
			g.draw(x, func() {
				if g.cutting--; g.cutting == 0 {
					g.endSubgraph()
				}
			})
		}
	})
}

// endSubgraph makes the batch, and has its rows fetched.
func (g *dag) endSubgraph() {
	defer g.arrived()
	if g.failed.Load() != nil {
		return
	}
	var divide func(all []uint32) []bool
	if g.divide != nil {
		divide = g.divide(g.epoch, g.ofBoth)
	}
	n := g.subgraph.Finish(divide)
	g.batch.Empty = n == 0 && divide != nil
	g.fetchLabels(g.batch.Vertices[:g.batch.Outputs()])
	rows := max(leastRows, (len(g.batch.Vertices)+3)/4)
	for at := rows; at < len(g.batch.Vertices); at += rows {
		g.fetchTo(at)
	}
	g.fetchTo(len(g.batch.Vertices))
}

func (g *dag) fail(err error) {
	if err != nil {
		g.failed.CompareAndSwap(nil, &err)
	}
}

// task is one that computes.
func (g *dag) task(name string, cost int64, run func()) {
	g.s.queue.put(g.number, cost, func(lane int) {
		from := g.s.clock.Now()
		run()
		g.s.span(lane, g.named(name), from)
	})
}

func (g *dag) named(name string) string {
	return fmt.Sprintf("batch %d.%d: %s", g.epoch, g.ofBoth, name)
}

// apart waits for the network outside the threads that compute, and then continues.
func (g *dag) apart(name string, wait func(context.Context) error, then func()) {
	s := g.s
	s.waits.Go(func() {
		s.mu.Lock()
		lane := s.mu.lanes.take()
		s.mu.Unlock()
		from := s.clock.Now()
		g.fail(wait(s.ctx))
		s.span(firstLane+s.queue.threads+lane, g.named(name), from)
		s.mu.Lock()
		s.mu.lanes.give(lane)
		s.mu.Unlock()
		then()
	})
}

// arrived counts operators; after the last comes the end.
func (g *dag) arrived() {
	if g.left.Add(-1) > 0 {
		return
	}
	end := func() { g.task("end", 0, g.finish) }
	switch {
	case g.rows != nil:
		g.task("prepare", 0, g.fetchAhead)
	case g.sparse():
		g.apart("rows", g.fetchSparse, end)
	default:
		end()
	}
}

// fetchAhead prepares the batch, whose rows come when they are known to be next.
func (g *dag) fetchAhead() {
	if g.failed.Load() == nil {
		g.batch.Prepare()
	}
	g.apart("rows", func(ctx context.Context) error {
		var failed error
		if err := g.failed.Load(); err != nil {
			failed = *err
		}
		g.batch.Epoch, g.batch.Number = g.epoch, g.ofBoth
		return g.s.ahead.Pull(ctx, g.batch, g.rows, failed)
	}, g.end)
}

// finish joins the rows and prepares the batch.
func (g *dag) finish() {
	if g.failed.Load() == nil {
		g.join()
	}
	g.end()
}

// end gives the batch to training.
func (g *dag) end() {
	g.batch.Err = nil
	if err := g.failed.Load(); err != nil {
		g.batch.Err = *err
	}
	g.s.sampled(g)
}

// Bytes is what the graph holds beside the batch.
func (g *dag) Bytes() int64 {
	if g.subgraph != nil {
		return g.subgraph.Bytes()
	}
	return g.chunks.Bytes()
}

// serial runs functions one after the other, on the goroutine that finds none running.
type serial struct {
	mu struct {
		sync.Mutex
		list    []func()
		running bool
	}
}

func (s *serial) do(f func()) {
	s.mu.Lock()
	s.mu.list = append(s.mu.list, f)
	if s.mu.running {
		s.mu.Unlock()
		return
	}
	s.mu.running = true
	for len(s.mu.list) > 0 {
		next := s.mu.list[0]
		s.mu.list = s.mu.list[1:]
		s.mu.Unlock()
		next()
		s.mu.Lock()
	}
	s.mu.running = false
	s.mu.Unlock()
}
