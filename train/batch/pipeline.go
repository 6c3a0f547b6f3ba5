// Package batch is the pipeline of mini-batch training: what strategies of mini-batches are composed of, and training
// on batches in one process (Run). Read pipeline.go, then in the order that a batch goes: seeds.go, samplers.go,
// pulled.go, source.go, batch.go, blocks.go, steps.go. strategy.go makes a strategy of it, plan.go says what it will
// send, and decoration.go has the hooks by which dgs, pairs and embeddings take part.
package batch

import (
	"context"
	"fmt"
	"sync/atomic"

	"starling/exchange"
	"starling/sample"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
)

// Pipeline is what the batches of a worker, one of several, come through:
//
//	Seeds      which vertices of a batch are this worker's
//	Sampler    draws their neighbourhoods from the owners of vertices
//	Puller     brings the rows of the vertices drawn
//	Source     has batches drawn, pulled and prepared while others are trained on
//	Steps      trains on them
//
// A strategy opens one, changes what it does otherwise, and is made of it (Pipeline.Strategy).
type Pipeline struct {
	Site    *train.Site
	Options Options
	// Setup is what workers tell each other before training.
	Setup *exchange.Setup
	Store *store.Store
	Seeds Seeds
	// NewSampler makes a sampler of the batches of some seeds.
	NewSampler func(s Seeds) Sampler
	// Loops: the graph has self-loops.
	Loops bool
	// Measure goes over the whole graph, layer by layer.
	Measure train.Strategy
	// DrawnTogether: workers draw each batch together, so that a draw waits for theirs of the same batch.
	DrawnTogether bool
	// Redrawn: training does not take batches as they were drawn before it.
	Redrawn bool
	// OwnDrawers: the strategy draws training's batches itself.
	OwnDrawers bool

	rows   store.Packed  // as which they travel
	visits *store.Visits // of the sampler pinsage; nil: of others
	// training are all training vertices, in the order of one worker; nil: there is a task of another kind.
	training []uint32
	// times are of training vertices, in a temporal run.
	times map[uint32]int64
	// steps is the number of batches in an epoch; all the same where this is no dry run, which takes a few.
	steps, all int
	shared     struct{ asked, needed atomic.Int64 } // edges that LADIES' probabilities were made of

	decorations []Decoration
	task        Task
	guide       Guide
	input       Input
	looksAhead  bool    // batches are drawn to know what comes, also where no rows of features do
	ahead       *window // nil: batches fetch their rows when they are drawn
	disk        *onDisk // nil: features are mapped
	learner     learner // nil: none yet, or its sampler is none
}

// Setting is what a strategy chooses before its workers meet.
type Setting struct {
	Roots string // as RootsOption has it
	// Groups of workers that batches are divided over, of equally many workers in order of rank; 0: over workers.
	Groups    int
	PullDType string // as PullOptions has it; none: rows are not pulled
}

// Open has the workers learn what batches are made of, and draw from each other's parts.
func Open(s *train.Site, c Setting, with ...Decoration) (*Pipeline, error) {
	if s.Alone {
		return nil, train.Unplanned(s.Opt.Strategy.Name())
	}
	if g := Seen(s.Part.In, s.Opt); g != s.Part.In { // features of edges would be sent for nothing
		part := *s.Part
		part.In, s.Part = g, &part
	}
	if l := learntOn(s); l != nil {
		with = append([]Decoration{l}, with...) // others measure with its rows up to date
	}
	if s.Opt.Batches.Temporal != "" {
		with = append(with, &asOf{})
	}
	w := site.Worker(s, exchange.DefaultRows, exchange.RelayOption{})
	p := &Pipeline{Site: s, Options: Options(*s.Opt.Batches), Setup: exchange.NewSetup(w),
		rows: store.PackedOf(c.PullDType), decorations: with,
		task: only[Task](with), guide: only[Guide](with), input: only[Input](with)}
	if err := p.divide(c); err != nil {
		return nil, err
	}
	var err error
	if p.Measure, err = site.Halo(w); err != nil {
		return nil, err
	}
	if s.Opt.Inductive {
		if err := p.seeTraining(); err != nil {
			return nil, err
		}
	}
	return p, p.join()
}

