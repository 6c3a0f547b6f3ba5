package full

import (
	"fmt"
	"slices"

	"starling/exchange"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
)

// pipegcn is training with halo rows and gradients of halo rows that are one epoch stale
// (Wan et al., "PipeGCN", ICLR 2022, alg. 1): in epoch t
//
//	y  = A_local·z_local(t) + A_halo·z_halo(t-1)
//	dz = A_localᵀ·dy(t) + what peers computed for our rows in epoch t-1
//
// with zeros where t-1 was not. --means moves both to the means of epoch t
// (exchange.Means). Rows leave when a layer has them, as with halo, but no peer needs them
// before the same layer of the next epoch: they have a whole epoch to travel in, and only
// what takes longer than that is waited for.
//
// Smoothing (§3.4) replaces what has arrived by a moving average, m = γ·m + (1-γ)·z, of
// rows and of gradients, from the first that arrive on.
//
// It sends the bytes of halo. Features that never change, scores of attention and its last
// layer with their gradients, and measuring passes are exact and waited for: see
// exchange.Tag.AlwaysFresh.
//
// Where rows are relayed inside servers, the gradients of relayed ones are added on their
// way back; that is stale too, but never by more than the same epoch.
var pipegcn = train.Describe(train.Descriptor{
	Name: "pipegcn", Mode: train.FullGraph, Typical: true, HaloRows: true,
	Paper: &train.Paper{Title: "PipeGCN, Wan et al., ICLR 2022", Claim: "1.7x to 28.5x throughput",
		Why: "the gain is at most the share of time spent waiting; on GPUs that is most of an epoch, here only what " +
			"local sums do not hide already"},
	Exact:   "`:0`",
	Sends:   "`halo`'s rows, an epoch stale, so no worker waits",
	UseWhen: "computing and sending take about as long",
	Overlap: train.Overlap{Rows: 1, Gradients: 0.3},
}, pipeOptions{Stale: 1, RowOptions: exchange.DefaultRows}, newPipeGCN)

type pipeOptions struct {
	Stale  int     `json:"stale" flag:"-" main:"" exact:"0" help:"epochs that rows are stale, 0 or 1"`
	Smooth float64 `json:"smooth" of:"stale" help:"weight of the past in the moving average of stale rows; 0: none"`
	exchange.MeanOption
	exchange.RelayOption
	exchange.RowOptions
}

func (o *pipeOptions) Validate() error {
	switch {
	case o.Stale != 0 && o.Stale != 1:
		return fmt.Errorf("pipegcn's rows are 0 or 1 epochs stale, not %d", o.Stale)
	case !(o.Smooth >= 0 && o.Smooth < 1):
		return fmt.Errorf("pipegcn's smoothing is at least 0 and below 1, not %g", o.Smooth)
	case o.Means && o.Stale == 0:
		return fmt.Errorf("--means corrects stale rows, and pipegcn:0 has none; use pipegcn:1, or leave it out")
	}
	return o.RowOptions.Validate()
}

func newPipeGCN(s *train.Site, o pipeOptions) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, o.RelayOption)
	if o.Stale == 0 {
		w.Masked = o.SparseRows
		return site.Halo(w)
	}
	a, _, err := exchange.OverHalo(w, newPipeline(w, o))
	if err != nil {
		return nil, err
	}
	return a, nil
}

// pipeline uses what the last epoch sent.
type pipeline struct {
	*exchange.Rows
	smooth  float64
	means   *exchange.Means
	lines   map[exchange.Tag]*line
	order   []exchange.Tag       // of their first use
	waiting []*exchange.Reversal // for the other workers of the server
}

func newPipeline(w *exchange.Worker, o pipeOptions) *pipeline {
	rows := exchange.NewRows(w)
	return &pipeline{Rows: rows, smooth: o.Smooth, means: exchange.NewMeans(rows, o.MeanOption),
		lines: map[exchange.Tag]*line{}}
}

// line is a transfer as it continues from epoch to epoch.
type line struct {
	last *stale        // begun in the last epoch
	mean tensor.Matrix // of what has arrived, with smoothing
}

// stale is an exchange of the last epoch and the rows it brings.
type stale struct {
	exchange.Arrival // nil: they were recalled from a checkpoint
	in               tensor.Matrix
	held             tensor.Matrix // is given back with it
}

func (s *stale) Wait() {
	if s.Arrival != nil {
		s.Arrival.Wait()
	}
}

func (s *stale) done(dev tensor.Device) {
	if s.Arrival != nil {
		s.Arrival.Done()
	}
	dev.Free(s.held)
}

// Begin lets gradients leave that no peer waits for before the next epoch's.
func (p *pipeline) Begin(epoch, batch int, training bool) {
	p.leave()
	p.Rows.Begin(epoch, batch, training)
}

// leave returns sums of gradients that are complete.
func (p *pipeline) leave() {
	p.waiting = slices.DeleteFunc(p.waiting, func(x *exchange.Reversal) bool {
		ready := x.Ready()
		if ready {
			x.Leave()
		}
		return ready
	})
}

