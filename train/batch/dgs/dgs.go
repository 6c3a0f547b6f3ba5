// Package dgs decorates mini-batches with DGS: draws and pulls are guided by what an explainer learns of the model
// while it is trained. It also has --drop-features, which leaves out columns at random.
package dgs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// guide asks the model which neighbours and features matter (Wan, Chen and Zhang, "DGS:
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
type guide struct {
	opt     Options
	of      *batch.Pipeline
	x       *explanation
	remote  []uint32 // vertices that have masks
	loop    *train.Loop
	first   int // steps that were done when the run began
	total   int // steps in all epochs
	ctx     context.Context
	cancel  context.CancelFunc
	jobs    chan job
	learnt  chan *version // whose owners are to be told
	running sync.WaitGroup
	how     pace
	last    *version // that the explainer's goroutine has learnt

	mu struct {
		sync.Mutex
		versions map[int]*version
		later    map[int]job // that no batch of this run needs
		latest   int
		done     int // steps
		use      train.ExplainerUse
	}
}

// version is the masks of some weights: number v is of those after v·T steps. A checkpoint has masks that are learnt,
// whether or not owners, who may have ended, know of them.
type version struct {
	number  int
	learnt  chan struct{}
	ready   chan struct{} // owners have been told
	err     error         // of learning
	untold  error
	nodes   []byte // of the remote vertices, m for m/255; nil: none
	missing byte
	columns []uint32 // that are fetched, ascending; nil: all
	keep    *store.Columns
	theta   learnt // which the next begins with
}

// job is weights to be explained.
type job struct {
	number  int
	weights []nn.Tensor
}

const (
	// maskDeadline bounds the wait for an explanation.
	maskDeadline = 10 * time.Minute
	// explainAttempts is how often one is begun whose goroutine ends before it is done.
	explainAttempts = 3
)

var useShuffle = sample.Use("masks shuffled")

// explainerFault, if set, is called by every explainer as it begins: fault injection.
var explainerFault func(rank, number, attempt int)

// New is the decoration that the options ask for; nil: none.
func New(s *train.Site, o Options) batch.Decoration {
	switch {
	case o.DropFeatures > 0:
		return &dropping{opt: o}
	case o.DGS && !s.MemoryOnly && o.DGSBy == "locality":
		return &local{opt: o}
	case o.DGS && !s.MemoryOnly:
		g := &guide{opt: o, jobs: make(chan job, 2), learnt: make(chan *version, 4)}
		g.mu.versions, g.mu.later = map[int]*version{}, map[int]job{}
		return g
	}
	return nil
}

// Prepare makes what a run's masks need: the explanation graph, for which the
// rows of remote vertices are pulled once, and owners that know of which vertices masks are.
func (g *guide) Prepare(p *batch.Pipeline) error {
	s, o := p.Site, &g.opt
	if err := p.Store.ServeGuides(); err != nil {
		return err
	}
	if _, err := p.Setup.Share(0); err != nil { // all serve
		return err
	}
	dev := s.Opt.HostDevice()
	each := vertexBytes(&s.Opt.Model, dev.Type().Size())
	g.of, g.remote = p, explainedRemote(s.Part, o.bytes(), each)
	var rows graph.Features
	if err := p.Store.FeaturesOnce(s.Ctx, &rows, g.remote); err != nil {
		return err
	}
	own, remote := s.Part.Features, &rows
	if s.Opt.RowNormalize {
		own, remote = own.RowNormalize(), remote.RowNormalize()
	}
	g.x = newExplanation(dev, s.Part, own, remote, g.remote, s.Opt.Model, s.Opt.Rows, o.bytes(), o.DGSGraph == "star",
		s.Opt.Seed)
	g.how = g.opt.pace(rowsOfBatch(p), min(s.Part.Core(), g.x.most)+g.x.remote)
	if err := p.Store.GuideBy(s.Ctx, g.remote, o.DGSEpsilon); err != nil {
		return err
	}
	if o.DGSAsync && s.End.Rank() == 0 {
		s.Events.On(event.Note{Text: "--dgs-async: masks take effect when they are ready, so this run is not " +
			"repeatable"})
	}
	if s.Opt.Resume != nil {
		return g.restore(s.Opt.Resume.Caches)
	}
	return nil
}

// Begin starts the explainer of a loop.
func (g *guide) Begin(f *train.Loop) {
	g.loop, g.first, g.total = f, f.State.Epoch*g.of.Steps()+f.State.Batch, f.Opt.Epochs*g.of.Steps()
	g.mu.done = g.first
	g.ctx, g.cancel = context.WithCancel(g.of.Site.Ctx)
	g.running.Go(func() {
		for j := range g.jobs {
			g.work(j)
		}
		close(g.learnt)
	})
	g.running.Go(func() {
		for v := range g.learnt {
			g.finish(v)
		}
	})
}