// divide learns from the other workers what batches are made of: the training vertices, or what
// another task has.
func (p *Pipeline) divide(c Setting) (err error) {
	if p.task != nil {
		p.Seeds, err = p.task.Seeds(p, c.Roots)
		return err
	}
	if p.training, err = trainingList(p.Setup); err != nil {
		return err
	}
	if p.Options.Temporal != "" {
		if p.times, err = trainingTimes(p.Setup); err != nil {
			return err
		}
	}
	if p.Seeds = p.SeedsBy(c.Roots); c.Groups > 0 {
		s := p.Site
		p.Seeds = groupSeeds(c, s.Part.Book, s.End.Rank(), p.training, p.Options.Size, s.Opt.Seed)
	}
	return nil
}

// SeedsBy are the training vertices divided in another way.
func (p *Pipeline) SeedsBy(roots string) Seeds {
	s := p.Site
	return NewSeeds(roots, s.Part.Book, s.End.Rank(), p.training, p.Options.Size, s.Opt.Seed)
}

// seeTraining has batches drawn from the edges between training vertices, as graph.Subgraph has
// them, of which a worker has those of its part. Measuring goes over all edges.
func (p *Pipeline) seeTraining() error {
	seen, w := marked(int(p.Site.Part.Book.Nodes), p.training), *p.Setup.W
	p.Setup.W = &w
	part, err := Reduced(p.Setup, func(u, v uint32) bool { return seen[w.Global(u)] && seen[w.Global(v)] }, false)
	if err != nil {
		return fmt.Errorf("inductive training: %w", err)
	}
	on := *p.Site
	on.Part, w.Part, p.Site = part, part, &on
	return nil
}

// join learns from the other workers what batches need.
func (p *Pipeline) join() (err error) {
	if p.Loops, err = anyLoops(p.Setup); err != nil {
		return err
	}
	p.count(p.Seeds.Batches())
	if p.Store, err = store.Open(p.Site.Ctx, p.Site.Part, p.Site.End, p.Draws()); err != nil {
		return err
	}
	for _, d := range each[Joiner](p.decorations) {
		if err := d.Join(p); err != nil {
			return err
		}
	}
	batches := 0
	if p.NewSampler, batches, err = samplersOf(p); batches > 0 {
		p.count(batches)
	}
	return err
}

// count sets the number of batches in an epoch.
func (p *Pipeline) count(batches int) {
	p.steps, p.all = batches, batches
	if p.Site.MemoryOnly {
		p.steps = min(dryBatches, batches)
	}
}

// Prepare fills the cache by the batches of seeds, and has decorations prepare.
func (p *Pipeline) Prepare(o CacheOptions, seeds Seeds) error {
	if o.Policy(true) != Belady {
		if err := p.keepEdges(&o, seeds); err != nil {
			return err
		}
	}
	if err := p.fillCache(&o, seeds); err != nil {
		return err
	}
	for _, d := range each[Preparer](p.decorations) {
		if err := d.Prepare(p); err != nil {
			return err
		}
	}
	return nil
}

// OwnerOf is the owner of one of the things that batches of all workers are made of.
func (p *Pipeline) OwnerOf(v uint32) int { return p.Seeds.(*globalSeeds).owner(v) }

// Steps is the number of batches in an epoch: a dry run has a few.
func (p *Pipeline) Steps() int { return p.steps }

// AllSteps is the number of batches in an epoch of the run.
func (p *Pipeline) AllSteps() int { return p.all }

// Draws says how the store draws and packs.
func (p *Pipeline) Draws() store.Options {
	return store.Options{Replace: p.Options.Replace, Weighted: p.Options.Weighted, Rows: p.rows,
		RelationFanouts: p.Options.RelationFanouts, Unread: p.Site.MemoryOnly, Visits: p.visits,
		DrawByCalls: p.task != nil && p.task.DrawsByCalls() || p.Site.Opt.Inductive}
}

