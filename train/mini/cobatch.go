package mini

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
	"starling/wire"
)

// cobatch is cooperative batching (Song et al., "GraNNDIS: Fast Distributed Graph Neural Network
// Training Framework for Multi-Server Clusters", PACT 2024, §5.2 and §6): a batch is divided over
// servers, not workers, and the workers of a server compute its share together, each vertex of each
// layer once. With C_w the vertices that worker w computes, D_l the destinations of layer l:
//
//	x_l[v] = layer_l(x_{l-1}[sources of v])    v in D_l ∩ C_w, [|D_l ∩ C_w|, width]
//
// where rows of sources that other workers of the server compute come from these, inside the server,
// and their gradients return. Between servers travel features of a server's batch, each row once, and
// gradients of parameters. The gradient is that of one worker with the whole batch.
//
// With --eas (§5.3, store.Expansion) a server's batch is its seed vertices, all edges between them, and
// at most F neighbours of each, H hops far; the batch of one worker is then another.
var cobatch = train.Describe(train.Descriptor{
	Name: "cobatch", Mode: train.MiniBatch, Typical: true, Baseline: "salient",
	Paper: &train.Paper{Title: "GraNNDIS, Song et al., PACT 2024",
		Claim: "cooperative batching 1.6x to 12.7x over SALIENT++ to the same accuracy",
		Why: "rows inside a server go over NVLink there and through memory here, and four GPUs save four times the " +
			"same rows; the gain is the redundancy of workers' batches, which shows in the table"},
	Exact: "`--roots owner` and `random`, without `eas`",
	Sends: "features of a server's batch once, rows of every layer inside servers",
	UseWhen: "workers of a server draw the same vertices: large batches, many layers, several workers per " +
		"server",
	Check:   refusing(cooperates),
	Overlap: train.Overlap{Ahead: true},
	TakesOver: func(from train.Choice) string {
		return "cobatch:eas" + cmp.Or(from.Setting("eas"), defaultEAS)
	},
}, cobatchOptions{distOptions: distributedBy("owner", "none")}, newCobatch)

type cobatchOptions struct {
	distOptions
	EAS string `json:"eas" main:"" exact:"-" help:"expansion-aware sampling beyond a server's own vertices, as HOPS,FANOUT; none: all"`
}

// Parse reads eas or easH,F.
func (o *cobatchOptions) Parse(text string) error {
	sampling, ok := cutEAS(text)
	if !ok {
		return fmt.Errorf("cobatch takes eas or easHOPS,FANOUT, as in cobatch:eas1,15; not %q", text)
	}
	o.EAS = sampling
	return nil
}

// Setting writes what Parse reads.
func (o *cobatchOptions) Setting() string {
	if o.EAS == "" {
		return ""
	}
	return "eas" + o.EAS
}

// Validate refuses batches that are each worker's own.
func (o *cobatchOptions) Validate() error {
	if o.Roots == "local" {
		return graph.Apart("--strategy cobatch", "--roots local",
			"it divides the batches of all workers over servers, "+
				"and local gives each worker its own", "use --roots owner or random")
	}
	if o.EAS != "" {
		if _, err := newExpansion(o.EAS); err != nil {
			return err
		}
	}
	if o.DGS && o.nodes() {
		return graph.Apart("--strategy cobatch", "--dgs masks of neighbours", "the workers of a server draw one batch "+
			"together, and masks are each worker's own", "use --dgs-masks features, or --strategy distdgl")
	}
	return o.distOptions.Validate()
}

// cooperative is training on batches that the workers of a server share.
type cooperative struct {
	*distributed
	at      server
	worker  *exchange.Worker
	options cobatchOptions
	// Rows that a layer sends to workers in an epoch, forwards and backwards, by block and rank.
	forward, backward [][]estimate
	told              []atomic.Int64 // bytes of vertices, by rank: see codraw.go
	tells             bool
}

func newCobatch(s *train.Site, o cobatchOptions) (train.Strategy, error) {
	d, setup, err := open(s, o.distOptions)
	if err != nil {
		return nil, err
	}
	first, last := setup.W.Server()
	c := &cooperative{distributed: d, worker: setup.W, options: o, at: server{first: first, last: last,
		me: s.End.Rank(), workers: s.End.Size(), owner: s.Part.Book.Owner}, told: make([]atomic.Int64, s.End.Size())}
	d.global().byServers(s.Part.Book)
	if first+1 == last {
		setup.W.Note("cobatch: every server has one worker, so that no rows are shared; give --servers fewer")
	}
	if err := c.joinSampler(); err != nil {
		return nil, err
	}
	if err := d.fillCache(&o.CacheOptions); err != nil {
		return nil, err
	}
	if err := d.openDGS(setup, &o.DGSOptions); err != nil {
		return nil, err
	}
	if err := c.expect(setup); err != nil {
		return nil, err
	}
	d.told = setup.Sent
	return c, nil
}

// joinSampler has samplers draw a worker's share of its server's batch.
func (c *cooperative) joinSampler() error {
	whole := c.newSampler
	if c.options.EAS != "" {
		e, err := newExpansion(c.options.EAS)
		if err != nil {
			return err
		}
		whole = func() remoteSampler { return &expansionShare{c.store.Expansion(e.hops, e.fanout), c.distributed} }
	}
	c.newSampler = func() remoteSampler { return &coSampler{remoteSampler: whole(), of: c, share: &coShare{}} }
	// In a dry run nothing is told, and what a share takes is the same.
	if c.tells = c.opt.Sampler == "neighbour" && c.options.EAS == "" && !c.site.MemoryOnly; c.tells {
		c.newSampler = func() remoteSampler {
			return &coHops{Hops: c.store.Hops(c.site.Opt.Seed, c.draws()), of: c, share: &coShare{}}
		}
	}
	return nil
}

