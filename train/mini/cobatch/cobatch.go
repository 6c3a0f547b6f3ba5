// Package cobatch has the workers of a server, or all of them, compute a batch together.
package cobatch

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/train/batch"
	"starling/train/batch/dgs"
	"starling/wire"
)

// Strategy is cooperative batching (Song et al., "GraNNDIS: Fast Distributed Graph Neural Network
// Training Framework for Multi-Server Clusters", PACT 2024, §5.2 and §6): a batch is divided over
// servers, not workers, and the workers of a server compute its share together, each vertex of each
// layer once. With C_w the vertices that worker w computes, D_l the destinations of layer l:
//
//	x_l[v] = layer_l(x_{l-1}[sources of v])    v in D_l ∩ C_w, [|D_l ∩ C_w|, width]
//
// where rows of sources that other workers of the server compute come from these, inside the server,
// and their gradients return. Between servers travel features of a server's batch, each row once, and
// gradients of parameters. The gradient is the same as with one worker and the whole batch.
//
// With --together all there is one batch, of which each vertex is computed by its owner, and rows travel between
// servers too. Then a worker pulls the features that its part of the first layer sums, which a cache may keep, and
// which are there before the step begins.
//
// With --eas (§5.3, store.Expansion) a server's batch is its seed vertices, all edges between them, and
// at most F neighbours of each, H hops far; the batch of one worker is then another.
var Strategy = train.Describe(train.Descriptor{
	Name: "cobatch", Mode: train.MiniBatch, Typical: true, Baseline: "salient",
	Paper: &train.Paper{Title: "GraNNDIS, Song et al., PACT 2024",
		Claim: "cooperative batching 1.6x to 12.7x over SALIENT++ to the same accuracy",
		Why: "rows inside a server go over NVLink there and through memory here, and four GPUs save four times the " +
			"same rows; the gain is the redundancy of workers' batches, which shows in the table"},
	Exact: "`--roots owner` and `random`, without `eas`",
	Sends: "features of a server's batch once, rows of every layer inside servers, or between all workers",
	UseWhen: "workers of a server draw the same vertices: large batches, many layers, several workers per " +
		"server",
	Check:   batch.Refusing(batch.NotOnDisk, batch.Timeless, dgs.Check, cooperates),
	Overlap: train.Overlap{Ahead: true},
}, options{Together: "server", RootsOption: batch.RootsOption{Roots: "owner"}, Options: dgs.Off,
	PullOptions: batch.AsTheyAre, CacheOptions: batch.CachedBy("none")}, build)

type options struct {
	batch.RootsOption
	dgs.Options
	batch.PullOptions
	batch.CacheOptions
	Together string `json:"together" values:"server,all" try:"all" suffix:"*" omit:"default" why:"with other mini-batch strategies workers compute shares of a batch by themselves" help:"who computes a batch together: the workers of a server, or all workers, each vertex its owner"`

	EAS string `json:"eas" main:"" exact:"-" help:"expansion-aware sampling beyond a server's own vertices, as HOPS,FANOUT; none: all"`
}

// TakesOver samples as the full-graph strategy would.
func (o *options) TakesOver(from train.Choice) string {
	return "cobatch:eas" + cmp.Or(from.Setting("eas"), defaultEAS)
}

// Parse reads eas or easH,F.
func (o *options) Parse(text string) error {
	sampling, ok := cutEAS(text)
	if !ok {
		return fmt.Errorf("cobatch takes eas or easHOPS,FANOUT, as in cobatch:eas1,15; not %q", text)
	}
	o.EAS = sampling
	return nil
}

// Setting writes what Parse reads.
func (o *options) Setting() string {
	if o.EAS == "" {
		return ""
	}
	return "eas" + o.EAS
}

// Validate refuses batches that are each worker's own.
func (o *options) Validate() error {
	if o.Roots == "local" {
		return graph.Apart("--strategy cobatch", "--roots local",
			"it divides the batches of all workers over servers, "+
				"and local gives each worker its own", "use --roots owner or random")
	}
	if o.Together == "all" && o.Roots != "owner" {
		return graph.Apart("--together all", "--roots "+o.Roots, "owners compute their vertices, seeds among them",
			"leave out one of the two")
	}
	if o.Together == "all" && o.KeepsEdges() {
		return graph.Apart("--together all", "--cache-edges "+o.Edges, "owners draw the edges of their vertices",
			"leave out --cache-edges")
	}
	if o.EAS != "" {
		if _, err := newExpansion(o.EAS); err != nil {
			return err
		}
	}
	if o.MasksNodes() {
		return graph.Apart("--strategy cobatch", "--dgs masks of neighbours", "the workers of a server draw one batch "+
			"together, and masks are each worker's own", "use --dgs-masks features, or --strategy "+elsewhere())
	}
	return cmp.Or(o.Options.Validate(), o.CacheOptions.Validate())
}

