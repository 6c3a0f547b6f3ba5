package mini

import (
	"context"
	"fmt"
	"sync/atomic"

	"starling/exchange"
	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/train/site"
	"starling/wire"
)

// distdgl is mini-batch training where the data lives (Zheng et al., "DistDGL", IA3 2020): a
// batch's seed vertices are divided over the workers (--roots), each worker draws the blocks
// of its own from the owners of vertices and pulls their features, and gradients are
// all-reduced after every step:
//
//	g = Σ_workers Σ_seeds ∇loss(seed) / batch size
//
// Draws are functions of (seed, epoch, batch, layer, vertex), so that with --roots owner or
// random g is that of one worker. Batches are drawn and pulled on other cores before they are
// needed, and the all-reduce overlaps the backward pass. Measuring is layer by layer over the
// whole graph, as strategy halo does it.
var distdgl = train.Describe(train.Descriptor{
	Name: "distdgl", Mode: train.MiniBatch, Typical: true, Pairs: true,
	Paper: &train.Paper{Title: "DistDGL, Zheng et al., IA3 2020",
		Claim: "13 s per epoch of ogbn-papers100M on 16 machines; min-cut partitions 2.14x over random",
		Why:   "the gain of a partition is what fewer remote rows save, which depends on the link"},
	Exact: "`--roots owner` and `random`", Sends: "sampled edges and the features of a batch's remote vertices",
	UseWhen: "the full graph does not fit, or many small steps learn faster",
	Check:   refusing(),
	Overlap: train.Overlap{Ahead: true},
}, distributedBy("owner", "none"), newDistributed)

// salient is distdgl with a cache of the rows that batches need most often, measured before
// training, on every worker (Kaler et al., "Communication-Efficient Graph Neural Networks with
// Probabilistic Neighborhood Expansion Analysis and Caching", MLSys 2023: SALIENT++).
var salient = train.Describe(train.Descriptor{
	Name: "salient", Mode: train.MiniBatch, Typical: true, Pairs: true, Baseline: "distdgl", Like: "distdgl",
	Paper: &train.Paper{Title: "SALIENT++, Kaler et al., MLSys 2023",
		Claim: "the speed of replicated features with a cache of a fraction of them",
		Why: "rows are chosen by counting draws, where the paper computes probabilities; a cache saves what the " +
			"link would have taken"},
	Exact: "`--roots owner` and `random`", Sends: "`distdgl`'s without the rows in the cache",
	UseWhen: "the link is the limit and a host has memory for rows",
	Check:   refusing(),
	Overlap: train.Overlap{Ahead: true},
}, distributedBy("owner", "frequency"), newDistributed)

type distOptions struct {
	RootsOption
	DGSOptions
	PullOptions
	CacheOptions
}

// distributedBy are the options with rows that travel as they are.
func distributedBy(roots, cache string) distOptions {
	return distOptions{RootsOption{roots}, noDGS, PullOptions{"none"},
		CacheOptions{Cache: cache, CacheBudget: "256MiB"}}
}

// Validate refuses settings that make no sense.
func (o *distOptions) Validate() error {
	if err := o.DGSOptions.validate(); err != nil {
		return err
	}
	return o.CacheOptions.Validate()
}

// PullOptions say how rows of features travel.
type PullOptions struct {
	PullDType string `json:"pull_dtype" values:"none,bf16,int8" exact:"none" try:"bf16,int8" suffix:"*" omit:"default" why:"full-graph strategies send rows by --wire-dtype, and p3 and naive-hop send no rows of features" help:"type that rows of features of other hosts travel in: none (as they are), bf16 or int8 with a scale per row"`
}

// CacheOptions are those of a cache of rows of features that other hosts own.
type CacheOptions struct {
	Cache       string `json:"cache" values:"none,degree,frequency,s3fifo" try:"degree,frequency,s3fifo" suffix:"*" resume:"free" omit:"default" why:"full-graph strategies exchange rows that change, and p3 and naive-hop pull no rows" help:"rows of other hosts' features that a worker keeps: none, those of the highest degree, those that batches need most often, or those that were used last (S3-FIFO)"`
	CacheBudget string `json:"cache_budget" of:"cache" resume:"free" omit:"default" help:"memory of a worker's cache, as 256MiB"`
}

// Validate refuses what is no amount of memory.
func (o *CacheOptions) Validate() error {
	_, err := exchange.ParseBytes("--cache-budget", o.CacheBudget)
	return err
}

