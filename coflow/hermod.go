package coflow

import "cmp"

// Hermod's order ("Hermod: a near-optimal coflow scheduler for LLM training", chapter 5 of the
// thesis that also has DGS, G3 and LEO) knows three factors of a transfer: microbatch, type and
// layer. Table 5.3 orders by them:
//
//	I    within an iteration the earlier microbatch first
//	II   what this iteration consumes (EP, PP) before gradients (DP), which the next consumes
//	III  of gradients and the next iteration's transfers, the lower layer first
//
// All three say the same thing: first what is consumed first. So the order here is the order of
// consumption, as a position in time:
//
//	rows of layer l, forward         (step, forward, l)
//	rows of layer l, backward        (step, backward, from the last layer down)
//	gradients of layer l             (step + 1, forward, just before the rows of layer l)
//	inputs of a batch                (its step, forward, just before the rows of layer 0)
//
// A step is (epoch, batch), the microbatch of GNN training: an optimizer step ends each. Control
// is before everything, bulk after everything.
//
// The paper resolves a conflict between microbatch and layer by the layer wherever gradients are
// involved (table 5.4). Taken literally that has cycles: gradients of layer 2 come before rows
// of (microbatch 1, layer 3), these before rows of (microbatch 2, layer 1), and these before the
// gradients. The text says what is meant, that gradients count as the first microbatch of
// the next iteration; so does the position.
type hermod struct{}

func (hermod) String() string { return "hermod" }

func (hermod) Before(a, b ID) bool {
	p, q := a.consumed(), b.consumed()
	return p.compare(&q) < 0
}

// position is when a transfer is consumed.
type position struct {
	rank     uint8 // 0: control, 1: in time, 2: bulk
	epoch    uint32
	batch    uint64
	backward bool
	layer    int32
	part     int32 // of the layer: gradients, inputs by layer, rows
}

const (
	partGradients = -1
	partInputs    = 1 << 16 // minus the layer: the last layer's neighbors are drawn first
	partRows      = 1 << 17
)

func (p *position) compare(q *position) int {
	if p.backward != q.backward && p.rank == q.rank && p.epoch == q.epoch && p.batch == q.batch {
		if q.backward {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.rank, q.rank), cmp.Compare(p.epoch, q.epoch), cmp.Compare(p.batch, q.batch),
		cmp.Compare(p.layer, q.layer), cmp.Compare(p.part, q.part))
}

func (id *ID) consumed() position {
	p := position{rank: 1, epoch: id.Epoch, batch: uint64(id.Batch), layer: int32(id.Layer), part: partRows}
	switch id.Type {
	case Control:
		return position{}
	case Bulk:
		return position{rank: 2}
	case Inputs:
		p.layer, p.part = 0, partInputs-p.layer
	case Params:
		p.batch, p.part = p.batch+1, partGradients
	case Rows:
		if id.Backward {
			p.backward, p.layer = true, -p.layer
		}
	}
	return p
}

// HermodDSCP packs a transfer's factors into the six bits of a code point, the higher the more
// urgent: three of the microbatch, one of the type, two of the layer (§5.4). Numbers that are too
// large for their bits share the last value. The one bit of the type cannot tell EP, PP and
// DP apart. It is set for what delays the step that is under way (EP, PP, and gradients
// that the next iteration's first microbatch waits for, so that there the layer decides); gradients of
// this iteration have the last microbatch, which is theirs anyway (§5.3.1), and not the bit.
// Where transfers between stages do not delay anybody either (interleaved 1F1B), they lack it too.
func HermodDSCP(microbatch int, critical bool, layer int) uint8 {
	code := uint8(7-min(max(microbatch, 0), 7))<<3 | uint8(3-min(max(layer, 0), 3))
	if critical {
		code |= 4
	}
	return code
}

// StepDSCP is HermodDSCP for steps of GNN training, without looking at other transfers: rows belong to
// the step that is under way, gradients to the next, inputs are for a later one. Which of two
// steps is older only hosts tell apart.
func StepDSCP(id ID) uint8 {
	switch id.Type {
	case Control:
		return 63
	case Bulk:
		return 0
	case Rows:
		return HermodDSCP(0, true, int(id.Layer))
	case Params:
		return HermodDSCP(1, false, int(id.Layer))
	}
	return HermodDSCP(2, false, 0)
}