// coSampler draws the batch of the whole server and takes the worker's share. All workers of a server
// do so: what each draws is a function of the batch alone.
type coSampler struct {
	remoteSampler
	of    *cooperative
	batch sample.Batch
	known store.Known
	split coSplit
	host  *hostSide
	share *coShare
}

func (m *coSampler) sample(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool, error) {
	any, err := m.remoteSampler.sample(ctx, &m.batch, &m.known, epoch, number)
	if err != nil {
		return false, err
	}
	m.share.reset(len(m.batch.Blocks), m.host)
	m.split.split(&m.of.at, &m.batch, &m.known, b, known, m.share, m.of.site.Part.In.EdgeDim)
	return any, nil
}

// into has the next share written elsewhere, for blocks on a host.
func (m *coSampler) into(s *coShare, host *hostSide) { m.share, m.host = s, host }

func (m *coSampler) drawn() *coShare { return m.share }

// shareSampler is a sampler of shares.
type shareSampler interface {
	remoteSampler
	into(s *coShare, host *hostSide)
	drawn() *coShare
}

// expect is what an epoch will send, from a few batches.
func (c *cooperative) expect(setup *exchange.Setup) error {
	var sent, back [][][][kinds]float64 // by block, rank and batch
	err := c.distributed.expect(setup, func(m remoteSampler, b *sample.Batch, _ *store.Known) []store.Traffic {
		for i, x := range m.(shareSampler).drawn().blocks {
			if i == len(sent) {
				sent, back = append(sent, make([][][kinds]float64, c.at.workers)),
					append(back, make([][][kinds]float64, c.at.workers))
			}
			for q := range c.at.workers {
				sent[i][q] = append(sent[i][q], [kinds]float64{float64(x.sendPtr[q+1] - x.sendPtr[q])})
				back[i][q] = append(back[i][q], [kinds]float64{float64(x.haloPtr[q+1] - x.haloPtr[q])})
			}
		}
		return m.Traffic(b)
	})
	for q := range c.told {
		setup.Sent.Add(c.worker.Class(wire.Topology, -1, q), c.told[q].Load())
	}
	for i := range sent {
		c.forward, c.backward = append(c.forward, nil), append(c.backward, nil)
		for q := range c.at.workers {
			c.forward[i] = append(c.forward[i], c.perEpoch(sent[i][q], 0))
			c.backward[i] = append(c.backward[i], c.perEpoch(back[i][q], 0))
		}
	}
	return err
}

// Plan is that of drawing and measuring, with the rows that a server's workers exchange.
func (c *cooperative) Plan(m *nn.Model) *wire.Plan {
	plan, sent := c.distributed.Plan(m), expected{total: c.drawn.total}
	rows, scores := c.site.Dev.RowType(c.site.Opt.Rows).Size(), c.site.Dev.Type().Size()
	for _, t := range m.Traffic(c.site.Part.Features.Kind() == graph.Sparse, true, true) {
		block := min(t.Layer, len(c.forward)-1)
		for q := c.at.first; q < c.at.last && block >= 0; q++ {
			if q == c.at.me {
				continue
			}
			add := func(kind wire.Kind, layer int, e estimate, bytes int) {
				sent.add(c.worker.Class(kind, layer, q), e.times(bytes))
			}
			if c.tells {
				add(wire.Topology, t.Layer, c.backward[block][q], toldBytes)
			}
			add(wire.Feature, 0, c.forward[block][q], t.Once*rows)
			add(wire.Activation, t.Layer, c.forward[block][q], t.Forward.Rows*rows+t.Forward.Scores*scores)
			add(wire.Gradient, t.Layer, c.backward[block][q], t.Backward.Rows*rows+t.Backward.Scores*scores)
		}
	}
	drawn := wire.Bytes{}
	drawn.AddAll(plan.Drawn, 1)
	drawn.AddAll(sent.bytes, 1)
	plan.Drawn, plan.Deviation = drawn, sent.deviation()
	return plan
}

// Train is the loop's training of an epoch.
func (c *cooperative) Train(f *train.Loop) func(epoch int, lr float64) (float64, error) {
	c.together = newCoBlocks(c.worker, f.Dev, c.loops)
	return c.trainOn(f, func(ctx context.Context, host *hostSide) source {
		var drawers []drawer
		for range c.atOnce() {
			drawers = append(drawers, &coDrawer{ctx: ctx, of: c, puller: c.store.Puller(),
				sampler: c.newSampler().(shareSampler), blocks: hostOfShares(host)})
		}
		return newPrefetcher(c.steps(), c.opt.threads(), drawers, host, f.State, f.Opt.Epochs)
	})
}

// coDrawer draws shares and pulls the rows of their vertices.
type coDrawer struct {
	ctx     context.Context
	of      *cooperative
	sampler shareSampler
	puller  *store.Puller
	blocks  *hostSide
}

func (r *coDrawer) draw(b *batch, epoch, number int) error {
	if b.share == nil {
		b.share = &coShare{}
	}
	g, err := r.of.guidance(r.ctx, epoch, number)
	if err == nil {
		err = g.apply(nil, r.puller) // a server's workers draw alike
	}
	if err != nil {
		return err
	}
	r.sampler.into(b.share, r.blocks)
	if err := b.drawFrom(r.ctx, r.sampler, epoch, number); err != nil {
		return err
	}
	if err := b.pulled.pull(r.ctx, r.puller, b, b.Vertices[:b.outputs()], r.of.site.Opt.RowNormalize); err != nil {
		return err
	}
	b.prepare()
	return nil
}