// cooperates refuses what a server cannot share.
func cooperates(o *train.Options, b *batch.Options, _ train.Facts) error {
	c, _ := train.OptionOf[options](o.Strategy)
	switch {
	case o.Model.GraphLayers() == 0:
		return graph.Apart(batch.Named(o), "--model "+o.Model.Model,
			"the workers of a server share rows of graph layers, and there are none", "use --strategy "+elsewhere())
	case b.Sampler == "cluster-local":
		return graph.Apart(batch.Named(o), "--sampler cluster-local",
			"it has one batch per server, and the sampler one per worker",
			"use --sampler cluster, or --strategy "+elsewhere())
	case c.EAS != "" && o.Model.Typed != nil:
		return graph.Apart("--eas", "a typed graph", "it makes kept edges heavier, and relations do not weigh them",
			"leave out --eas")
	case c.EAS != "" && b.Sampler != "neighbour":
		return graph.Apart("--eas", "--sampler "+b.Sampler, "it draws batches by itself", "leave out one of the two")
	case c.EAS != "" && o.Model.Model == "gin" && o.Model.EdgeDim > 0:
		return graph.Apart("--eas", "--edge-features of gin", "it makes kept edges heavier, and gin with features of "+
			"edges does not weigh them", "leave out --eas, or use --model gat")
	}
	return nil
}

// elsewhere is the strategy that does what this one refuses.
func elsewhere() string { return train.Find("cobatch").Baseline }

// cooperative is training on batches that the workers of a server share.
type cooperative struct {
	p       *batch.Pipeline
	at      server
	worker  *exchange.Worker
	options options
	// Rows that a layer sends to workers in an epoch, forwards and backwards, by block and rank.
	forward, backward [][]batch.Estimate
	sent              []atomic.Int64 // bytes of vertices, by rank: see draw.go
	tells             bool
	sums              bool // layers only sum rows, so that edges from local rows can be summed first
	pulled            bool // the first layer's features are pulled where it needs them, not exchanged
}

func build(s *train.Site, o options) (train.Strategy, error) {
	groups := 1
	if o.Together == "server" {
		groups = max(s.Part.Book.Servers, 1)
	}
	p, err := batch.Open(s, batch.Setting{Roots: o.Roots, Groups: groups, PullDType: o.PullDType},
		dgs.New(s, o.Options))
	if err != nil {
		return nil, err
	}
	p.OwnDrawers = true
	w, each := p.Setup.W, s.End.Size()/groups
	first := s.End.Rank() / each * each
	c := &cooperative{p: p, worker: w, options: o, at: server{first: first, last: first + each,
		me: s.End.Rank(), workers: s.End.Size(), owner: s.Part.Book.Owner}, sent: make([]atomic.Int64, s.End.Size())}
	if each == 1 {
		w.Note("cobatch: every server has one worker, so that no rows are shared; give --servers fewer, or " +
			"--together all")
	}
	_, c.sums = s.Opt.Model.Sums()
	c.sums = c.sums || s.Opt.Model.Model == "gin" && s.Opt.Model.EdgeDim == 0
	c.pulled = o.Together == "all" && c.pulls()
	if err := c.joinSampler(); err != nil {
		return nil, err
	}
	if err := p.Prepare(o.CacheOptions, p.Seeds); err != nil {
		return nil, err
	}
	expected, err := c.expect()
	if err != nil {
		return nil, err
	}
	return p.Strategy(expected, batch.Method{Source: c.source, Plan: c.plan,
		Over: func(f *train.Loop) batch.Aggregator { return newBlocks(w, f.Dev, p.Loops) }}), nil
}

// pulls reports whether the first layer sums features as they are, so that a worker that has those of its sources needs
// nothing of others.
func (c *cooperative) pulls() bool {
	s, m := c.p.Site, &c.p.Site.Opt.Model
	dense := s.Part.Features != nil && s.Part.Features.Kind() != graph.Sparse
	return dense && m.SplitsFirst() && s.Opt.Embeddings == nil && c.p.Options.Sampler == "neighbour" &&
		c.options.EAS == "" && !(m.DropsInput() && s.Part.Features.Cols > m.Hidden)
}

