// Package sancus is SANCUS, and SkipG, which its paper compares it with.
package sancus

import (
	"fmt"
	"math"

	"starling/exchange"
	"starling/nn"
	"starling/train"
	"starling/train/site"
	"starling/wire"
)

// Strategy is CAGNET with stale blocks (Peng et al., "SANCUS: Staleness-Aware
// Communication-Avoiding Full-Graph Decentralized Training in Large-Scale Graph Neural
// Networks", VLDB 2022, §4). A worker keeps the last block of every peer and layer, and a
// block that is not too stale, or has hardly changed, is not sent again:
//
//	y_i = Σ_j A_ij·z̃_j       z̃_j = z_j where it came this epoch, else as it came last
//
// A worker whose block travels is ACTIVE and broadcasts to all, over a ring that crosses a
// server link once per block (exchange.Blocks); one that is STALE sends nothing and still
// receives. Three bounds say who is ACTIVE (Definitions 1 to 3), each checked locally:
//
//	epoch:K      all, every (K+1)-th epoch
//	adaptive:K   whose block, by the versions that workers keep, would be over K epochs old
//	variation:X  who finds ‖z_j - z̃_j‖ > X, as root mean square per number; X = 0: always
//	relative:X   the same with X·‖z̃_j‖, which is not in the paper
//
// For the first two the versions of Algorithms 4 and 5 are the same everywhere (versions.go).
// Under the others an announcement of one byte tells a receiver whether the block comes.
//
// Backward, gradients of all blocks return in every epoch, as Algorithm 3 has it: those of
// a stale block as if it were the owner's present one. Those that a worker sends in a layer
// are clipped to --clip times √workers (§4.3.2); the paper names no threshold, and 1 is ours.
// With +gradients, which is not in the paper, those of a block return only when the block
// came, added up on their way, and until the next the owner adds what was returned last: both
// directions then move the same share of CAGNET's rows. With --means, where a block or
// gradient does not come, its mean does (exchange.Means).
//
// With bound 0 and --clip 0 all is exact, as are measuring, features that never change, and
// what exchange.Tag.AlwaysFresh names of attention.
var Strategy = train.Describe(train.Descriptor{
	Name: "sancus", Mode: train.FullGraph, Typical: true, Baseline: "cagnet",
	Paper: &train.Paper{Title: "SANCUS, Peng et al., PVLDB 2022",
		Claim: "35% to 74% less communication than without skipping, accuracy within 0.5 points",
		Why:   "it saves broadcasts of whole blocks, as cagnet's: halo sends fewer rows to begin with"},
	Exact:   "`epoch:0` with `--clip 0`",
	Sends:   "`cagnet`'s: rows that have changed enough, all gradients",
	UseWhen: "rows change slowly, all are needed",
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
}, options{Staleness: "epoch:2", Clip: 1, RowOptions: exchange.DefaultRows}, build)

type options struct {
	Staleness string  `json:"staleness" main:"" exact:"epoch:0" help:"how stale rows may be: epoch:K, adaptive:K, variation:X (root mean square of the change) or relative:X (share of the norm)"`
	Clip      float64 `json:"clip" exact:"0" help:"norm, per root of workers, that the gradients of rows a worker sends in a layer are clipped to; 0: not"`
	Gradients bool    `json:"skip_gradients" suffix:"gradients" omit:"default" help:"gradients of a block return only when the block came; else its owner adds the last"`
	exchange.MeanOption
	exchange.RowOptions
}

func (o *options) Validate() error {
	if !(o.Clip >= 0) {
		return fmt.Errorf("sancus clips gradients to a norm above 0, or with 0 not at all; not to %g", o.Clip)
	}
	bound, err := parseStaleness(o.Staleness)
	if err != nil {
		return err
	}
	if o.Means && !bound.skips() {
		return fmt.Errorf("--means corrects stale rows, and sancus:%s has none; use sancus:epoch:2, or leave it out",
			o.Staleness)
	}
	if o.Gradients && !bound.skips() {
		return fmt.Errorf("--skip-gradients skips those of blocks that are skipped, and sancus:%s skips none; use "+
			"sancus:epoch:2, or leave it out", o.Staleness)
	}
	return o.RowOptions.Validate()
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, exchange.RelayOption{})
	bound, err := parseStaleness(o.Staleness)
	if err != nil {
		return nil, err
	}
	blocks := exchange.NewBlocks(w)
	m := &skipping{Blocks: blocks, stale: exchange.NewStale(w), means: exchange.NewMeans(blocks.Rows, o.MeanOption),
		bound: bound, limit: o.Clip * math.Sqrt(float64(w.End.Size())), gradients: o.Gradients, turns: map[int]*turn{}}
	m.now, m.plan = newVersions(bound, w.End.Size(), m.stale.First), newVersions(bound, w.End.Size(), m.stale.First)
	return &sancus{exchange.NewAggregator(w, m, exchange.NewHalo(w.Dev, exchange.PartBlocks(w.Part))), m}, nil
}

type sancus struct {
	*exchange.Aggregator
	policy *skipping
}

// Plan adds the announcements of bounds by which blocks depend on what they hold.
func (x *sancus) Plan(model *nn.Model) *wire.Plan {
	p := x.Aggregator.Plan(model)
	if !x.policy.bound.looks() {
		return p
	}
	p.AtMost = p.AtMost || x.policy.bound.change > 0
	traffic := model.Traffic(x.W.SparseFeatures(), x.W.FirstSum(), true)
	rows := p.Epoch
	p.Epoch = func(epoch int) wire.Bytes {
		out := rows(epoch)
		for _, t := range traffic {
			if t.Forward.Rows > 0 && x.Halo(t.Layer).Src > 0 && !x.W.LastAttention(t.Layer) {
				for _, q := range x.W.Peers() {
					out.Add(x.W.Class(wire.Control, t.Layer, q), 1)
				}
			}
		}
		return out
	}
	return p
}
