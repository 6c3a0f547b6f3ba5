package mini

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"starling/coflow"
	"starling/collective"
	"starling/event"
	"starling/nn"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// hopgnn moves models to features (Chen et al., "HopGNN: Boosting Distributed GNN Training
// Efficiency via Feature-Centric Model Migration", 2024). Every worker's model has a
// random share of the batch, as in model-centric training. A seed vertex is computed on the
// server that owns it, with the k-hop neighbourhood that is drawn for it (a micrograph), most
// of which is there too. In an iteration of N time steps model d is on server (d+t) mod N at
// step t and takes its weights W and the gradients it has so far along:
//
//	g_d ← g_d + Σ_{seeds of d on that server} ∇loss(seed; W) / batch size
//
// After the last step all g_d are all-reduced, and W changes. So the gradient is that of
// distdgl with --roots random, and of one worker.
//
// Pre-gathering fetches the rows that a server needs in all steps of an iteration at once, each
// once. Merging removes time steps, from the second epoch on one more per epoch as long as
// epochs get shorter: fewer migrations and more seed vertices per step, against more remote
// rows.
//
// All models have the same weights when an iteration begins, so that migrating them cannot
// change the gradient: distdgl with --roots owner computes every seed vertex where it is owned
// with the weights that are there, and all-reduces as often, without migrating anything: see
// docs/strategies/hopgnn.md.
var hopgnn = train.Describe(train.Descriptor{
	Name: "hopgnn", Mode: train.MiniBatch, Typical: true, Baseline: "distdgl",
	Paper: &train.Paper{Title: "HopGNN, Chen et al., 2024", Claim: "1.3x to 3.1x over DGL, miss rate 76.5% to 23.3%",
		Why: "the paper's rows travel to GPUs; here a step costs what the link takes, and migrations cost two " +
			"models per step"},
	Exact: "always", Sends: "the model and its gradients N-1 times per batch, and fewer remote rows",
	UseWhen: "features are much larger than the model",
	Check:   refusing(neighbourOnly),
}, hopOptions{DGSOptions: noDGS, PullOptions: models.PullOptions, CacheOptions: models.CacheOptions, PreGather: true,
	Merge: "auto", MergeOrder: "fewest"}, newHop)

// models have a random share of a batch each.
var models = distributedBy("random", "none")

type hopOptions struct {
	DGSOptions
	PullOptions
	CacheOptions
	PreGather  bool   `json:"pre_gather" suffix:"pregather" omit:"default" help:"hopgnn: fetch the rows of all time steps of a batch at once, each once"`
	Merge      string `json:"merge" suffix:"*" omit:"default" help:"hopgnn: time steps that are merged into others: a number, or auto, one more per epoch as long as epochs get shorter"`
	MergeOrder string `json:"merge_order" values:"fewest,random" suffix:"*" omit:"default" help:"hopgnn: merge the time step with the fewest seed vertices, or any"`
}

// Validate refuses a number of merged steps that is none.
func (o *hopOptions) Validate() error {
	if n, err := strconv.Atoi(o.Merge); o.Merge != "auto" && (err != nil || n < 0) {
		return train.Mistake("hopgnn merges a number of time steps from 0, or auto, not %q", o.Merge)
	}
	if err := o.DGSOptions.validate(); err != nil {
		return err
	}
	return o.CacheOptions.Validate()
}

// hop is training on models that migrate.
type hop struct {
	*distributed
	opt     hopOptions
	batches *batches
	host    *hostSide
	merging
	messages [2][]byte // of models: received, sent
}

func newHop(s *train.Site, o hopOptions) (train.Strategy, error) {
	d, setup, err := open(s, distOptions{models.RootsOption, o.DGSOptions, o.PullOptions, o.CacheOptions})
	if err != nil {
		return nil, err
	}
	// What is computed here, and pulled, is of seed vertices that are owned here.
	d.global().random = false
	if err := d.fillCache(&o.CacheOptions); err != nil {
		return nil, err
	}
	d.global().random = true
	if err := d.openDGS(setup, &o.DGSOptions); err != nil {
		return nil, err
	}
	h := &hop{distributed: d, opt: o}
	h.merging.begin(o, s.End.Size())
	if from := s.Opt.Resume; from != nil {
		h.merging.resume(from.Caches)
	}
	if err := d.expectFrom(setup, h.traffic); err != nil {
		return nil, err
	}
	d.told = setup.Sent
	return h, nil
}