// Sampler is a sampler of the worker's batches.
func (p *Pipeline) Sampler() Sampler { return p.NewSampler(p.Seeds) }

// Neighbours is the store's sampler of neighbours, with the run's fanouts.
func (p *Pipeline) Neighbours() *store.Sampler {
	return p.Store.Sampler(p.Options.Fanouts, p.Site.Opt.Seed, p.Draws())
}

// Chunks is the same in chunks of hops.
func (p *Pipeline) Chunks() *store.Chunks {
	return p.Store.Chunks(p.Options.Fanouts, p.Site.Opt.Seed, p.Draws())
}

// Seeder gives a sampler the seed vertices of batches, one batch at a time. It may ask owners for them.
type Seeder interface {
	Next(ctx context.Context, m *store.Sampler, epoch, number int) (*SeedBatch, error)
}

// Branching is a Seeder that finds the seed vertices of a batch in branches, some before others. It gives them to add
// in their order, none twice; SeedBatch has all of them.
type Branching interface {
	Branches(ctx context.Context, m *store.Sampler, epoch, number int, add func(branch []uint32)) (*SeedBatch, error)
}

// InBranches are the seed vertices of a batch, in branches if the seeder has any, else in one.
func InBranches(ctx context.Context, s Seeder, m *store.Sampler, epoch, number int,
	add func(branch []uint32)) (*SeedBatch, error) {
	if b, ok := s.(Branching); ok {
		return b.Branches(ctx, m, epoch, number, add)
	}
	seeds, err := s.Next(ctx, m, epoch, number)
	if err == nil {
		add(seeds.Vertices)
	}
	return seeds, err
}

// SeedBatch is this worker's seed vertices of a batch, and what completes the batch when it is sampled.
type SeedBatch struct {
	Vertices []uint32
	Empty    bool // no worker has any
	Complete func(b *sample.Batch)
}

// AsksForSeeds reports whether seed vertices come over the network.
func (p *Pipeline) AsksForSeeds() bool { return p.task != nil }

// Seeder gives a sampler its seeds, unless there is a task of another kind.
func (p *Pipeline) Seeder(s Seeds) Seeder {
	if p.task != nil {
		return p.task.Seeder(s)
	}
	return trainingSeeder{s}
}

// Objective is what outputs of a batch are learnt by: labels, or what another task has.
func (p *Pipeline) Objective(m *Steps) Objective {
	if p.task != nil {
		return p.task.Objective(m)
	}
	return m.Labels()
}

type trainingSeeder struct{ of Seeds }

func (s trainingSeeder) Next(_ context.Context, _ *store.Sampler, epoch, number int) (*SeedBatch, error) {
	return &SeedBatch{Vertices: s.of.Seeds(epoch, number),
		Complete: func(b *sample.Batch) { b.Scale = s.of.Scale() }}, nil
}

// InputDraws is the dropout of the features in a batch's step, by the ids of vertices; its P is 0 where there is none.
func (p *Pipeline) InputDraws(epoch, number int) tensor.Dropout {
	return p.Site.Opt.Model.InputDraws(passKey(p.Site.Opt.Seed, epoch, number))
}

// Guided reports whether batches wait for what they are drawn by.
func (p *Pipeline) Guided() bool { return p.guide != nil }

// Guidance is what a batch is drawn and pulled by, once that is known.
func (p *Pipeline) Guidance(ctx context.Context, epoch, number int) (g Guidance, err error) {
	if p.guide == nil {
		return g, nil
	}
	return p.guide.Guide(ctx, epoch, number)
}

// waiting is the number of batches more than threads that are drawn at a time where other hosts own some of
// their vertices: a batch waits for answers once per hop and once for rows, and others draw meanwhile.
const waiting = 2

// NotesRows reports whether batches that are drawn ahead note which learnt rows they need. Batches of pairs do not, and
// those of a strategy's own drawers: their rows are pulled when the batch's turn comes.
func (p *Pipeline) NotesRows() bool { return p.looksAhead && !p.OwnDrawers && p.Site.Opt.Pairs == nil }

