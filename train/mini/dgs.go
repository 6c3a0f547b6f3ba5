package mini

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// dgs asks the model which neighbours and features matter (Wan, Chen and Zhang, "DGS:
// Communication-Efficient Graph Sampling for Distributed GNN Training", ICNP 2022): after every T
// batches a background explainer takes the weights, learns masks of remote vertices and of columns
// over the worker's explanation graph (explain.go), and tells the owners of vertices. Draws of
// later batches prefer the neighbours of high masks (sample.Guide), and of remote rows only the
// columns of the highest masks are fetched; owners draw and select before bytes leave:
//
//	step  0 ......... T ......... 2T ......... 3T
//	      ordinary    │ ordinary   │ masks of T │ masks of 2T
//	                  └ explain ─▶─┘
//
// Masks of the weights after step s are used from batch s+T on, on all workers, so that a run is a
// function of its seed and partition: a batch that is drawn before its masks are there waits. With
// --dgs-async it does not, and goes by the last masks that are there.
//
// Masks are a worker's own: those of its remote vertices, for the batches that it computes.
type dgs struct {
	opt     DGSOptions
	of      *distributed
	x       *explanation
	remote  []uint32 // vertices that have masks
	loop    *train.Loop
	first   int // steps that were done when the run began
	total   int // steps of all epochs
	ctx     context.Context
	cancel  context.CancelFunc
	jobs    chan job
	running sync.WaitGroup

	mu struct {
		sync.Mutex
		versions map[int]*version
		latest   int
		done     int // steps
		use      train.ExplainerUse
	}
}

// version is the masks of some weights: number v is of those after v·T steps.
type version struct {
	ready   chan struct{}
	err     error
	nodes   []byte // of the remote vertices, m for m/255; nil: none
	missing byte
	columns []uint32 // that are fetched, ascending; nil: all
	keep    *store.Columns
}

// job is weights to be explained.
type job struct {
	number  int
	weights []nn.Tensor
}

// guidance is what a batch is drawn and pulled by.
type guidance struct {
	masks   uint32 // a version told to owners; 0: none
	columns *store.Columns
}

const (
	// maskDeadline bounds the wait for an explanation.
	maskDeadline = 10 * time.Minute
	// explainAttempts is how often one is begun whose goroutine ends before it is done.
	explainAttempts = 3
)

// explainerFault, if set, is called by every explainer as it begins: fault injection.
var explainerFault func(rank, number, attempt int)

// openDGS prepares what a run's masks need, if it has any: the explanation graph, for which the
// rows of remote vertices are pulled once, and owners that know of which vertices masks are.
func (d *distributed) openDGS(setup *exchange.Setup, o *DGSOptions) error {
	d.guided = *o
	if o.DropFeatures > 0 {
		d.store.PlanColumns(keptColumns(d.site.Part.Features.Cols, 1-o.DropFeatures))
	}
	if !o.DGS || d.site.MemoryOnly {
		return nil
	}
	s := d.site
	if err := d.store.ServeGuides(); err != nil {
		return err
	}
	if _, err := setup.Share(0); err != nil { // all serve
		return err
	}
	dev := s.Opt.HostDevice()
	each := vertexBytes(&s.Opt.Model, dev.Type().Size())
	g := &dgs{opt: *o, of: d, remote: explainedRemote(s.Part, o.bytes(), each), jobs: make(chan job, 2)}
	g.mu.versions = map[int]*version{}
	var rows graph.Features
	if err := d.store.FeaturesOnce(s.Ctx, &rows, g.remote); err != nil {
		return err
	}
	own, remote := s.Part.Features, &rows
	if s.Opt.RowNormalize {
		own, remote = own.RowNormalize(), remote.RowNormalize()
	}
	g.x = newExplanation(dev, s.Part, own, remote, g.remote, s.Opt.Model, s.Opt.Rows, o.bytes(), s.Opt.Seed)
	if err := d.store.GuideBy(s.Ctx, g.remote, o.DGSEpsilon); err != nil {
		return err
	}
	d.dgs = g
	if o.DGSAsync && s.End.Rank() == 0 {
		s.Events.On(event.Note{Text: "--dgs-async: masks take effect when they are ready, so this run is not " +
			"repeatable"})
	}
	if s.Opt.Resume != nil {
		return g.restore(s.Opt.Resume.Caches)
	}
	return nil
}

// begin starts the explainer of a loop.
func (g *dgs) begin(f *train.Loop) {
	if g == nil {
		return
	}
	g.loop, g.first, g.total = f, f.State.Epoch*g.of.steps()+f.State.Batch, f.Opt.Epochs*g.of.steps()
	g.mu.done = g.first
	g.ctx, g.cancel = context.WithCancel(g.of.site.Ctx)
	g.running.Go(func() {
		for j := range g.jobs {
			g.work(j)
		}
	})
}

