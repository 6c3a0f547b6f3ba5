// Package bytegnn samples batches as graphs of small tasks.
package bytegnn

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"starling/graph"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/train/batch"
	"starling/train/batch/dgs"
	"starling/train/batch/embeddings"
	"starling/train/batch/pairs"
	"starling/wire"
)

// Strategy keeps every core busy while batches are sampled (Zheng et al., "ByteGNN: Efficient
// Graph Neural Network Training at Large Scale", VLDB 2022). The sampling of a batch is a graph
// of small tasks:
//
//	seeds ─▶ hop 1 ─▶ hop 2 ─▶ … ─▶ hop L ─▶ end
//	  └▶ fetch 0  └▶ fetch 1           └▶ fetch L ─▶┘
//
// A hop draws the edges of all vertices so far, and the rows of the vertices it found are
// fetched while the next hop draws. Many such graphs are under way. Two schedulers decide:
//
//	coarse  when to launch another batch, by a score that is looked at every 5 ms: launch.go
//	fine    which ready task runs next: older batches first, then cheaper tasks: tasks.go;
//	        requests to other workers leave and are served in the order of their batches
//
// Tasks wait for the network outside the threads that compute. Batches, seed vertices and
// gradients are distdgl's. Where the paper has a parameter server, gradients are all-reduced.
var Strategy = train.Describe(train.Descriptor{
	Name: "bytegnn", Mode: train.MiniBatch, Typical: true, Pairs: true, Baseline: "distdgl",
	Paper: &train.Paper{Title: "ByteGNN, Zheng et al., VLDB 2022",
		Claim: "2.1x to 3.5x over DistDGL, 3 to 6 times its CPU use",
		Why:   "distdgl here samples ahead on all cores already, which the paper's baseline does not"},
	Exact: "`--roots owner` and `random`", Sends: "`distdgl`'s",
	UseWhen: "sampling over a slow network leaves cores idle",
	Check:   batch.Refusing(batch.NotAhead, batch.Timeless, embeddings.Check, dgs.Check, batch.NeighbourOnly),
	Overlap: train.Overlap{Ahead: true},
}, options{batch.RootsOption{Roots: "owner"}, dgs.Off, batch.AsTheyAre, batch.CachedBy("none"), 0.3}, build)

type options struct {
	batch.RootsOption
	dgs.Options
	batch.PullOptions
	batch.CacheOptions
	LaunchScore float64 `json:"launch_score" omit:"default" resume:"free" help:"bytegnn: launch the sampling of another batch at this score"`
}

// Validate refuses a threshold that would launch never or always.
func (o *options) Validate() error {
	if !(o.LaunchScore > 0) {
		return train.Mistake("bytegnn's launch score is above 0, not %g", o.LaunchScore)
	}
	return cmp.Or(o.Options.Validate(), o.CacheOptions.Validate())
}

func build(s *train.Site, o options) (train.Strategy, error) {
	scheduled := func(p *batch.Pipeline) batch.Method {
		return batch.Method{Source: func(ctx context.Context, f *train.Loop, h *batch.Host) batch.Source {
			return newDAGs(ctx, p, h, f, o.LaunchScore)
		}}
	}
	return batch.New(s, batch.Setting{Roots: o.Roots, PullDType: o.PullDType}, o.CacheOptions, scheduled,
		embeddings.New(s), pairs.New(s), dgs.New(s, o.Options))
}

// dags samples batches as graphs of tasks. Batches come out in order.
type dags struct {
	ctx   context.Context
	of    *batch.Pipeline
	queue *taskQueue
	clock wire.Clock
	first int64 // number of the first batch, over all epochs
	total int64

	free      chan *dag
	done      chan *dag // finished, in any order
	given     int64     // batches that training took
	early     map[int64]*dag
	taken     chan struct{} // training took a batch or gave one back, after which another may be due
	end       chan struct{}
	wg        sync.WaitGroup
	waits     sync.WaitGroup // for the network
	wait      atomic.Int64   // finished batches that training did not take
	least     int            // batches that are under way, wait or are trained on, whatever the score is
	most      int64          // such batches at most
	threshold float64

	mu struct {
		sync.Mutex
		sampling, training average
	}
	since time.Time // training took the batch at hand
}