// End ends the explainer, whatever it is at.
func (g *guide) End() {
	if g.cancel != nil {
		g.report()
		g.cancel()
	}
	close(g.jobs)
	g.running.Wait()
	g.x.close()
}

// Stepped is called after every step of a loop. After every T it has the weights explained; where no batch of this run
// would use the masks, once a checkpoint needs them.
func (g *guide) Stepped(epoch, number int) {
	done, every := epoch*g.of.Steps()+number+1, g.opt.DGSEvery
	g.forget(done)
	if done%every != 0 {
		return
	}
	j := job{done / every, g.loop.Model.State(g.loop.Dev)}
	switch {
	case !g.used(j.number):
		g.putOff(j)
	case !g.opt.DGSAsync:
		g.begin(j)
	default:
		g.slot(j.number)
		select {
		case g.jobs <- j:
		default: // an explainer that is late misses some weights
		}
	}
}

// used reports whether a batch of this run may be drawn by a version.
func (g *guide) used(number int) bool { return g.opt.DGSAsync || (number+1)*g.opt.DGSEvery < g.total }

// begin has weights explained. There is place: batches have waited for the masks before the last.
func (g *guide) begin(j job) {
	g.slot(j.number)
	g.jobs <- j
}

// putOff keeps weights that a checkpoint may need the masks of.
func (g *guide) putOff(j job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.later[j.number] = j
}

// forget drops the versions that no batch is drawn by once some steps are done.
func (g *guide) forget(done int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	oldest := done/g.opt.DGSEvery - 1
	if g.opt.DGSAsync {
		oldest = g.mu.latest
	}
	old := func(number int) bool { return number < oldest }
	maps.DeleteFunc(g.mu.versions, func(number int, _ *version) bool { return old(number) })
	maps.DeleteFunc(g.mu.later, func(number int, _ job) bool { return old(number) })
	g.mu.done = done
}

// slot is the place of a version.
func (g *guide) slot(number int) *version {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.mu.versions[number]
	if v == nil {
		v = &version{number: number, learnt: make(chan struct{}), ready: make(chan struct{})}
		g.mu.versions[number] = v
	}
	return v
}

// work explains weights. An explainer that ends before it is done has lost nothing:
// what it explains depends on the weights and the part alone, and another begins anew.
func (g *guide) work(j job) {
	v := g.slot(j.number)
	if g.last != nil && j.number%g.how.every != 0 {
		v.nodes, v.missing, v.columns, v.keep, v.theta = g.last.nodes, g.last.missing, g.last.columns, g.last.keep,
			g.last.theta
		g.last = v
		close(v.learnt)
		g.learnt <- v
		return
	}
	var out *explained
	for attempt := range explainAttempts {
		if out, v.err = g.explain(j, attempt); v.err == nil || g.ctx.Err() != nil {
			break
		}
		g.of.Site.Events.On(event.Note{Text: fmt.Sprintf("worker %d's explainer of step %d failed and begins anew: %v",
			g.of.Site.End.Rank(), j.number*g.opt.DGSEvery, v.err)})
	}
	if v.err == nil {
		g.fill(v, out)
		g.last = v
	}
	close(v.learnt)
	g.learnt <- v
}

// finish tells owners of a version. It has a goroutine of its own: an owner that has ended does not keep the masks
// after these from being learnt.
func (g *guide) finish(v *version) {
	if v.untold = v.err; v.err == nil && g.used(v.number) {
		v.untold = g.tell(g.ctx, v.number, v)
	}
	if v.untold == nil || !g.opt.DGSAsync { // a failed explanation has no masks
		g.publish(v.number, v)
	}
}

func (g *guide) publish(number int, v *version) {
	g.mu.Lock()
	g.mu.latest = max(g.mu.latest, number)
	g.mu.Unlock()
	close(v.ready)
}

// explain runs an explainer in a goroutine and a thread of its own, whose time is counted.
func (g *guide) explain(j job, attempt int) (*explained, error) {
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
			explainerFault(g.of.Site.End.Rank(), j.number, attempt)
		}
		var from learnt
		if g.last != nil {
			from = g.last.theta
		}
		found, err := g.x.explain(g.ctx, j.weights, from, explainOptions{nodes: g.opt.nodes(), columns: g.opt.columns(),
			epochs: g.how.epochs, rows: g.how.rows, loss: g.opt.DGSLoss, number: j.number})
		out = outcome{found, err}
	}()
	got := <-done
	return got.explained, got.err
}