// traffic is that of the time steps of a few batches, with as many merged as now.
func (h *hop) traffic(epoch, most int, add func(vertices []uint32, batch []store.Traffic)) error {
	n, me := h.site.End.Size(), h.site.End.Rank()
	m := h.store.Sampler(h.distributed.opt.Fanouts, h.site.Opt.Seed, h.draws())
	var b sample.Batch
	var known store.Known
	for number := range min(most, h.steps()) {
		it, sum := h.itinerary(epoch, number, h.merged), make([]store.Traffic, n)
		all := map[uint32]bool{} // vertices whose rows are gathered before the first step
		for j := range it.at {
			seeds := it.seeds[j][it.model(j, me, n)]
			if err := m.Sample(h.site.Ctx, &b, &known, seeds, epoch, number); err != nil {
				return err
			}
			for q, t := range m.Drawn() {
				sum[q].Add(t)
			}
			h.store.AddLabels(sum, seeds)
			if !h.opt.PreGather {
				h.store.AddFeatures(sum, b.Vertices)
				continue
			}
			for _, v := range b.Vertices {
				all[v] = true
			}
		}
		h.store.AddFeatures(sum, slices.Collect(maps.Keys(all)))
		add(nil, sum)
	}
	return nil
}

// merging is how many time steps are merged: of an epoch, by how long earlier ones took.
type merging struct {
	merged  int
	most    int
	settled bool // the pattern is kept
	last    float64
}

func (m *merging) begin(o hopOptions, servers int) {
	m.most = servers - 1
	if n, err := strconv.Atoi(o.Merge); err == nil {
		m.merged, m.settled = min(n, m.most), true
	}
}

// after takes in how long an epoch took: the second with no step merged, and then as long as it
// is shorter than the one before one more. The first, in which pages and connections are met for
// the first time, would make any other look short.
func (m *merging) after(seconds float64) (changed bool) {
	switch {
	case m.settled:
		return false
	case m.last == 0:
		m.last = math.MaxFloat64
		return false
	case seconds >= m.last:
		m.settled = true
		m.merged--
		return true
	case m.merged == m.most:
		m.settled = true
		return false
	}
	m.last = seconds
	m.merged++
	return true
}

// Caches are the merging's state, so that a run that is resumed merges as it did.
func (h *hop) Caches() []nn.Tensor {
	settled := 0.0
	if h.settled {
		settled = 1
	}
	return append(h.distributed.Caches(), nn.Tensor{Name: "merging", Shape: []int{3}, F64: true,
		Data: []float64{float64(h.merged), settled, h.last}})
}

func (m *merging) resume(caches []nn.Tensor) {
	for _, t := range caches {
		if t.Name == "merging" && len(t.Data) == 3 {
			m.merged, m.settled, m.last = min(int(t.Data[0]), m.most), t.Data[1] > 0, t.Data[2]
		}
	}
}

// Train is the loop's training of an epoch.
func (h *hop) Train(f *train.Loop) func(epoch int, lr float64) (float64, error) {
	h.host = newHostSide(f, h.site.Part.In, h.site.Part.Features, h.site.Part.Labels, h.loops)
	h.batches = &batches{Loop: f, count: h.steps(), joined: true, dry: h.site.MemoryOnly,
		on: &onBlocks{dev: f.Dev, loops: h.loops, features: f.X.Matrix}, stepped: h.dgs.stepped}
	h.distributed.batches = h.batches
	h.dgs.begin(f)
	h.prefetchFrom(f.State)
	return h.epoch
}

// prefetchFrom draws batches from a state on, with time steps merged as they are now.
func (h *hop) prefetchFrom(at train.State) {
	if h.prefetch != nil {
		h.cancel()
		h.prefetch.stop()
	}
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(h.site.Ctx)
	var drawers []drawer
	for range h.atOnce() {
		drawers = append(drawers, &hopDrawer{ctx: ctx, of: h, merged: h.merged, puller: h.store.Puller(),
			sampler: h.store.Sampler(h.distributed.opt.Fanouts, h.site.Opt.Seed, h.draws())})
	}
	h.prefetch = newPrefetcher(h.batches.count, h.distributed.opt.threads(), drawers, h.host, at,
		h.batches.Opt.Epochs)
	h.batches.prefetch = h.prefetch
}