// given reports whether a cache was asked for, and is not just what the strategy does.
func (o *CacheOptions) given(c train.Choice) bool {
	for _, option := range c.Descriptor.Options() {
		if option.Name == "cache" {
			return o.Cache != "none" && o.Cache != option.Default
		}
	}
	return false
}

func (o *CacheOptions) bytes() int64 {
	bytes, _ := exchange.ParseBytes("", o.CacheBudget)
	return bytes
}

// distributed trains on batches whose vertices are anywhere.
type distributed struct {
	train.Strategy // measures
	site           *train.Site
	opt            Options
	store          *store.Store
	roots          roots
	rows           store.Packed
	loops          bool // there are some in the graph
	told           wire.Bytes
	drawn          expected // what an epoch sends for batches
	newSampler     func() remoteSampler
	redundancy     float64 // of the workers' shares of a batch: rows over distinct ones
	guided         DGSOptions
	dgs            *dgs                                 // nil: nothing is explained
	count          int                                  // batches of an epoch, where roots do not say
	all            int                                  // the same where this is no dry run
	shared         struct{ asked, needed atomic.Int64 } // edges that LADIES' probabilities were made of

	// Where pairs are learnt.
	pairs      *pairBatches
	evaluation *pairEvaluation
	model      *nn.Model
	embeddings *embeddings // nil: none are learnt
	// together computes batches that are shared in a server; nil: none are.
	together *coBlocks

	cancel   context.CancelFunc
	prefetch source
	batches  *batches // that are trained on
}

func newDistributed(s *train.Site, o distOptions) (train.Strategy, error) {
	d, setup, err := prepared(s, o)
	if err != nil {
		return nil, err
	}
	if err := d.expect(setup, d.allTraffic); err != nil {
		return nil, err
	}
	d.told = setup.Sent
	return d, nil
}

// prepared is a strategy that has all but what an epoch is expected to send.
func prepared(s *train.Site, o distOptions) (*distributed, *exchange.Setup, error) {
	d, setup, err := open(s, o)
	if err != nil {
		return nil, nil, err
	}
	if err := d.fillCache(&o.CacheOptions); err != nil {
		return nil, nil, err
	}
	return d, setup, d.openDGS(setup, &o.DGSOptions)
}

// open is a strategy whose workers know what batches are made of and draw from each other's
// parts.
func open(s *train.Site, o distOptions) (*distributed, *exchange.Setup, error) {
	opt := s.Opt.Batches.(Options)
	if s.Alone {
		return nil, nil, train.Unplanned(s.Opt.Strategy.Name())
	}
	if s.Opt.Embeddings != nil { // the input changes
		s.Opt.CacheFirst = false
		if s.Part.Features == nil {
			part := *s.Part
			part.Features = noFeatures(part.Core())
			s.Part = &part
		}
	}
	if g := seen(s.Part.In, s.Opt); g != s.Part.In { // features of edges would be sent for nothing
		part := *s.Part
		part.In, s.Part = g, &part
	}
	w := site.Worker(s, exchange.DefaultRows, exchange.RelayOption{})
	d := &distributed{site: s, opt: opt, rows: store.PackedOf(o.PullDType)}
	setup := exchange.NewSetup(w)
	training, err := d.seedVertices(setup, o.Roots)
	if err != nil {
		return nil, nil, err
	}
	if d.Strategy, err = site.Halo(w); err != nil {
		return nil, nil, err
	}
	if s.Opt.Inductive {
		if err := d.seeTraining(setup, training); err != nil {
			return nil, nil, err
		}
	}
	return d, setup, d.join(setup, training)
}

// seeTraining has batches drawn from the edges between training vertices, as graph.Subgraph has
// them, of which a worker has those of its part. Measuring goes over all edges.
func (d *distributed) seeTraining(setup *exchange.Setup, training []uint32) error {
	seen, w := marked(int(d.site.Part.Book.Nodes), training), *setup.W
	setup.W = &w
	part, err := reduced(setup, func(u, v uint32) bool { return seen[w.Global(u)] && seen[w.Global(v)] }, false)
	if err != nil {
		return fmt.Errorf("inductive training: %w", err)
	}
	on := *d.site
	on.Part, w.Part, d.site = part, part, &on
	return nil
}

// seedVertices learns from the other workers what batches are made of: the training vertices,
// unless pairs are learnt.
func (d *distributed) seedVertices(setup *exchange.Setup, how string) (training []uint32, err error) {
	s := d.site
	if s.Opt.Pairs == nil {
		if training, err = trainingList(setup); err != nil {
			return nil, err
		}
		d.roots = newRoots(how, s.Part.Book, s.End.Rank(), training, d.opt.Size, s.Opt.Seed)
		return training, nil
	}
	parts, err := newLinkParts(setup, s.Opt.Pairs)
	if err != nil {
		return nil, err
	}
	s.Part, setup.W.Part = parts.part, parts.part
	d.pairs = newPairBatches(setup, parts, s, d.opt, how)
	d.roots = d.pairs.roots
	return nil, nil
}