// count adds to what the explainer has taken.
func (g *guide) count(seconds float64, out *explained) {
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
func (g *guide) fill(v *version, out *explained) {
	v.theta = out.learnt
	g.spread(out)
	key := rng.New(g.of.Site.Opt.Seed).Fold(useShuffle).Fold(uint64(g.of.Site.End.Rank()))
	g.opt.control(out, key.Fold(uint64(v.number)))
	if g.opt.nodes() {
		v.nodes, v.missing = quantized(out.nodes)
	}
	if kept := keptColumns(g.x.cols, g.opt.DGSFeatures); g.opt.columns() && kept < g.x.cols {
		v.keep = highest(out.columns, kept)
		v.columns = v.keep.List()
	}
}

// spread keeps the quartiles of the masks.
func (g *guide) spread(out *explained) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.use.Nodes, g.mu.use.Columns = quartiles(out.nodes), quartiles(out.columns)
}

// quartiles are the values that a quarter, a half and three quarters of some are below.
func quartiles(values []float64) (q [3]float64) {
	sorted := slices.Sorted(slices.Values(values))
	for i := range q {
		if n := len(sorted); n > 0 {
			q[i] = sorted[(n-1)*(i+1)/4]
		}
	}
	return q
}

// control replaces masks by what they are compared with: shuffled ones, or their mean, with columns at random.
func (o *Options) control(out *explained, key rng.Key) {
	if o.DGSBy == "learned" {
		return
	}
	out.columns = shuffled(out.columns, key.Fold(1))
	if o.DGSBy == "shuffled" {
		out.nodes = shuffled(out.nodes, key)
		return
	}
	sum := 0.0
	for _, m := range out.nodes {
		sum += m
	}
	out.nodes = slices.Repeat([]float64{sum / float64(max(len(out.nodes), 1))}, len(out.nodes))
}

func shuffled(values []float64, key rng.Key) []float64 {
	out := make([]float64, len(values))
	for i, at := range key.Perm(len(values)) {
		out[i] = values[at]
	}
	return out
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
func (g *guide) tell(ctx context.Context, number int, v *version) error {
	if v.nodes == nil {
		return nil
	}
	return g.of.Store.TellMasks(ctx, uint32(number), v.nodes, v.missing)
}

// Guide is what a batch is drawn and pulled by, once that is known.
func (g *guide) Guide(ctx context.Context, epoch, batchNumber int) (out batch.Guidance, err error) {
	number := g.wanted(epoch*g.of.Steps() + batchNumber)
	if number == 0 {
		return out, nil
	}
	v, err := g.await(ctx, number)
	if err != nil {
		return out, err
	}
	out.Columns = v.keep
	switch {
	case v.nodes == nil:
	case g.opt.DGSAsync:
		out.Masks = store.LatestMasks
	default:
		out.Masks = uint32(number)
	}
	return out, nil
}

// await waits for a version that draws go by.
func (g *guide) await(ctx context.Context, number int) (*version, error) {
	v := g.slot(number)
	if err := g.wait(ctx, number, v.ready); err != nil {
		return nil, err
	}
	return v, g.failed(number, v.untold)
}

// failed is why a version has no masks.
func (g *guide) failed(number int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("explaining the weights of step %d: %w", number*g.opt.DGSEvery, err)
}

// wait waits until a version has come so far.
func (g *guide) wait(ctx context.Context, number int, far <-chan struct{}) error {
	end := g.of.Site.End
	due, timer := wire.Alarm(g.loop.Clock, maskDeadline)
	defer timer.Stop()
	select {
	case <-far:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-end.Done():
		return end.Err()
	case <-due:
		return fmt.Errorf("worker %d has waited %v for its explainer's masks of step %d; use a larger "+
			"--dgs-every or fewer --dgs-epochs", end.Rank(), maskDeadline, number*g.opt.DGSEvery)
	}
}

// wanted is the version that a batch is drawn by; 0: none.
func (g *guide) wanted(batch int) int {
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

// Plan adds masks to what an epoch sends. Rows are planned whole: masks are not known yet.
func (g *guide) Plan(p *wire.Plan, _ *nn.Model) {
	p.AtMost = true
	if !g.opt.nodes() {
		return
	}
	d, end := g.of, g.of.Site.End
	each := int64(d.Store.MaskBytes(len(g.remote)))
	perEpoch := (d.Steps() + g.opt.DGSEvery - 1) / g.opt.DGSEvery
	for q := range end.Size() {
		if !d.Store.InPlace(q) {
			p.Drawn.Add(wire.Class{Kind: wire.Topology, Layer: -1, Link: end.Link(q)}, each*int64(perEpoch))
		}
	}
}

// report says what explanations took.
func (g *guide) report() {
	if g.of.Site.End.Rank() > 0 {
		return
	}
	u := g.Explained()
	g.of.Site.Events.On(event.Note{Minor: true, Text: fmt.Sprintf("worker 0's explainer took %.3g s of CPU time for "+
		"%s of %s, %.1f MiB at most", u.CPUSeconds, event.Counted(u.Explanations, "explanation"),
		event.Counted(u.Vertices, "remote vertex"),
		float64(u.Bytes)/(1<<20))})
}

// Explained is what the worker's explainer took.
func (g *guide) Explained() train.ExplainerUse {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.use
}