func newDAGs(ctx context.Context, d *batch.Pipeline, host *batch.Host, f *train.Loop, threshold float64) *dags {
	threads := d.Options.ThreadCount()
	s := &dags{ctx: ctx, of: d, queue: newTaskQueue(threads), clock: f.Clock, end: make(chan struct{}),
		taken: make(chan struct{}, 1), early: map[int64]*dag{}, least: d.AtOnce() + 1, threshold: threshold}
	s.first = int64(f.State.Epoch*d.Steps() + f.State.Batch)
	s.total = max(0, int64(f.Opt.Epochs*d.Steps())-s.first)
	s.most = int64(4*threads + 1)
	depth := max(1, min(s.most, s.total))
	if d.Site.MemoryOnly { // all buffers have a batch sooner or later
		s.least = int(depth)
	}
	s.free, s.done = make(chan *dag, depth), make(chan *dag, depth)
	for range depth {
		g := &dag{s: s, batch: batch.NewBatch(host), sampler: d.Neighbours(), next: d.Seeder(d.Seeds)}
		g.batch.Kept = g
		g.labels = d.Store.Puller()
		for range len(d.Options.Fanouts) + 1 {
			g.fetches = append(g.fetches, fetch{puller: d.Store.Puller()})
		}
		s.free <- g
	}
	s.wg.Go(s.launch)
	return s
}

// launch is the coarse scheduler.
func (s *dags) launch() {
	var load cpuLoad
	last := s.clock.Now()
	for next := int64(0); next < s.total; {
		var g *dag
		select {
		case g = <-s.free:
		case <-s.end:
			return
		}
		for !s.due(&load, last) {
			due, timer := wire.Alarm(s.clock, launchEvery)
			select {
			case <-due:
			case <-s.taken:
				timer.Stop()
			case <-s.end:
				timer.Stop()
				return
			}
		}
		last = s.clock.Now()
		g.start(next)
		next++
	}
}

// due reports whether another batch is launched now. The batch that training waits for always is, and
// those that the pipeline would have under way: the score of a processor that training keeps busy is 0, and batches
// launched only when none waits come too late, all at once.
func (s *dags) due(load *cpuLoad, last time.Time) bool {
	if launched := cap(s.free) - len(s.free) - 1; launched < s.least {
		return true
	}
	s.mu.Lock()
	sampling, training := s.mu.sampling.of, s.mu.training.of
	s.mu.Unlock()
	waiting := int(s.wait.Load())
	if waiting == 0 {
		return true
	}
	return launchScore(wire.Since(s.clock, last), sampling, training, load.percent(), waiting) >= s.threshold
}

// Next is the next batch, to be given back with Release.
func (s *dags) Next() *batch.Batch {
	for s.early[s.given] == nil {
		g := <-s.done
		s.early[g.number] = g
	}
	g := s.early[s.given]
	delete(s.early, s.given)
	s.given++
	s.wait.Add(-1)
	s.since = s.clock.Now()
	s.wake()
	return g.batch
}

// wake has the scheduler look whether a batch is due.
func (s *dags) wake() {
	select {
	case s.taken <- struct{}{}:
	default:
	}
}

func (s *dags) Release(b *batch.Batch) {
	s.mu.Lock()
	s.mu.training.add(wire.Since(s.clock, s.since))
	s.mu.Unlock()
	s.free <- b.Kept.(*dag)
	s.wake()
}

// Fill waits until all that can be sampled before training takes more is there.
func (s *dags) Fill() {
	for want := min(int64(cap(s.free)), s.total-s.given); int64(len(s.early)) < want; {
		g := <-s.done
		s.early[g.number] = g
	}
}

func (s *dags) Unfilled(batches int) int { return int(min(s.most, int64(batches))) - cap(s.free) }

// Stop ends everything. The context that calls wait by must have ended.
func (s *dags) Stop() {
	close(s.end)
	s.wg.Wait()
	s.queue.close()
	s.waits.Wait()
}

// dag is the sampling of a batch.
type dag struct {
	s       *dags
	batch   *batch.Batch
	number  int64 // counted from the first that is sampled
	seeds   []uint32
	next    batch.Seeder
	sampler *store.Sampler
	fetches []fetch
	labels  *store.Puller
	began   time.Time
	left    atomic.Int32 // tasks until the end
	failed  atomic.Pointer[error]
}

// fetch is the rows of the vertices that a hop found: in their place among the batch's if its memory is
// large enough for them, as it mostly is after the first.
type fetch struct {
	puller   *store.Puller
	features graph.Features
	types    []graph.Features // of a typed graph
}

