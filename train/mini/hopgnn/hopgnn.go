// Package hopgnn moves models to features.
package hopgnn

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"starling/coflow"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/train/batch/dgs"
	"starling/train/batch/embeddings"
	"starling/train/batch/pairs"
	"starling/wire"
)

// Strategy moves models to features (Chen et al., "HopGNN: Boosting Distributed GNN Training
// Efficiency via Feature-Centric Model Migration", 2024). Every worker's model has a
// random share of the batch, as in model-centric training. A seed vertex is computed on the
// server that owns it, with the k-hop neighbourhood that is drawn for it (a micrograph), most
// of which is there too. N is the number of servers; without --servers every worker is one. In an
// iteration of N time steps model d of server s is on server (s+t) mod N at step t, on the worker in
// its place there, and takes its weights W and the gradients it has so far along:
//
//	g_d ← g_d + Σ_{seeds of d on that server} ∇loss(seed; W) / batch size
//
// After the last step all g_d are all-reduced, and W changes. So the gradient is the same as with
// distdgl and --roots random, and with one worker.
//
// Pre-gathering fetches the rows that a server needs in all steps of an iteration at once, each
// once. Merging removes time steps: fewer migrations and more seed vertices per step, against
// more remote rows (merging.go).
//
// All models have the same weights when an iteration begins, so that migrating them cannot
// change the gradient: distdgl with --roots owner computes every seed vertex where it is owned
// with the weights that are there, and all-reduces as often, without migrating anything: see
// docs/strategies/hopgnn.md.
var Strategy = train.Describe(train.Descriptor{
	Name: "hopgnn", Mode: train.MiniBatch, Typical: true, Pairs: true, Baseline: "distdgl",
	Paper: &train.Paper{Title: "HopGNN, Chen et al., 2024", Claim: "1.3x to 3.1x over DGL, miss rate 76.5% to 23.3%",
		Why: "the paper's rows travel to GPUs; here a step costs what the link takes, and migrations cost two " +
			"models per step"},
	Exact: "always", Sends: "the model and its gradients N-1 times per batch on N servers, and fewer remote rows",
	UseWhen: "features are much larger than the model",
	Check: batch.Refusing(batch.NotProbable, batch.NotOnDisk, batch.Timeless, embeddings.Check,
		dgs.Check, batch.WholeBatches),
}, options{Options: dgs.Off, PullOptions: batch.AsTheyAre, CacheOptions: batch.CachedBy("none"), PreGather: true,
	Merge: "auto", MergeOrder: "fewest"}, build)

type options struct {
	dgs.Options
	batch.PullOptions
	batch.CacheOptions
	PreGather  bool   `json:"pre_gather" suffix:"pregather" omit:"default" help:"hopgnn: fetch the rows of all time steps of a batch at once, each once"`
	Merge      string `json:"merge" main:"" try:"0,time" omit:"default" help:"hopgnn: time steps that are merged into others: a number; auto, the one with which workers send the fewest bytes; or time, one more per epoch as long as epochs take less time"`
	MergeOrder string `json:"merge_order" values:"fewest,random" suffix:"*" omit:"default" help:"hopgnn: merge the time step with the fewest seed vertices, or any"`
}

// Validate refuses what is no number of merged steps.
func (o *options) Validate() error {
	n, err := strconv.Atoi(o.Merge)
	if o.Merge != "auto" && o.Merge != byTime && (err != nil || n < 0) {
		return train.Mistake("hopgnn merges a number of time steps from 0, auto or time, not %q", o.Merge)
	}
	switch {
	case o.Cache == batch.Belady && o.Merge == byTime:
		return graph.Apart("--cache belady", "--merge time",
			"batches are drawn before it is known how many steps they have", "use --merge auto or a number")
	case o.Cache == batch.Belady && !o.PreGather:
		return graph.Apart("--cache belady", "--pre-gather=false", "rows are fetched once for all steps of a batch",
			"leave out one of the two")
	}
	return cmp.Or(o.Options.Validate(), o.CacheOptions.Validate())
}

// hop is training on models that migrate.
type hop struct {
	p        *batch.Pipeline
	opt      options
	merged   int       // time steps, if there is no trial
	trial    *trial    // of merging, by time; nil: the number is known
	empty    float64   // the share of batches that no worker has a seed vertex of
	messages [2][]byte // of models: received, sent
	training *batch.Steps
	learns   batch.Objective
	ahead    *batch.RowsAhead // nil: batches fetch rows when they are drawn
	free     freeRows         // of steps, where rows come ahead
}

