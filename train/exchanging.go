package train

import (
	"errors"
	"time"

	"starling/event"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// exchanging is the aggregator under all full-graph strategies of many workers:
// while far rows are on their way, the near ones are added up. Which rows a layer
// has where is said by its border; what far rows are, and when they travel, by the
// mover. A strategy is a choice of the two.
type exchanging struct {
	*site
	borders []*border // of each layer; a single one serves all
	move    mover
	cache   map[nn.Reduction]tensor.Matrix
	prepare map[Sent]int64 // what was looked up before the first epoch

	epoch  int
	failed error
}

// mover brings far rows, and takes their gradients back.
type mover interface {
	// begin opens a pass.
	begin(epoch int, training bool)
	// fetch starts to bring far rows: into holds them after wait.
	fetch(t transfer, b *border, into, src tensor.Matrix) arrival
	// giveBack starts to send the gradients of far rows to their owners. After wait
	// those that peers sent have been added to dst, the gradients of own rows.
	giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival
	// rows is how many rows of a transfer leave for a peer, in some pass.
	rows(t transfer, b *border, peer, epoch int, training bool) int64
	// rowBytes is what a row of a transfer takes on the wire.
	rowBytes(t transfer, numbers tensor.DType, cols int, training bool) int64
	err() error
	finish() error
}

// transfer names an exchange of rows in a pass.
type transfer struct {
	layer    int // -1: the constant features
	backward bool
	across   bool // the layer is nn.Across its edges; else rows are added up
	scores   bool // of attention, not the rows themselves
	prompt   bool // of attention's last layer
	relayed  bool // by way of another worker of the server, see relay.go
	late     bool // for the next epoch: whatever this one needs goes first
	mean     bool // of the rows, not the rows themselves: see means.go
	kind     wire.Kind
}

// always reports whether a transfer brings all rows as they are now, also where those of others are late or old: in measuring
// passes, of features that never change, of attention's scores, which are a number a head, and of its last layer, which
// has a number a class.
//
// A softmax's gradients of scores add up to nothing in each neighbourhood. Old ones beside new ones do not, and what is left
// over moves weights where the loss hardly resists: see docs/strategies/bns.md. Rows and gradients of the last layer that
// are not of one epoch cost points too, each about half of them: see docs/strategies/pipegcn.md.
func (t transfer) always(training bool) bool {
	return !training || t.layer < 0 || t.scores || t.prompt
}

// isPrompt reports whether a layer's rows and scores are.
func (s *site) isPrompt(layer int) bool {
	m := &s.opt.Model
	return layer == m.Layers-1 && (m.Model == "gat" || m.Model == "gatv2")
}

// arrival is an exchange under way. wait returns when its rows are there, done when
// its buffers are free.
type arrival interface {
	wait()
	done()
}

func newExchanging(s *site, move mover, borders ...*border) *exchanging {
	return &exchanging{site: s, borders: borders, move: move, cache: map[nn.Reduction]tensor.Matrix{}}
}

func (x *exchanging) border(layer int) *border {
	if len(x.borders) == 1 {
		return x.borders[0]
	}
	return x.borders[layer]
}

func (x *exchanging) Begin(epoch int, training bool) {
	x.epoch = epoch
	x.move.begin(epoch, training)
}

func (x *exchanging) Err() error    { return errors.Join(x.failed, x.move.err()) }
func (x *exchanging) Finish() error { return x.move.finish() }

func (x *exchanging) Rows(layer int) (dst, src int) {
	b := x.border(layer)
	return b.dst, b.src
}

func (x *exchanging) Room(layer int) int {
	b := x.border(layer)
	return b.src + b.farRows()
}

func (x *exchanging) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	x.sum(transfer{layer: layer, kind: wire.Activation}, x.border(layer), r, dst, src)
}

func (x *exchanging) sum(t transfer, b *border, r nn.Reduction, dst, src tensor.Matrix) {
	rows := x.dev.Scratch(src.Type(), b.farRows(), src.Cols)
	coming := x.move.fetch(t, b, rows, src)
	b.near.Sum(r, dst, src, false)
	coming.wait()
	b.far.Sum(r, dst, rows, true)
	coming.done()
	x.dev.Free(rows)
}

func (x *exchanging) SumGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	b := x.border(layer)
	rows := x.dev.Scratch(ddst.Type(), b.farRows(), ddst.Cols)
	b.far.SumGrad(r, rows, ddst)
	coming := x.move.giveBack(transfer{layer: layer, backward: true, kind: wire.Gradient}, b, rows, dsrc)
	b.near.SumGrad(r, dsrc, ddst)
	coming.wait()
	coming.done()
	x.dev.Free(rows)
}

// Constant is always exact: its rows travel once.
func (x *exchanging) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	if !x.opt.CacheFirst {
		return tensor.Matrix{}, false
	}
	sum, ok := x.cache[r]
	if !ok {
		b := x.border(0)
		sum = x.dev.Scratch(src.Type(), b.dst, src.Cols)
		x.sum(transfer{layer: -1, kind: wire.Feature}, b, r, sum, src)
		x.cache[r] = sum
	}
	return sum, true
}

// edges are all edges of a border in some form.
func (b *border) edges(f nn.Form) *nn.Edges {
	e := b.both.Edges(f)
	e.IDs = b.ids
	return e
}

func (x *exchanging) Across(op nn.Across) {
	b := x.border(op.Layer())
	var coming []arrival
	for i, m := range op.Sent() {
		t := transfer{layer: op.Layer(), across: true, scores: i > 0, prompt: x.isPrompt(op.Layer()), kind: wire.Activation}
		coming = append(coming, x.move.fetch(t, b, m.Slice(b.src, m.Rows), m.Slice(0, b.src)))
	}
	for _, a := range coming {
		a.wait()
	}
	op.Do(b.edges(op.Over()), 0, b.dst)
	for _, a := range coming {
		a.done()
	}
}

func (x *exchanging) AcrossGrad(op nn.Across) {
	b := x.border(op.Layer())
	op.Undo(b.edges(op.Over()))
	var coming []arrival
	for i, m := range op.SentGrads() {
		t := transfer{layer: op.Layer(), backward: true, across: true, scores: i > 0, prompt: x.isPrompt(op.Layer()), kind: wire.Gradient}
		coming = append(coming, x.move.giveBack(t, b, m.Slice(b.src, m.Rows), m.Slice(0, b.src)))
	}
	for _, a := range coming {
		a.wait()
	}
	for _, a := range coming {
		a.done()
	}
}

// AddUp adds sums over all workers.
func (x *exchanging) AddUp(sums tensor.Matrix) {
	v := make([]float64, sums.Rows*sums.Cols)
	x.dev.Download(v, sums)
	start := time.Now()
	if err := x.peers.AddUp(x.epoch, v); err != nil && x.failed == nil {
		x.failed = err
	}
	x.events.On(event.Span{Name: "sums over all workers", Kind: "wait", Start: start, Dur: time.Since(start)})
	x.dev.Upload(sums, v)
}