// join learns from the other workers what batches need.
func (d *distributed) join(setup *exchange.Setup, training []uint32) (err error) {
	if d.loops, err = anyLoops(setup); err != nil {
		return err
	}
	s := d.site
	d.all = d.roots.batches()
	if s.MemoryOnly {
		d.roots = fewRoots{d.roots, min(dryBatches, d.roots.batches())}
	}
	if d.store, err = store.Open(s.Ctx, s.Part, s.End, d.draws()); err != nil {
		return err
	}
	if s.Opt.Embeddings != nil {
		if err := d.addEmbeddings(); err != nil {
			return err
		}
	}
	if d.pairs != nil {
		if err := d.pairs.serve(d.store); err != nil {
			return err
		}
		if _, err := setup.Share(0); err != nil { // all have tables to pull from
			return err
		}
		if err := d.prepareRanked(setup); err != nil {
			return err
		}
	}
	return d.joinSampler(setup, training)
}

// global are the batches of all workers together.
func (d *distributed) global() *globalRoots {
	if few, ok := d.roots.(fewRoots); ok {
		return few.roots.(*globalRoots)
	}
	return d.roots.(*globalRoots)
}

// steps is how many batches an epoch has.
func (d *distributed) steps() int {
	if d.count > 0 {
		return d.count
	}
	return d.roots.batches()
}

func (d *distributed) draws() store.Options {
	return store.Options{Replace: d.opt.Replace, Weighted: d.opt.Weighted, Rows: d.rows,
		DrawByCalls: d.pairs != nil && d.pairs.opt.Walks == 0 || d.site.Opt.Inductive}
}

// Caches are what the next epoch needs of this worker: the embeddings of its vertices, or masks.
func (d *distributed) Caches() []nn.Tensor {
	switch {
	case d.embeddings != nil:
		return d.embeddings.kept()
	case d.dgs != nil:
		return d.dgs.kept()
	}
	return d.Strategy.Caches()
}

// Unfilled is what buffers of batches take that a dry run, of a few batches, did not have.
func (d *distributed) Unfilled() int64 {
	if d.batches == nil || d.prefetch == nil {
		return 0
	}
	return int64(max(0, d.prefetch.unfilled(2*d.all))) * d.batches.held
}

// Steps is how many an epoch has.
func (d *distributed) Steps() int { return d.steps() }

// AllSteps is how many an epoch of the run has: a dry run has a few.
func (d *distributed) AllSteps() int { return d.all }

// Train is the loop's training of an epoch.
func (d *distributed) Train(f *train.Loop) func(epoch int, lr float64) (float64, error) {
	return d.trainOn(f, func(ctx context.Context, host *hostSide) source { return d.prefetcher(ctx, host, f) })
}

// trainOn trains on batches from anywhere.
func (d *distributed) trainOn(f *train.Loop, from func(context.Context, *hostSide) source) func(epoch int,
	lr float64) (float64, error) {
	ctx, cancel := context.WithCancel(d.site.Ctx)
	d.cancel = cancel
	on := &onBlocks{dev: f.Dev, loops: d.loops, features: f.X.Matrix}
	labels := d.site.Part.Labels
	if d.pairs != nil {
		labels = nil
	}
	host := newHostSide(f, d.site.Part.In, d.site.Part.Features, labels, d.loops)
	d.dgs.begin(f)
	d.prefetch = from(ctx, host)
	m := &batches{Loop: f, count: d.steps(), on: on, joined: true, dry: d.site.MemoryOnly, prefetch: d.prefetch,
		embeddings: d.embeddings,
		together:   d.together, stepped: d.dgs.stepped}
	d.batches = m
	if d.pairs == nil {
		if d.embeddings != nil {
			f.Measure = d.embeddings.measure(f)
		}
		return m.epoch
	}
	o := train.LinkOptions{PerPair: d.pairs.opt.PerPair, PerPositive: d.pairs.opt.Walks > 0}
	d.evaluation.links = train.LinksOn(f, o)
	f.Measure = d.measurePairs
	if d.embeddings != nil {
		f.Measure = d.embeddings.measure(f)
	}
	return (&links{Links: d.evaluation.links, link: LinkOptions{LinkOptions: o}, batches: m}).epoch
}