func build(s *train.Site, o options) (train.Strategy, error) {
	// Every model has a random share of a batch.
	p, err := batch.Open(s, batch.Setting{Roots: "random", PullDType: o.PullDType}, embeddings.New(s), pairs.New(s),
		dgs.New(s, o.Options))
	if err != nil {
		return nil, err
	}
	h := &hop{p: p, opt: o}
	p.Redrawn, p.OwnDrawers = true, true // by time steps
	// Blocks that are computed here, and rows that are pulled, belong to the seed vertices of all models.
	if err := p.Prepare(o.CacheOptions, h.share(0, allSteps)); err != nil {
		return nil, err
	}
	if h.merged, err = h.decide(); err != nil {
		return nil, err
	}
	drawn, empty := 0, 0
	expected, err := p.ExpectFrom(func(epoch int, numbers []int, add func([]uint32, []store.Traffic)) error {
		return h.traffic(h.merged, epoch, numbers, func(t []store.Traffic, any bool) {
			if drawn++; !any {
				empty++
			}
			add(nil, t)
		})
	})
	if err != nil {
		return nil, err
	}
	h.empty = float64(empty) / float64(max(drawn, 1))
	expected.HasEmpty(h.empty)
	return p.Strategy(expected, batch.Method{Source: h.source, Epoch: h.train, Plan: h.plan, Kept: h.kept}), nil
}

// traffic is what the time steps of batches cost, some of them merged; any: some worker has a seed vertex.
func (h *hop) traffic(merged, epoch int, numbers []int, add func(batch []store.Traffic, any bool)) error {
	s := h.p.Site
	share := h.share(merged, 0)
	m := h.p.NewSampler(share)
	var b sample.Batch
	var known store.Known
	for _, number := range numbers {
		sum, some := make([]store.Traffic, s.End.Size()), false
		all := map[uint32]bool{} // vertices whose rows are gathered before the first step
		var steps [][]uint32
		for share.step = range h.steps(merged) {
			any, err := m.Fill(s.Ctx, &b, &known, epoch, number)
			if err != nil {
				return err
			}
			some = some || any
			for q, t := range m.Drawn() {
				sum[q].Add(t)
			}
			if s.Opt.Pairs == nil {
				h.p.Store.AddLabels(sum, b.Vertices[:batch.Outputs(&b)])
			}
			steps = append(steps, slices.Clone(b.Vertices))
			if !h.opt.PreGather {
				h.p.Store.AddFeatures(sum, b.Vertices)
				continue
			}
			for _, v := range b.Vertices {
				all[v] = true
			}
		}
		h.p.Store.AddFeatures(sum, slices.Collect(maps.Keys(all)))
		h.p.AddSteps(sum, steps)
		add(sum, some)
	}
	return nil
}

// source draws batches from where the loop is.
func (h *hop) source(ctx context.Context, f *train.Loop, host *batch.Host) batch.Source {
	var shared chan *stepSampler
	return h.p.Prefetch(f, f.State, host, h.p.AtOnce(), func() batch.Drawer {
		r := &drawer{ctx: ctx, of: h}
		if h.ahead = h.p.Begun(); h.ahead == nil {
			r.puller, r.stepSampler = h.p.Store.Puller(), h.newSampler()
			return r
		}
		if shared == nil { // most batches of a window wait
			shared = make(chan *stepSampler, h.p.AtOnce())
			for range cap(shared) {
				shared <- h.newSampler()
			}
		}
		r.later = h.ahead.Puller()
		r.puller, r.shared = r.later, shared
		return r
	})
}

// stepSampler draws what a worker computes at a time step.
type stepSampler struct {
	share   *share
	sampler batch.Sampler
}

func (h *hop) newSampler() *stepSampler {
	share := h.share(h.merged, 0)
	return &stepSampler{share, h.p.NewSampler(share)}
}

// train is the training of an epoch.
func (h *hop) train(m *batch.Steps) func(epoch int, lr float64) (float64, error) {
	h.training, h.learns = m, h.p.Objective(m)
	return h.epoch
}

// epoch is an iteration for every batch. It returns the mean loss of the seed vertices, or pairs.
func (h *hop) epoch(epoch int, lr float64) (float64, error) {
	m, f, sum := h.training, h.training.Loop, []float64{0, 0}
	err := m.Each(epoch, f.Resumed(epoch, sum), func(b *batch.Batch) error {
		defer h.returnRows(b)
		if b.Empty {
			return nil
		}
		loss, err := h.iterate(b, lr)
		if err != nil {
			return err
		}
		for _, step := range b.Kept.(*iteration).steps {
			sum[1] += float64(h.learns.Count(step))
		}
		sum[0] += loss
		m.Done(epoch, b.Number)
		return f.StepDone(epoch, b.Number, sum)
	})
	if err == nil {
		err = f.AllReduce(epoch, 0, sum)
	}
	if err == nil {
		err = h.judge(epoch)
	}
	if err == nil && sum[1] == 0 && !m.Few() {
		err = train.Mistake("no batch of epoch %d has a seed vertex; use a larger --batch-size", epoch)
	}
	return sum[0] / max(sum[1], 1), err
}

