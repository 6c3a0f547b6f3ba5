package sancus

import (
	"fmt"

	"starling/exchange"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
)

// SkipG sends gradients of rows seldom instead of rows: the baseline "SkipG" of SANCUS (§6
// there). All blocks are broadcast in every epoch, as CAGNET's. Their gradients return in
// every (K+1)-th epoch only; in between a worker uses the sum that was returned last:
//
//	dz_i = Σ_j A_jiᵀ·dy_j  for j = i as it is now, for other j as it was last sent
//
// With K = 0 it is exact. Gradients of attention's scores and of its last layer return in
// every epoch.
var SkipG = train.Describe(train.Descriptor{
	Name: "skipg", Mode: train.FullGraph, Baseline: "cagnet",
	Paper: &train.Paper{Title: "the SkipG baseline of SANCUS, PVLDB 2022",
		Claim: "less gain than SANCUS: gradients are skipped instead of embeddings",
		Why:   "rows still travel forward in every epoch, and with them half of the bytes"},
	Exact:   "`:0`",
	Sends:   "`cagnet`'s; gradients only every K+1 epochs",
	UseWhen: "as a baseline",
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
}, skipOptions{Skipped: 1, RowOptions: exchange.DefaultRows}, buildSkipG)

type skipOptions struct {
	Skipped int `json:"skipped" flag:"-" main:"" exact:"0" help:"epochs in a row without gradients of rows"`
	exchange.RowOptions
}

// WarmUp lasts until gradients come that are kept already.
func (o *skipOptions) WarmUp() int { return o.Skipped }

func (o *skipOptions) Validate() error {
	if !(o.Skipped >= 0 && o.Skipped <= 1<<20) {
		return fmt.Errorf("skipg leaves out gradients for a number of epochs from 0, not %d", o.Skipped)
	}
	return o.RowOptions.Validate()
}

func buildSkipG(s *train.Site, o skipOptions) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, exchange.RelayOption{})
	m := &skipg{Blocks: exchange.NewBlocks(w), every: o.Skipped + 1, kept: map[exchange.Tag]tensor.Matrix{}}
	if w.Saved.Resumed && len(w.Saved.Tensors) == 0 {
		m.first = w.Saved.Epoch
	}
	return exchange.NewAggregator(w, m, exchange.NewHalo(w.Dev, exchange.PartBlocks(w.Part))), nil
}

type skipg struct {
	*exchange.Blocks
	every, first int
	kept         map[exchange.Tag]tensor.Matrix // what peers returned, summed
}

func skipName(t exchange.Tag) string { return "skipg " + t.String() }

// Save lists the gradients that are used again.
func (m *skipg) Save() []exchange.SavedRows {
	return append(m.Blocks.Save(), exchange.SavedByName(m.kept, skipName)...)
}

func (m *skipg) due(epoch int) bool { return epoch == m.first || epoch%m.every == 0 }

func (m *skipg) RowsTo(t exchange.Tag, h *exchange.Halo, peer, epoch int, training bool) int64 {
	if t.Backward && !t.AlwaysFresh(training) && !m.due(epoch) {
		return 0
	}
	return m.Blocks.RowsTo(t, h, peer, epoch, training)
}

func (m *skipg) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	if t.AlwaysFresh(m.Training) {
		return m.Blocks.Reverse(t, h, grads, dst)
	}
	kept, ok := m.kept[t]
	if !ok {
		kept = m.W.Dev.New(dst.Type(), dst.Rows, dst.Cols)
		m.W.Recall(skipName(t), kept)
		m.kept[t] = kept
	}
	r := &reused{dev: m.W.Dev, kept: kept, dst: dst}
	if m.due(m.Epoch) {
		m.W.Dev.Zero(kept)
		r.coming = m.Blocks.Reverse(t, h, grads, kept)
	}
	return r
}

// reused is the sum of peers' gradients: a new one if it is coming, else the last.
type reused struct {
	dev       tensor.Device
	coming    exchange.Arrival // or nil
	kept, dst tensor.Matrix
}

func (r *reused) Wait() {
	if r.coming != nil {
		r.coming.Wait()
	}
	r.dev.Combine(r.dst, 1, r.dst, 1, r.kept)
}

func (r *reused) Done() {
	if r.coming != nil {
		r.coming.Done()
	}
}