// stop ends the explainer, whatever it is at.
func (g *dgs) stop() {
	if g == nil {
		return
	}
	if g.cancel != nil {
		g.cancel()
	}
	close(g.jobs)
	g.running.Wait()
	g.x.close()
}

// stepped is called after every step of a loop, the first is 0 of the run. After every T it has the
// weights explained, unless no batch would use the masks.
func (g *dgs) stepped(epoch, number int) {
	if g == nil {
		return
	}
	done, every := epoch*g.of.steps()+number+1, g.opt.DGSEvery
	g.forget(done)
	if done%every != 0 || !g.opt.DGSAsync && done+every >= g.total {
		return
	}
	g.slot(done / every)
	j := job{done / every, g.loop.Model.State(g.loop.Dev)}
	if !g.opt.DGSAsync {
		g.jobs <- j // there is place: batches have waited for the one before the last
		return
	}
	select {
	case g.jobs <- j:
	default: // an explainer that is late misses some weights
	}
}

// forget drops the versions that no batch after so many steps is drawn by.
func (g *dgs) forget(done int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	oldest := done/g.opt.DGSEvery - 1
	if g.opt.DGSAsync {
		oldest = g.mu.latest
	}
	for number := range g.mu.versions {
		if number < oldest {
			delete(g.mu.versions, number)
		}
	}
	g.mu.done = done
}

// slot is the place of a version.
func (g *dgs) slot(number int) *version {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.mu.versions[number]
	if v == nil {
		v = &version{ready: make(chan struct{})}
		g.mu.versions[number] = v
	}
	return v
}

// work explains weights and tells owners. An explainer that ends before it is done has lost nothing:
// what it explains depends on the weights and the part alone, and another begins anew.
func (g *dgs) work(j job) {
	v := g.slot(j.number)
	var out *explained
	for attempt := range explainAttempts {
		if out, v.err = g.explain(j, attempt); v.err == nil || g.ctx.Err() != nil {
			break
		}
		g.of.site.Events.On(event.Note{Text: fmt.Sprintf("worker %d's explainer of step %d failed and begins anew: %v",
			g.of.site.End.Rank(), j.number*g.opt.DGSEvery, v.err)})
	}
	if v.err == nil {
		g.fill(v, out)
		v.err = g.tell(g.ctx, j.number, v)
	}
	if v.err == nil || !g.opt.DGSAsync { // a late explanation is none
		g.publish(j.number, v)
	}
}

func (g *dgs) publish(number int, v *version) {
	g.mu.Lock()
	g.mu.latest = max(g.mu.latest, number)
	g.mu.Unlock()
	close(v.ready)
}

// explain runs an explainer in a goroutine and a thread of its own, whose time is counted.
func (g *dgs) explain(j job, attempt int) (*explained, error) {
	type outcome struct {
		*explained
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		out := outcome{err: fmt.Errorf("its goroutine ended")}
		runtime.LockOSThread()
		began := tensor.ThreadSeconds()
		defer func() {
			if r := recover(); r != nil {
				out = outcome{err: fmt.Errorf("it panicked: %v", r)}
			}
			g.count(tensor.ThreadSeconds()-began, out.explained)
			runtime.UnlockOSThread()
			done <- out
		}()
		if explainerFault != nil {
			explainerFault(g.of.site.End.Rank(), j.number, attempt)
		}
		found, err := g.x.explain(g.ctx, j.weights, explainOptions{nodes: g.opt.nodes(), columns: g.opt.columns(),
			epochs: g.opt.DGSEpochs, loss: g.opt.DGSLoss})
		out = outcome{found, err}
	}()
	got := <-done
	return got.explained, got.err
}

// count adds to what the explainer has taken.
func (g *dgs) count(seconds float64, out *explained) {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := &g.mu.use
	u.CPUSeconds += seconds
	u.Bytes = max(u.Bytes, g.x.bytes())
	u.Vertices = int64(len(g.remote))
	if out != nil {
		u.Explanations++
		u.Epochs += int64(out.epochs)
	}
}

// fill turns masks into probabilities and columns.
func (g *dgs) fill(v *version, out *explained) {
	if g.opt.nodes() {
		v.nodes, v.missing = quantized(out.nodes)
	}
	if kept := keptColumns(g.x.cols, g.opt.DGSFeatures); g.opt.columns() && kept < g.x.cols {
		v.keep = highest(out.columns, kept)
		v.columns = v.keep.List()
	}
}

// quantized are masks in bytes, none of them zero, and their mean.
func quantized(masks []float64) (out []byte, mean byte) {
	sum := 0.0
	out = make([]byte, len(masks))
	for i, m := range masks {
		out[i] = byte(max(1, math.Round(255*m)))
		sum += float64(out[i])
	}
	if len(out) == 0 {
		return out, 255
	}
	return out, byte(math.Round(sum / float64(len(out))))
}