// iteration is the batches of a batch's time steps, and where models are.
type iteration struct {
	steps     []*batch.Batch
	itinerary *itinerary
}

// Bytes is what the batches take on the host.
func (i *iteration) Bytes() (n int64) {
	for _, step := range i.steps {
		n += step.Bytes()
	}
	return n
}

// iterate is all time steps of a batch, and the update. It returns the sum of the losses of
// the seed vertices that were computed here.
func (h *hop) iterate(b *batch.Batch, lr float64) (loss float64, err error) {
	f, me := h.training.Loop, h.p.Site.End.Rank()
	i := b.Kept.(*iteration)
	f.Model.ZeroGrad(f.Dev)
	end := f.Span("step")("forward")
	for j, step := range i.steps {
		if len(step.Seeds) > 0 { // a model without any idles
			sum, err := h.training.Accumulate(step, h.learns)
			if err != nil {
				return 0, err
			}
			loss += sum
		}
		if next := j + 1; next < len(i.steps) {
			to := i.itinerary.worker(next, i.itinerary.model(j, me))
			from := i.itinerary.worker(j, i.itinerary.model(next, me))
			if err := h.migrate(b, next, to, from); err != nil {
				return 0, err
			}
		}
	}
	end()
	end = f.Span("step")("update")
	defer end()
	grads, err := f.Peers.Gradients(b.Epoch, b.Number, f.Model.Params)
	if err != nil {
		return 0, err
	}
	grads.Ready(f.Model.Params)
	if err := f.Waiting("gradients", grads.Wait); err != nil {
		return 0, err
	}
	return loss, h.training.Accumulated(b, lr)
}

// migration is the key of a model on its way to a step.
func migration(b *batch.Batch, step int) wire.Key {
	return wire.Key{Coflow: coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: -1, Type: coflow.Params},
		Step: uint32(step)}
}

// migrate sends the model that is here, with its gradients, to where it is at a step, and
// takes in the one that comes: its weights, which are those that are here, and its gradients.
func (h *hop) migrate(b *batch.Batch, step, to, from int) error {
	bytes := modelBytes(h.training.Loop.Model)
	for i := range h.messages {
		h.messages[i] = slices.Grow(h.messages[i][:0], bytes)[:bytes]
	}
	in, out, dev := h.messages[0], h.messages[1], h.training.Loop.Dev
	h.each(out, func(m tensor.Matrix, part []byte) {
		dev.Pack(part, m, tensor.Packing{})
	})
	coming := h.p.Site.End.Recv(from, migration(b, step), wire.Parameter, in)
	leaving := h.p.Site.End.Send(to, migration(b, step), wire.Parameter, out)
	if err := h.p.Site.Waiting("models", func() error {
		return errors.Join(coming.Wait(h.p.Site.Ctx), leaving.Wait(h.p.Site.Ctx))
	}); err != nil {
		return err
	}
	h.each(in, func(m tensor.Matrix, part []byte) { dev.Unpack(m, part, tensor.Packing{}) })
	return nil
}

// each goes through weights and gradients and their parts of a message.
func (h *hop) each(message []byte, do func(m tensor.Matrix, part []byte)) {
	for _, p := range h.training.Loop.Model.Params {
		for _, m := range []tensor.Matrix{p.Value, p.Grad} {
			do(m, message[:m.Bytes()])
			message = message[m.Bytes():]
		}
	}
}

// modelBytes is what a model takes on its way, with its gradients.
func modelBytes(m *nn.Model) (bytes int) {
	for _, p := range m.Params {
		bytes += int(p.Value.Bytes() + p.Grad.Bytes())
	}
	return bytes
}

// plan adds models on their way.
func (h *hop) plan(p *wire.Plan, m *nn.Model, _ *batch.Expected) {
	bytes := int64(modelBytes(m))
	p.Epoch = func(epoch int) wire.Bytes {
		out := wire.Bytes{}
		h.planTrial(out, epoch)
		share, from := h.share(h.mergedIn(epoch), 0), h.p.Site.Opt.Resume.StepsOf(epoch)
		if !h.knowsSeeds() {
			h.addModels(out, share.itineraryOf(nil, epoch, 0), bytes*int64(h.p.Taken(epoch, from, h.empty)))
			return out
		}
		for number := from; number < h.p.AllSteps(); number++ {
			h.addModels(out, share.itineraryOf(h.p.Seeds.Whole(epoch, number), epoch, number), bytes)
		}
		return out
	}
}

