package train

import (
	"math"

	"starling/nn"
	"starling/wire"
)

// sancus is CAGNET with old blocks (Peng et al., "SANCUS: Staleness-Aware
// Communication-Avoiding Full-Graph Decentralized Training in Large-Scale Graph
// Neural Networks", VLDB 2022, §4). A worker keeps the last block of every peer and
// layer, and a block that is not too old, or has hardly changed, is not sent again:
//
//	y_i = Σ_j A_ij·z̃_j       z̃_j = z_j where it came this epoch, else as it came last
//
// Three rules say when a block leaves (Definitions 1 to 3):
//
//	epoch:K      every (K+1)-th epoch
//	adaptive:K   to each receiver before its copy is older than K epochs
//	variation:X  when ‖z_j - z̃_j‖ > X·‖z̃_j‖, in the Frobenius norm; X = 0: always
//
// Workers share the all-reduce of every epoch, so none of them runs ahead, and the
// versions of Algorithm 5 are known to both ends: under adaptive receivers take turns.
// Under variation a word of one byte tells a receiver whether the block comes.
//
// Backwards the same is done to gradients: a block's gradient returns in the epoch in
// which the block came, and until the next the owner adds what it was given last. (To
// take an old block for a constant instead, and add nothing, costs accuracy: see
// docs/strategies/sancus.md.) So both directions move the same share of CAGNET's rows. With
// Choice.Means, where a block or gradient does not come, its mean does (means.go).
//
// With Choice.Clip = c each worker's gradients of parameters are clipped to c·√workers
// before they are added up (§4.3.2). With bound 0 and no clipping all is exact, as are
// measuring, features that never change, and what transfer.always names of attention.
type sancus struct {
	*exchanging
	m *skipping
}

func newSancus(s *site) (planned, error) {
	bound, err := parseStaleness(s.opt.Strategy.Staleness)
	if err != nil {
		return nil, err
	}
	m := &skipping{blocks: &blocks{&exact{site: s}}, historical: newHistorical(s), bound: bound, turns: map[int]*turn{}}
	x := &sancus{newExchanging(s, m, newBorder(s.dev, blockLists(s.part))), m}
	if clip := s.opt.Strategy.Clip; clip > 0 {
		return &clipped{x, clip * math.Sqrt(float64(s.end.Size())), s.dev}, nil
	}
	return x, nil
}

// Plan adds the words of variation, whose blocks depend on what they hold.
func (x *sancus) Plan(model *nn.Model, task nn.Task) *Plan {
	p := x.exchanging.Plan(model, task)
	if x.m.bound.rule != "variation" {
		return p
	}
	p.AtMost = p.AtMost || x.m.bound.change > 0
	traffic := model.Traffic(x.part.Features.Indptr != nil, x.opt.CacheFirst, true)
	rows := p.Epoch
	p.Epoch = func(epoch int) map[Sent]int64 {
		out := rows(epoch)
		for _, t := range traffic {
			if t.Forward.Rows > 0 && x.border(t.Layer).src > 0 && !x.isPrompt(t.Layer) {
				x.m.planWords(out, t.Layer)
			}
		}
		return out
	}
	return p
}

func (m *skipping) planWords(into map[Sent]int64, layer int) {
	for _, q := range m.round() {
		add(into, Sent{wire.Control, int16(layer), m.end.Link(q)}, 1)
	}
}