// epoch is an iteration for every batch. It returns the mean loss of the seed vertices.
func (h *hop) epoch(epoch int, lr float64) (float64, error) {
	m, sum := h.batches, []float64{0, 0}
	err := m.each(epoch, m.Resumed(epoch, sum), func(b *batch) error {
		loss, err := h.iteration(b, lr)
		if err != nil {
			return err
		}
		for _, step := range b.steps {
			sum[1] += float64(len(step.Seeds))
		}
		sum[0] += loss
		m.done(epoch, b.Number)
		return m.StepDone(epoch, b.Number, sum)
	})
	if err != nil {
		return 0, err
	}
	if m.First { // its clock decides for all
		sum = append(sum, m.Elapsed())
	} else {
		sum = append(sum, 0)
	}
	if err := m.Peers.AllReduce(epoch, 0, sum); err != nil {
		return 0, err
	}
	if h.after(sum[2]) {
		h.note(epoch, sum[2])
		h.prefetchFrom(train.State{Epoch: epoch + 1})
	}
	return sum[0] / sum[1], nil
}

func (h *hop) note(epoch int, seconds float64) {
	if h.batches.First {
		h.site.Events.On(event.Note{Minor: true, Text: fmt.Sprintf("hopgnn: epoch %d took %.3g s; %d of %d time "+
			"steps are merged from now on",
			epoch, seconds, h.merged, h.most+1)})
	}
}

// iteration is all time steps of a batch, and the update. It returns the sum of the losses of
// the seed vertices that were computed here.
func (h *hop) iteration(b *batch, lr float64) (loss float64, err error) {
	m, n, me := h.batches, h.site.End.Size(), h.site.End.Rank()
	m.Model.ZeroGrad(m.Dev)
	end := m.Span("step")("forward")
	for j, step := range b.steps {
		if len(step.Seeds) > 0 { // a model without any idles
			loss += m.accumulate(step)
		}
		if next := j + 1; next < len(b.steps) {
			to := b.itinerary.server(next, b.itinerary.model(j, me, n), n)
			from := b.itinerary.server(j, b.itinerary.model(next, me, n), n)
			if err := h.migrate(b, next, to, from); err != nil {
				return 0, err
			}
		}
	}
	end()
	end = m.Span("step")("update")
	defer end()
	grads, err := m.Peers.Gradients(b.Epoch, b.Number, m.Model.Params)
	if err != nil {
		return 0, err
	}
	grads.Ready(m.Model.Params)
	if err := grads.Wait(); err != nil {
		return 0, err
	}
	m.Optim.Step(lr)
	return loss, nil
}

// accumulate adds the gradients of a batch's seed vertices to those of the parameters.
func (m *batches) accumulate(b *batch) float64 {
	m.on.begin(b)
	defer m.on.end()
	x := b.input(m.Dev, m.X, m.Opt)
	p := &nn.Pass{Dev: m.Dev, Agg: m.on, Train: true, Fewer: true, Rows: m.Opt.Rows,
		IDs: tensor.Indices(m.Dev, b.ids()),
		Key: passKey(m.Opt.Seed, b.Epoch, b.Number)}
	rows := m.Model.Forward(p, x)
	loss := b.task(m.Dev).Loss(m.Dev, rows, rows, tensor.Indices(m.Dev, b.Seeds), b.Scale)
	m.Model.Backward(p, rows)
	b.freeInput(m.Dev, x)
	return nn.TakeLoss(m.Dev, loss) / b.Scale
}

// migration is the key of a model on its way to a step.
func migration(b *batch, step int) wire.Key {
	return wire.Key{Coflow: coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: -1, Type: coflow.Params},
		Step: uint32(step)}
}

// migrate sends the model that is here, with its gradients, to where it is at a step, and
// takes in the one that comes: its weights, which are those that are here, and its gradients.
func (h *hop) migrate(b *batch, step, to, from int) error {
	bytes := 0
	for _, p := range h.batches.Model.Params {
		bytes += int(p.Value.Bytes() + p.Grad.Bytes())
	}
	for i := range h.messages {
		h.messages[i] = slices.Grow(h.messages[i][:0], bytes)[:bytes]
	}
	in, out, dev := h.messages[0], h.messages[1], h.batches.Dev
	h.each(out, func(m tensor.Matrix, part []byte) {
		dev.Pack(part, m, tensor.Packing{})
	})
	coming := h.site.End.Recv(from, migration(b, step), wire.Parameter, in)
	leaving := h.site.End.Send(to, migration(b, step), wire.Parameter, out)
	if err := errors.Join(coming.Wait(h.site.Ctx), leaving.Wait(h.site.Ctx)); err != nil {
		return err
	}
	h.each(in, func(m tensor.Matrix, part []byte) { dev.Unpack(m, part, tensor.Packing{}) })
	return nil
}

// each goes through weights and gradients and their parts of a message.
func (h *hop) each(message []byte, do func(m tensor.Matrix, part []byte)) {
	for _, p := range h.batches.Model.Params {
		for _, m := range []tensor.Matrix{p.Value, p.Grad} {
			do(m, message[:m.Bytes()])
			message = message[m.Bytes():]
		}
	}
}