// addModels adds what this worker sends of models that go some way.
func (h *hop) addModels(to wire.Bytes, it *itinerary, bytes int64) {
	end := h.p.Site.End
	for j := 1; j < len(it.at); j++ {
		worker := it.worker(j, it.model(j-1, end.Rank()))
		to.Add(wire.Class{Kind: wire.Parameter, Layer: -1, Link: end.Link(worker)}, bytes)
	}
}

// drawer draws the micrographs of a worker's time steps.
type drawer struct {
	*stepSampler
	ctx    context.Context
	of     *hop
	puller batch.Puller
	all    []uint32
	at     map[uint32]uint32
	rows   batch.Pulled
	later  *store.AheadPuller // the puller, where rows come ahead
	shared chan *stepSampler  // which many drawers then use in turn
}

func (r *drawer) Draw(b *batch.Batch, epoch, number int) error {
	if r.later != nil {
		return r.drawAhead(b, epoch, number)
	}
	h := r.of
	g, err := h.p.Guidance(r.ctx, epoch, number)
	if err == nil {
		err = g.Apply(r.sampler, r.puller)
	}
	if err != nil {
		return err
	}
	i, ok := b.Kept.(*iteration)
	if !ok {
		i = &iteration{}
		b.Kept = i
	}
	b.Epoch, b.Number = epoch, number
	if err := r.sample(i, b); err != nil {
		return err
	}
	if h.opt.PreGather {
		if err := r.preGather(i.steps, b.Pulls()); err != nil {
			return err
		}
	}
	for _, step := range i.steps {
		step.Prepare()
	}
	return nil
}

// sample draws the batches of all time steps and pulls their rows, unless these are gathered for all together.
func (r *drawer) sample(i *iteration, b *batch.Batch) error {
	h := r.of
	merged, err := h.awaitMerged(r.ctx, b.Epoch)
	if err != nil {
		return err
	}
	n := h.steps(merged)
	r.share.merged = merged
	for len(i.steps) < n {
		i.steps = append(i.steps, batch.NewBatch(b.Host))
	}
	i.steps = i.steps[:n]
	b.Empty = true
	for j, step := range i.steps {
		r.share.step = j
		any, err := r.sampler.Fill(r.ctx, &step.Batch, &step.Pulled.Known, b.Epoch, b.Number)
		if err != nil {
			return err
		}
		b.Empty = b.Empty && !any
		if h.opt.PreGather {
			continue
		}
		if err := step.Pull(r.ctx, r.puller, step.Vertices[:step.Outputs()], h.p.Site.Opt.RowNormalize); err != nil {
			return err
		}
	}
	i.itinerary = r.share.last
	return nil
}

// preGather pulls the rows that all steps need, each once.
func (r *drawer) preGather(steps []*batch.Batch, id coflow.ID) error {
	r.gather(steps)
	r.rows.Begin(r.of.p.Site.Part.Book.Schema)
	if err := r.rows.PullRows(r.ctx, r.puller, id, r.all, r.of.p.Site.Opt.RowNormalize); err != nil {
		return err
	}
	for _, step := range steps {
		r.take(step, &r.rows)
	}
	return r.labels(steps)
}

// gather lists the vertices of all steps, each once.
func (r *drawer) gather(steps []*batch.Batch) {
	r.all, r.at = r.all[:0], map[uint32]uint32{}
	place := r.places()
	for _, step := range steps {
		for _, v := range step.Vertices {
			if _, ok := r.at[v]; !ok {
				r.at[v] = place(v)
				r.all = append(r.all, v)
			}
		}
	}
}

// take copies a step's rows from those of all steps.
func (r *drawer) take(step *batch.Batch, from *batch.Pulled) {
	book := r.of.p.Site.Part.Book
	if step.Pulled.Begin(book.Schema); book.Schema != nil {
		step.Pulled.TakeTypes(from, step.Vertices, r.at, book.TypeOf)
		return
	}
	step.Pulled.Take(from.Rows(), step.Vertices, r.at)
}

// labels pulls the labels of all steps.
func (r *drawer) labels(steps []*batch.Batch) error {
	for _, step := range steps {
		if step.Labels == nil {
			continue
		}
		if err := step.PullLabels(r.ctx, r.puller, step.Vertices[:step.Outputs()]); err != nil {
			return err
		}
	}
	return nil
}

// places are the places of the vertices that are gathered, in their order; in a typed graph among those of their type.
func (r *drawer) places() func(v uint32) uint32 {
	book := r.of.p.Site.Part.Book
	if book.Schema == nil {
		return func(uint32) uint32 { return uint32(len(r.all)) }
	}
	next := make([]uint32, len(book.Schema.Types))
	return func(v uint32) uint32 {
		t := book.TypeOf(v)
		next[t]++
		return next[t] - 1
	}
}