// joinSampler has samplers draw a worker's share of its server's batch.
func (c *cooperative) joinSampler() error {
	p, whole := c.p, c.p.NewSampler
	if c.options.EAS != "" {
		e, err := newExpansion(c.options.EAS)
		if err != nil {
			return err
		}
		whole = func(s batch.Seeds) batch.Sampler { return &expansionShare{p.Store.Expansion(e.hops, e.fanout), s} }
	}
	p.NewSampler = func(s batch.Seeds) batch.Sampler {
		return &serverSampler{Sampler: whole(s), of: c, share: &share{}}
	}
	// In a dry run nothing is told, and what a share takes is the same.
	if c.tells = p.Options.Sampler == "neighbour" && c.options.EAS == "" && !p.Site.MemoryOnly; c.tells {
		p.DrawnTogether = true
		p.NewSampler = func(s batch.Seeds) batch.Sampler {
			return &hops{Hops: p.Store.Hops(p.Site.Opt.Seed, p.Draws()), of: c, seeds: s, share: &share{}}
		}
	}
	return nil
}

// serverSampler draws the batch of the whole server and takes the worker's share. All workers of a server
// do so: what each draws is a function of the batch alone.
type serverSampler struct {
	batch.Sampler
	of    *cooperative
	whole sample.Batch
	known store.Known
	split splitter
	host  *batch.Host
	share *share
}

func (m *serverSampler) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	any, err := m.Sampler.Fill(ctx, &m.whole, &m.known, epoch, number)
	if err != nil {
		return false, err
	}
	m.share.reset(len(m.whole.Blocks), m.host)
	m.split.split(&m.of.at, &m.whole, &m.known, b, known, m.share, m.of.p.Site.Part.In.EdgeDim)
	if m.of.pulled {
		m.split.pull(&m.whole, &m.known, b, known, m.share.blocks[0])
	}
	return any, nil
}

// into has the next share written elsewhere, for blocks on a host.
func (m *serverSampler) into(s *share, host *batch.Host) { m.share, m.host = s, host }

func (m *serverSampler) Beside() batch.Beside { return m.share }
func (m *serverSampler) Take() batch.Beside   { return takeShare(&m.share) }

// shareSampler is a sampler of shares.
type shareSampler interface {
	batch.Sampler
	into(s *share, host *batch.Host)
}

// drawnShare is the share that a sampler drew last.
func drawnShare(m batch.Sampler) *share { return m.(batch.BesideSampler).Beside().(*share) }

// expect is what an epoch will send, from a few batches.
func (c *cooperative) expect() (*batch.Plan, error) {
	var sent, back [][][]float64 // by block, rank and batch
	computed := func(m batch.Sampler, b *sample.Batch) []uint32 {
		if c.pulled {
			return b.Vertices[:drawnShare(m).blocks[0].Blocks[0].Dst]
		}
		return b.Vertices
	}
	expected, err := c.p.ExpectOf(func(m batch.Sampler, b *sample.Batch, _ *store.Known) []store.Traffic {
		for i, x := range drawnShare(m).blocks {
			if i == len(sent) {
				sent = append(sent, make([][]float64, c.at.workers))
				back = append(back, make([][]float64, c.at.workers))
			}
			for q := range c.at.workers {
				sent[i][q] = append(sent[i][q], float64(x.sendPtr[q+1]-x.sendPtr[q]))
				back[i][q] = append(back[i][q], float64(x.haloPtr[q+1]-x.haloPtr[q]))
			}
		}
		t := m.Traffic(b)
		c.p.Store.AddLabels(t, b.Vertices[:drawnShare(m).Outputs()])
		c.p.AddSteps(t, [][]uint32{b.Vertices})
		return t
	}, computed)
	for q := range c.sent {
		bytes := c.sent[q].Load()
		c.p.EachKept(func(x batch.Beside) { bytes -= c.announced(x.(*share), q) }) // an epoch's plan has these
		c.p.Setup.Sent.Add(c.worker.Class(wire.Topology, -1, q), bytes)
	}
	for i := range sent {
		c.forward, c.backward = append(c.forward, nil), append(c.backward, nil)
		for q := range c.at.workers {
			c.forward[i] = append(c.forward[i], c.p.PerEpoch(sent[i][q]))
			c.backward[i] = append(c.backward[i], c.p.PerEpoch(back[i][q]))
		}
	}
	return expected, err
}