func (g *dag) start(number int64) {
	s, d := g.s, g.s.of
	g.number, g.began = number, s.clock.Now()
	g.failed.Store(nil)
	at := s.first + number
	epoch, n := int(at)/d.Steps(), int(at)%d.Steps()
	if d.AsksForSeeds() {
		var seeds *batch.SeedBatch
		g.apart(func(ctx context.Context) (err error) {
			seeds, err = g.next.Next(ctx, g.sampler, epoch, n)
			return err
		}, func() { g.begin(seeds, epoch, n) })
		return
	}
	seeds, _ := g.next.Next(s.ctx, g.sampler, epoch, n)
	if !d.Guided() {
		g.begin(seeds, epoch, n)
		return
	}
	g.apart(func(ctx context.Context) error { return g.guide(ctx, epoch, n) }, func() { g.begin(seeds, epoch, n) })
}

// guide waits for what the batch is drawn and fetched by.
func (g *dag) guide(ctx context.Context, epoch, n int) error {
	by, err := g.s.of.Guidance(ctx, epoch, n)
	for i := range g.fetches {
		if err == nil {
			err = by.Apply(g.sampler, g.fetches[i].puller)
		}
	}
	return err
}

// begin starts the tasks of a batch whose seed vertices are known; nil: they could not be drawn.
func (g *dag) begin(seeds *batch.SeedBatch, epoch, n int) {
	if seeds == nil {
		seeds = &batch.SeedBatch{Complete: func(*sample.Batch) {}}
	}
	d := g.s.of
	g.seeds, g.batch.Empty = seeds.Vertices, seeds.Empty
	g.sampler.Begin(&g.batch.Batch, &g.batch.Pulled.Known, seeds.Vertices, epoch, n)
	seeds.Complete(&g.batch.Batch)
	g.left.Store(int32(len(d.Options.Fanouts) + 2)) // labels and fetches, of which the last starts after the last hop
	g.apart(g.fetchLabels, g.arrived)
	g.fetch(0, 0)
	if len(d.Options.Fanouts) > 0 { // else the model has no graph layers
		g.hop(0)
	}
}

func (g *dag) fail(err error) {
	if err != nil {
		g.failed.CompareAndSwap(nil, &err)
	}
}

// apart waits for the network outside the threads that compute, and then continues.
func (g *dag) apart(wait func(context.Context) error, then func()) {
	g.s.waits.Go(func() {
		g.fail(wait(g.s.ctx))
		then()
	})
}

// hop draws the edges of a hop, and then fetches what it found and starts the next.
func (g *dag) hop(hop int) {
	vertices := g.batch.Vertices
	g.s.queue.put(g.number, int64(len(vertices))*g.perVertex(hop), func() {
		if g.failed.Load() == nil {
			g.fail(g.sampler.Ask(hop))
		}
		g.apart(g.sampler.Wait, func() {
			g.s.queue.put(g.number, int64(len(vertices)), func() { g.stitch(hop, len(vertices)) })
		})
	})
}

// perVertex is how many neighbours a vertex of a hop is expected to have drawn: with a fanout of all as many as
// vertices of the part have in-edges, in the mean.
func (g *dag) perVertex(hop int) int64 {
	if n := g.sampler.Fanouts[hop]; n >= 0 {
		return int64(max(1, n))
	}
	in := g.s.of.Site.Part.In
	return max(1, in.Edges()/int64(max(1, in.Nodes())))
}

func (g *dag) stitch(hop, before int) {
	if g.failed.Load() == nil {
		g.fail(g.sampler.Stitch(hop))
	}
	g.fetch(hop+1, before)
	if hop+1 < len(g.sampler.Fanouts) {
		g.hop(hop + 1)
	}
}

// fetch brings the rows of the vertices from one on, which are final.
func (g *dag) fetch(i, from int) {
	vertices := g.batch.Vertices[from:len(g.batch.Vertices):len(g.batch.Vertices)]
	f := &g.fetches[i]
	if g.sparse() || g.failed.Load() != nil {
		g.arrived()
		return
	}
	width := g.place(f, from)
	g.s.queue.put(g.number, int64(len(vertices)*width), func() {
		g.fail(g.ask(f, vertices))
		g.apart(f.puller.Wait, func() {
			g.s.queue.put(g.number, int64(len(vertices)), func() {
				if g.failed.Load() == nil {
					g.fail(f.puller.Take())
				}
				g.arrived()
			})
		})
	})
}