// seeder gives a sampler the seed vertices of batches.
func (d *distributed) seeder() func(ctx context.Context, m *store.Sampler, epoch, number int) (*seedBatch, error) {
	if d.pairs == nil {
		return func(_ context.Context, _ *store.Sampler, epoch, number int) (*seedBatch, error) {
			list, scale := d.roots.seeds(epoch, number)
			return &seedBatch{list, func(b *sample.Batch) { b.Scale = scale }}, nil
		}
	}
	drawer := d.pairs.drawer()
	return func(ctx context.Context, m *store.Sampler, epoch, number int) (*seedBatch, error) {
		if err := drawer.draw(ctx, epoch, number); err != nil {
			return nil, err
		}
		m.Exclude(drawer.excluded)
		return &seedBatch{drawer.seeds, drawer.fill}, nil
	}
}

// seedBatch is the seed vertices of a batch, and what completes it when it is sampled.
type seedBatch struct {
	vertices []uint32
	complete func(b *sample.Batch)
}

// waiting is how many more batches than threads are drawn at a time where other hosts own some of
// their vertices: a batch waits for answers once per hop and once for rows, and others draw meanwhile.
const waiting = 2

// atOnce is how many batches are drawn at a time.
func (d *distributed) atOnce() int {
	if d.store.AllInPlace() {
		return d.opt.threads()
	}
	return d.opt.threads() + waiting
}

// prefetcher draws batches on some threads.
func (d *distributed) prefetcher(ctx context.Context, host *hostSide, f *train.Loop) *prefetcher {
	var drawers []drawer
	for range d.atOnce() {
		drawers = append(drawers, &remoteDrawer{ctx: ctx, of: d, puller: d.store.Puller(), sampler: d.newSampler()})
	}
	return newPrefetcher(d.steps(), d.opt.threads(), drawers, host, f.State, f.Opt.Epochs)
}

// Plan is measuring's: what batches need depends on draws.
func (d *distributed) Plan(m *nn.Model) *wire.Plan {
	measure, p := d.Strategy.Plan(m), wire.NewPlan()
	p.AtMost = d.store.Learns()
	p.Prepare.AddAll(measure.Prepare, 1)
	p.Prepare.AddAll(d.told, 1)
	p.Measure, p.OnceMeasured = measure.Measure, measure.OnceMeasured
	p.OnceMeasured.AddAll(measure.Once, 1)
	p.Drawn, p.Deviation = d.drawn.bytes, d.drawn.deviation()
	d.planDGS(p)
	if d.embeddings != nil && d.site.End.Rank() > 0 { // the table goes to rank 0, once, when the run ends
		p.Prepare.Add(wire.Class{Kind: wire.Embedding, Layer: -1, Link: d.site.End.Link(0)}, d.embeddings.OwnBytes())
	}
	if d.embeddings != nil && d.embeddings.async {
		d.planSums(p.Measure, 1) // all gradients have arrived
	}
	if d.pairs != nil {
		d.model = m
		d.planRanked(p, m.Config.Out)
	}
	return p
}

// Finish ends drawing, and then what other workers draw from here.
func (d *distributed) Finish() error {
	if d.prefetch != nil {
		d.cancel()
		d.prefetch.stop()
		d.reportRows()
		d.reportDGS()
	}
	d.dgs.stop()
	err := d.Strategy.Finish()
	if d.store == nil {
		return err
	}
	if last := d.store.Close(); err == nil {
		err = last
	}
	return err
}

// drawFrom fills a batch by a sampler.
func (r *batch) drawFrom(ctx context.Context, m remoteSampler, epoch, number int) error {
	if r.pulled == nil {
		r.pulled = &pulled{}
	}
	any, err := m.sample(ctx, &r.Batch, &r.pulled.known, epoch, number)
	r.empty = !any
	return err
}

// remoteDrawer draws blocks from the owners of vertices and pulls their rows.
type remoteDrawer struct {
	ctx     context.Context
	of      *distributed
	sampler remoteSampler
	puller  *store.Puller
}

func (r *remoteDrawer) draw(b *batch, epoch, number int) error {
	g, err := r.of.guidance(r.ctx, epoch, number)
	if err == nil {
		err = g.apply(r.sampler, r.puller)
	}
	if err != nil {
		return err
	}
	if err := b.drawFrom(r.ctx, r.sampler, epoch, number); err != nil {
		return err
	}
	if err := b.pulled.pull(r.ctx, r.puller, b, b.Vertices[:b.outputs()], r.of.site.Opt.RowNormalize); err != nil {
		return err
	}
	b.prepare()
	return nil
}