// announced is the vertices that a worker was sent when a share was drawn.
func (c *cooperative) announced(s *share, q int) (bytes int64) {
	for i, x := range s.blocks {
		if c.tells && q >= c.at.first && q < c.at.last && q != c.at.me && !c.exchangesNone(i) {
			bytes += toldHead + toldBytes*(x.haloPtr[q+1]-x.haloPtr[q])
		}
	}
	return bytes
}

// plan adds the rows that a server's workers exchange.
func (c *cooperative) plan(_ *wire.Plan, m *nn.Model, sent *batch.Expected) {
	s := c.p.Site
	rows, scores := s.Dev.RowType(s.Opt.Rows).Size(), s.Dev.Type().Size()
	sparse := s.Part.Features != nil && s.Part.Features.Kind() == graph.Sparse
	for _, t := range m.Traffic(sparse, nn.Kept, true) {
		block := min(t.Layer, len(c.forward)-1)
		for q := c.at.first; q < c.at.last && block >= 0; q++ {
			if q == c.at.me {
				continue
			}
			add := func(kind wire.Kind, layer int, e batch.Estimate, bytes int) {
				if e.Mean == 0 && !c.exchangesNone(block) {
					e.Mean = 1 // the batches that were drawn needed none, others may
				}
				sent.Add(c.worker.Class(kind, layer, q), e.Times(bytes))
			}
			if c.tells && !c.exchangesNone(block) {
				add(wire.Topology, t.Layer, c.backward[block][q], toldBytes)
				add(wire.Topology, t.Layer, batch.Estimate{Mean: float64(c.p.AllSteps())}, toldHead)
			}
			add(wire.Feature, 0, c.forward[block][q], t.Once*rows)
			add(wire.Activation, t.Layer, c.forward[block][q], t.Forward.Rows*rows+t.Forward.Scores*scores)
			add(wire.Gradient, t.Layer, c.backward[block][q], t.Backward.Rows*rows+t.Backward.Scores*scores)
		}
	}
}

// exchangesNone reports whether workers exchange nothing for a block.
func (c *cooperative) exchangesNone(block int) bool { return c.pulled && block == 0 }

// source draws the worker's shares of its server's batches.
func (c *cooperative) source(ctx context.Context, f *train.Loop, h *batch.Host) batch.Source {
	shared := c.p.SharedSamplers(c.p.AtOnce(), f.State)
	return c.p.Prefetch(f, f.State, h, c.p.AtOnce(), func() batch.Drawer {
		var m shareSampler
		if shared != nil {
			m = &sharedShare{SharedSamplers: shared}
		} else {
			m = c.p.Sampler().(shareSampler)
		}
		return &drawer{of: c.p.Drawer(ctx, m, c.pull), sampler: m, blocks: h.OfBlocks(false)}
	})
}

// sharedShare draws shares by samplers that many drawers use in turn.
type sharedShare struct {
	*batch.SharedSamplers
	share *share
	host  *batch.Host
}

func (m *sharedShare) into(s *share, host *batch.Host) { m.share, m.host = s, host }

func (m *sharedShare) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool, error) {
	return m.FillBeside(ctx, b, known, epoch, number,
		func(of batch.Sampler) { of.(shareSampler).into(m.share, m.host) },
		func(x batch.Beside) {
			*m.share = *x.(*share)
			m.share.on(m.host)
		})
}

// pull brings the rows of a share's vertices, and prepares its blocks.
func (c *cooperative) pull(ctx context.Context, b *batch.Batch, from batch.Puller) error {
	for _, x := range b.Kept.(*share).blocks {
		if x.Prepare(); c.sums && x.haloPtr[c.at.workers] > 0 {
			x.Divide(0, x.local)
		}
	}
	return c.p.Pull(ctx, b, from)
}

// drawer draws shares, which batches keep.
type drawer struct {
	of      batch.Drawer
	sampler shareSampler
	blocks  *batch.Host
}

func (r *drawer) Draw(b *batch.Batch, epoch, number int) error {
	s, ok := b.Kept.(*share)
	if !ok {
		s = &share{}
		b.Kept = s
	}
	r.sampler.into(s, r.blocks)
	return r.of.Draw(b, epoch, number)
}