// highest are the columns of the highest scores, of equal ones the first.
func highest(scores []float64, n int) *store.Columns {
	order := make([]uint32, len(scores))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(scores[b], scores[a]) })
	list := slices.Clone(order[:n])
	slices.Sort(list)
	return store.NewColumns(list, len(scores))
}

// tell gives owners the masks of a version.
func (g *dgs) tell(ctx context.Context, number int, v *version) error {
	if v.nodes == nil {
		return nil
	}
	return g.of.store.TellMasks(ctx, uint32(number), v.nodes, v.missing)
}

// guidance is what a batch is drawn and pulled by, once that is known.
func (d *distributed) guidance(ctx context.Context, epoch, number int) (guidance, error) {
	if d.guided.DropFeatures > 0 {
		return guidance{columns: d.guided.dropped(d.site.Part.Features, d.site.Opt.Seed, epoch, number)}, nil
	}
	if d.dgs == nil {
		return guidance{}, nil
	}
	return d.dgs.guidance(ctx, epoch*d.steps()+number)
}

func (g *dgs) guidance(ctx context.Context, batch int) (guidance, error) {
	number := g.wanted(batch)
	if number == 0 {
		return guidance{}, nil
	}
	v, err := g.await(ctx, number)
	if err != nil {
		return guidance{}, err
	}
	out := guidance{columns: v.keep}
	switch {
	case v.nodes == nil:
	case g.opt.DGSAsync:
		out.masks = store.LatestMasks
	default:
		out.masks = uint32(number)
	}
	return out, nil
}

// apply has a sampler draw and a puller fetch by the guidance.
func (g guidance) apply(m any, p *store.Puller) error {
	if s, ok := m.(interface{ Guide(version uint32) }); ok {
		s.Guide(g.masks)
	}
	return p.Keep(g.columns)
}

// await waits for a version.
func (g *dgs) await(ctx context.Context, number int) (*version, error) {
	v, end := g.slot(number), g.of.site.End
	due, timer := wire.Alarm(g.loop.Clock, maskDeadline)
	defer timer.Stop()
	select {
	case <-v.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-end.Done():
		return nil, end.Err()
	case <-due:
		return nil, fmt.Errorf("worker %d has waited %v for its explainer's masks of step %d; use a larger "+
			"--dgs-every or fewer --dgs-epochs", end.Rank(), maskDeadline, number*g.opt.DGSEvery)
	}
	if v.err != nil {
		return nil, fmt.Errorf("explaining the weights of step %d: %w", number*g.opt.DGSEvery, v.err)
	}
	return v, nil
}

// wanted is the version that a batch is drawn by; 0: none.
func (g *dgs) wanted(batch int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opt.DGSAsync {
		return g.mu.latest
	}
	number := batch/g.opt.DGSEvery - 1
	if number < 1 {
		return 0
	}
	// A run that goes on without the masks of a checkpoint begins as any other.
	if g.mu.versions[number] == nil && number*g.opt.DGSEvery <= g.first {
		return 0
	}
	return number
}

// planDGS adds masks to what an epoch sends. Rows are planned whole: masks are not known yet.
func (d *distributed) planDGS(p *wire.Plan) {
	if d.dgs == nil {
		return
	}
	p.AtMost = true
	if !d.dgs.opt.nodes() {
		return
	}
	drawn := wire.Bytes{}
	drawn.AddAll(p.Drawn, 1)
	each := int64(d.store.MaskBytes(len(d.dgs.remote)))
	perEpoch := (d.steps() + d.dgs.opt.DGSEvery - 1) / d.dgs.opt.DGSEvery
	for q := range d.site.End.Size() {
		if !d.store.InPlace(q) {
			drawn.Add(wire.Class{Kind: wire.Topology, Layer: -1, Link: d.site.End.Link(q)}, each*int64(perEpoch))
		}
	}
	p.Drawn = drawn
}

// reportDGS says what explanations took.
func (d *distributed) reportDGS() {
	if d.dgs == nil || d.site.End.Rank() > 0 {
		return
	}
	u := d.Explained()
	d.site.Events.On(event.Note{Minor: true, Text: fmt.Sprintf("worker 0's explainer took %.3g s of CPU time for %d "+
		"explanations of %d remote vertices, %.1f MiB at most", u.CPUSeconds, u.Explanations, u.Vertices,
		float64(u.Bytes)/(1<<20))})
}

// Explained is what the worker's explainer took.
func (d *distributed) Explained() (u train.ExplainerUse) {
	if d.dgs == nil {
		return u
	}
	d.dgs.mu.Lock()
	defer d.dgs.mu.Unlock()
	return d.dgs.mu.use
}