// place has rows from one on fetched to their place among the batch's, and returns their width. Rows of a typed graph,
// which are by type, are joined later.
func (g *dag) place(f *fetch, from int) (width int) {
	if s := g.schema(); s != nil {
		f.types = slices.Grow(f.types[:0], len(s.Types))[:len(s.Types)]
		return 1
	}
	all, end := &g.batch.Pulled.Features, len(g.batch.Vertices)
	width = g.s.of.Site.Part.Features.Cols
	f.features.F32, f.features.BF16 = placed(all.F32, from*width, end*width), placed(all.BF16, from*width, end*width)
	return width
}

func (g *dag) ask(f *fetch, vertices []uint32) error {
	if g.schema() != nil {
		return f.puller.AskTypes(g.batch.Pulls(), f.types, vertices)
	}
	return f.puller.AskFeatures(g.batch.Pulls(), &f.features, vertices)
}

// schema is of a typed graph, or nil.
func (g *dag) schema() *graph.Schema { return g.s.of.Site.Part.Book.Schema }

// fetchLabels brings the labels of the seed vertices.
func (g *dag) fetchLabels(ctx context.Context) error {
	if g.batch.Labels == nil || g.failed.Load() != nil {
		return nil
	}
	return g.batch.PullLabels(ctx, g.labels, g.seeds)
}

// fetchSparse brings sparse rows, which cannot be joined, when all vertices are known.
func (g *dag) fetchSparse(ctx context.Context) error {
	if g.failed.Load() != nil {
		return nil
	}
	return g.fetches[0].puller.Features(ctx, g.batch.Pulls(), &g.batch.Pulled.Features, g.batch.Vertices)
}

func (g *dag) sparse() bool {
	return g.schema() == nil && g.s.of.Site.Part.Features.Kind() == graph.Sparse
}

// arrived counts fetches; after the last comes the end.
func (g *dag) arrived() {
	if g.left.Add(-1) > 0 {
		return
	}
	end := func() { g.s.queue.put(g.number, 0, g.finish) }
	if g.sparse() {
		g.apart(g.fetchSparse, end)
		return
	}
	end()
}

// finish joins the rows and prepares the batch.
func (g *dag) finish() {
	if g.failed.Load() == nil {
		g.join()
	}
	g.batch.Err = nil
	if err := g.failed.Load(); err != nil {
		g.batch.Err = *err
	}
	s := g.s
	s.mu.Lock()
	s.mu.sampling.add(wire.Since(s.clock, g.began))
	s.mu.Unlock()
	s.wait.Add(1)
	s.done <- g
}

func (g *dag) join() {
	p, site := g.batch.Pulled, g.s.of.Site
	if s := g.schema(); s != nil {
		var lists [][]graph.Features
		for i := range g.fetches {
			lists = append(lists, g.fetches[i].types)
		}
		p.JoinTypes(s, lists)
	} else if !g.sparse() {
		f := &p.Features
		f.Rows, f.Cols = len(g.batch.Vertices), site.Part.Features.Cols
		f.F32 = joined(f.F32, g.fetches, func(x *graph.Features) []float32 { return x.F32 })
		f.BF16 = joined(f.BF16, g.fetches, func(x *graph.Features) []uint16 { return x.BF16 })
	}
	p.Normalize(site.Opt.RowNormalize)
	g.batch.Prepare()
}

// placed is part of a slice's memory; nil: it is not so large.
func placed[T any](all []T, lo, hi int) []T {
	if hi > cap(all) {
		return nil
	}
	return all[:hi][lo:hi:hi]
}

// joined is what was fetched, one after another, in the memory of all. What is in its place is not copied.
func joined[T any](all []T, fetches []fetch, of func(*graph.Features) []T) []T {
	n := 0
	for i := range fetches {
		n += len(of(&fetches[i].features))
	}
	if cap(all) < n {
		all = make([]T, n+n/8) // the next batch may be a little larger
	}
	all, n = all[:n], 0
	for i := range fetches {
		part := of(&fetches[i].features)
		if len(part) > 0 && &part[0] != &all[n] {
			copy(all[n:], part)
		}
		n += len(part)
	}
	return all
}