// Plan is that of batches, and of models on their way.
func (h *hop) Plan(m *nn.Model) *wire.Plan {
	p := h.distributed.Plan(m)
	bytes := int64(0)
	for _, q := range m.Params {
		bytes += q.Value.Bytes() + q.Grad.Bytes()
	}
	n, me, merged := h.site.End.Size(), h.site.End.Rank(), h.merged
	p.AtMost = p.AtMost || !h.settled // models migrate less, the more steps are merged
	p.Epoch = func(epoch int) wire.Bytes {
		out := wire.Bytes{}
		for q, t := range collective.AllReduceSent(collective.Ordered, me, n, 1, 8) { // how long the epoch took
			out.Add(wire.Class{Kind: wire.Control, Layer: -1, Link: h.site.End.Link(q)}, t.Bytes)
		}
		for number := h.site.Opt.Resume.StepsOf(epoch); number < h.roots.batches(); number++ {
			it := h.itinerary(epoch, number, merged)
			for j := 1; j < len(it.at); j++ {
				to := it.server(j, it.model(j-1, me, n), n)
				out.Add(wire.Class{Kind: wire.Parameter, Layer: -1, Link: h.site.End.Link(to)}, bytes)
			}
		}
		return out
	}
	return p
}

// itinerary is that of a batch.
func (h *hop) itinerary(epoch, number, merged int) *itinerary {
	all := h.global().order.Batch(epoch, number)
	seed := h.site.Opt.Seed
	key := rng.New(seed).Fold(useMerge).Fold(uint64(epoch)).Fold(uint64(number))
	return newItinerary(deal(all, h.site.End.Size(), seed, epoch, number), h.site.Part.Book.Owner, merged,
		h.opt.MergeOrder == "random", key)
}

// hopDrawer draws the micrographs of a worker's time steps.
type hopDrawer struct {
	ctx     context.Context
	of      *hop
	merged  int
	sampler *store.Sampler
	puller  *store.Puller
	all     []uint32
	at      map[uint32]uint32
	rows    pulled
}

func (r *hopDrawer) draw(b *batch, epoch, number int) error {
	h := r.of
	g, err := h.guidance(r.ctx, epoch, number)
	if err == nil {
		err = g.apply(r.sampler, r.puller)
	}
	if err != nil {
		return err
	}
	b.itinerary = h.itinerary(epoch, number, r.merged)
	b.Epoch, b.Number = epoch, number
	for len(b.steps) < len(b.itinerary.at) {
		b.steps = append(b.steps, &batch{hostSide: b.hostSide, pulled: &pulled{}})
	}
	b.steps = b.steps[:len(b.itinerary.at)]
	for j, step := range b.steps {
		seeds := b.itinerary.seeds[j][b.itinerary.model(j, h.site.End.Rank(), h.site.End.Size())]
		if err := r.sampler.Sample(r.ctx, &step.Batch, &step.pulled.known, seeds, epoch, number); err != nil {
			return err
		}
		step.Scale = 1 / float64(h.global().order.Size())
		if !h.opt.PreGather {
			if err := step.pulled.pull(r.ctx, r.puller, step, seeds, h.site.Opt.RowNormalize); err != nil {
				return err
			}
		}
	}
	if h.opt.PreGather {
		if err := r.preGather(b.steps); err != nil {
			return err
		}
	}
	for _, step := range b.steps {
		step.prepare()
	}
	return nil
}

// preGather pulls the rows that all steps need, each once.
func (r *hopDrawer) preGather(steps []*batch) error {
	r.all, r.at = r.all[:0], map[uint32]uint32{}
	for _, step := range steps {
		for _, v := range step.Vertices {
			if _, ok := r.at[v]; !ok {
				r.at[v] = uint32(len(r.all))
				r.all = append(r.all, v)
			}
		}
	}
	whole := &batch{Batch: sample.Batch{Epoch: steps[0].Epoch, Number: steps[0].Number, Vertices: r.all}}
	if err := r.rows.pull(r.ctx, r.puller, whole, nil, r.of.site.Opt.RowNormalize); err != nil {
		return err
	}
	for _, step := range steps {
		step.pulled.take(r.rows.rows(), step.Vertices, r.at)
		if err := r.puller.Labels(r.ctx, step.pulls(), &step.pulled.labels,
			step.Vertices[:len(step.Seeds)]); err != nil {
			return err
		}
	}
	return nil
}