func (p *pipeline) Exchange(t exchange.Tag, h *exchange.Halo, into, src tensor.Matrix) exchange.Arrival {
	if t.AlwaysFresh(p.Training) {
		return p.Rows.Exchange(t, h, into, src)
	}
	t.Stale = true
	p.leave()
	in := p.W.Dev.Scratch(src.Type(), h.HaloRows(), src.Cols)
	x := &stale{p.Rows.Exchange(t, h, in, src), in, in}
	now := p.means.Exchange(t, h, src)
	return p.queue(t, x, func(rows tensor.Matrix) {
		now.Apply(rows)
		p.W.Dev.Copy(into, rows)
	})
}

func (p *pipeline) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	if t.AlwaysFresh(p.Training) {
		return p.Rows.Reverse(t, h, grads, dst)
	}
	t.Stale = true
	p.leave()
	// grads are the caller's, and gone before they have left
	out := p.W.Dev.Scratch(grads.Type(), grads.Rows, grads.Cols)
	p.W.Dev.Copy(out, grads)
	x := p.BeginReverse(t, h, out, func(tensor.Matrix) {})
	if h.Relay != nil {
		p.waiting = append(p.waiting, x)
	}
	now := p.means.Reverse(t, h, grads)
	return p.queue(t, &stale{x, x.In, out}, func(rows tensor.Matrix) {
		now.Apply(rows)
		p.AddReturned(h, dst, rows)
	})
}

// queue puts an exchange in the place of the last epoch's, which is the one to use.
func (p *pipeline) queue(t exchange.Tag, x *stale, use func(tensor.Matrix)) exchange.Arrival {
	l, ok := p.lines[t]
	if !ok {
		l = p.recalled(t, x)
		p.lines[t], p.order = l, append(p.order, t)
	}
	due := &due{p: p, line: l, last: l.last, next: x, use: use}
	l.last = x
	return due
}

// due is an exchange of the last epoch, if there was one, when its rows are needed.
type due struct {
	p    *pipeline
	line *line
	last *stale // of the last epoch; nil: there was none
	next *stale // of this epoch
	use  func(tensor.Matrix)
}

func (d *due) Wait() {
	if d.last == nil {
		dev := d.p.W.Dev
		zeros := dev.New(d.next.in.Type(), d.next.in.Rows, d.next.in.Cols)
		d.use(zeros)
		dev.Free(zeros)
		return
	}
	d.last.Wait()
	d.use(d.line.smoothed(d.p, d.last.in))
}

func (d *due) Done() {
	if d.last != nil {
		d.last.done(d.p.W.Dev)
	}
}

func (p *pipeline) MeansTo(t exchange.Tag, h *exchange.Halo, peer, _ int) int64 {
	return p.means.To(t, h, peer)
}

// smoothed moves the average towards rows and returns it; without smoothing, rows.
func (l *line) smoothed(p *pipeline, rows tensor.Matrix) tensor.Matrix {
	switch dev := p.W.Dev; {
	case p.smooth == 0:
		return rows
	case l.mean.IsZero():
		l.mean = dev.Scratch(rows.Type(), rows.Rows, rows.Cols)
		dev.Copy(l.mean, rows)
	default:
		dev.Combine(l.mean, p.smooth, l.mean, 1-p.smooth, rows)
	}
	return l.mean
}

// Save waits for what is in flight and lists what the next epoch would use.
func (p *pipeline) Save() []exchange.SavedRows {
	for _, t := range p.order {
		p.lines[t].last.Wait() // which may let rows leave, and leave residuals
	}
	out := p.Rows.Save()
	for _, t := range p.order {
		l := p.lines[t]
		out = append(out, exchange.SavedRows{Name: staleName(t), Rows: l.last.in})
		if !l.mean.IsZero() {
			out = append(out, exchange.SavedRows{Name: meanName(t), Rows: l.mean})
		}
	}
	return out
}

func staleName(t exchange.Tag) string { return "stale " + t.String() }
func meanName(t exchange.Tag) string  { return "average of " + t.String() }

// recalled is a transfer as it was in the checkpoint that the run continues from.
func (p *pipeline) recalled(t exchange.Tag, like *stale) *line {
	l, dev := &line{}, p.W.Dev
	shape := func() tensor.Matrix { return dev.Scratch(like.in.Type(), like.in.Rows, like.in.Cols) }
	if in := shape(); p.W.Recall(staleName(t), in) {
		l.last = &stale{nil, in, in}
	} else {
		dev.Free(in)
	}
	if mean := shape(); p.W.Recall(meanName(t), mean) {
		l.mean = mean
	} else {
		dev.Free(mean)
	}
	return l
}

// Finish waits for the rows of the last epoch, which no epoch will use: a peer may still be
// sending them.
func (p *pipeline) Finish() error {
	p.Save()
	for _, t := range p.order {
		l := p.lines[t]
		l.last.done(p.W.Dev)
		if !l.mean.IsZero() {
			p.W.Dev.Free(l.mean)
		}
	}
	p.lines, p.order = map[exchange.Tag]*line{}, nil
	return p.Rows.Finish()
}