// AtOnce is the number of batches that are drawn at a time.
func (p *Pipeline) AtOnce() int {
	if p.Store.AllInPlace() {
		return p.Options.ThreadCount()
	}
	return p.Options.ThreadCount() + waiting
}

// underWay is the number of batches that are under way where n are drawn at a time: others, one per thread, are
// prepared, and one is trained on.
func underWay(threads, n int) int { return n + threads + 1 }

// Prefetch has batches drawn from a state of the loop on, n at a time, each by a drawer.
func (p *Pipeline) Prefetch(f *train.Loop, at train.State, h *Host, n int, newDrawer func() Drawer) *Prefetcher {
	var drawers []Drawer
	p.beginOnDisk(f, at, h)
	for range n + p.ahead.begin(p.Store, h, p.steps, at, f.Opt.Epochs) {
		drawers = append(drawers, newDrawer())
	}
	return NewPrefetcher(p.steps, p.Options.ThreadCount(), drawers, h, at, f.Opt.Epochs)
}

// Drawer draws batches by a sampler of their own and completes each by pull, before it is prepared.
func (p *Pipeline) Drawer(ctx context.Context, m Sampler, pull func(ctx context.Context, b *Batch,
	from Puller) error) Drawer {
	return &drawer{ctx: ctx, of: p, sampler: m, puller: p.newPuller(), pull: pull}
}

type drawer struct {
	ctx     context.Context
	of      *Pipeline
	sampler Sampler
	puller  Puller
	pull    func(ctx context.Context, b *Batch, from Puller) error
}

// Draw is a batch. In a dry run it is the first of a few that some worker has a seed vertex of, since those
// without have no step and take no memory.
func (r *drawer) Draw(b *Batch, epoch, number int) error {
	end, order := r.of.batch(r.ctx, r.puller, b, epoch, number), epoch*r.of.steps+number
	err := r.draw(b, epoch, number)
	for tries := 1; r.of.Site.MemoryOnly && err == nil && b.Empty && tries < mostDryTries; tries++ {
		if number += r.of.steps; number >= r.of.all {
			break
		}
		err = r.draw(b, epoch, number)
	}
	if in, ok := r.of.input.(aheadInput); ok && err == nil {
		err = in.Drawn(r.ctx, b, order)
	}
	if err == nil {
		err = r.pull(r.ctx, b, r.puller)
	}
	if err = end(err); err != nil {
		return err
	}
	if !b.late {
		b.Prepare()
	}
	b.pack()
	return nil
}

// batch begins a batch whose rows a puller brings, and returns what ends that.
func (p *Pipeline) batch(ctx context.Context, from Puller, b *Batch, epoch, number int) (end func(error) error) {
	if d, ok := from.(*diskPuller); ok {
		d.begin(b, epoch, number)
		return func(err error) error { return d.end(ctx, err) }
	}
	return p.ahead.batch(ctx, from, epoch*p.steps+number)
}

// draw draws the batch's blocks.
func (r *drawer) draw(b *Batch, epoch, number int) error {
	g, err := r.of.Guidance(r.ctx, epoch, number)
	if err == nil {
		err = g.Apply(r.sampler, r.puller)
	}
	if err == nil {
		err = b.sample(r.ctx, r.sampler, epoch, number)
	}
	return err
}

// Pull brings a batch's rows and labels.
func (p *Pipeline) Pull(ctx context.Context, b *Batch, from Puller) error {
	return b.Pull(ctx, from, b.Vertices[:b.Outputs()], p.Site.Opt.RowNormalize)
}

// sample fills the batch by a sampler.
func (r *Batch) sample(ctx context.Context, m Sampler, epoch, number int) error {
	if r.Pulled == nil {
		r.Pulled = &Pulled{}
	}
	any, err := m.Fill(ctx, &r.Batch, &r.Pulled.Known, epoch, number)
	r.Empty = !any
	return err
}
