package exchange

import (
	"fmt"

	"starling/coflow"
	"starling/wire"
)

// Tag names an exchange of rows in a pass.
type Tag struct {
	Layer    int // -1: the constant features
	Backward bool
	EdgeOp   bool // the layer is an edge operator; else rows are summed
	Scores   bool // of attention, not the rows themselves
	// LastAttention: of the last layer of an attention model.
	LastAttention bool
	// Stale: for the next epoch. Whatever this one needs goes first.
	Stale   bool
	Kind    wire.Kind
	relayed bool // by way of another worker of the server: see relay.go
	mean    bool // of the rows, not the rows themselves: see mean.go
}

// AlwaysFresh reports whether a transfer brings all rows as they are now, also where
// those of others are stale: in measuring passes, of features that never change, of
// attention's scores, which are one number per head, and of its last layer, which has
// one per class.
//
// A softmax's gradients of scores sum to zero in each neighbourhood. Stale ones beside
// fresh ones do not, and what is left over moves weights where the loss hardly resists.
// Rows and gradients of the last layer that are not of one epoch cost accuracy too, each
// about half of it. The pages of strategies with stale rows have the figures.
func (t Tag) AlwaysFresh(training bool) bool {
	return !training || t.Layer < 0 || t.Scores || t.LastAttention
}

// LastAttention reports whether a layer is the last of an attention model.
func (w *Worker) LastAttention(layer int) bool {
	m := &w.Model
	return layer == m.Layers-1 && (m.Model == "gat" || m.Model == "gatv2")
}

// rowsOf is the tag of a layer's rows; gradsOf of their gradients.
func (w *Worker) rowsOf(layer int, edgeOp bool) Tag {
	return Tag{Layer: layer, EdgeOp: edgeOp, LastAttention: edgeOp && w.LastAttention(layer), Kind: wire.Activation}
}

func (w *Worker) gradsOf(layer int, edgeOp bool) Tag {
	t := w.rowsOf(layer, edgeOp)
	t.Backward, t.Kind = true, wire.Gradient
	return t
}

// String is what timelines call a transfer.
func (t Tag) String() string {
	what := "rows"
	if t.Scores {
		what = "scores"
	}
	if t.Backward {
		what = "gradients of " + what
	}
	if t.relayed {
		what += " relayed"
	}
	if t.mean {
		what = "means of " + what
	}
	if t.Layer < 0 {
		return "features"
	}
	return fmt.Sprintf("%s, layer %d", what, t.Layer)
}

// The steps of a layer's coflow. Measuring passes have other steps than training passes.
const (
	stepRows uint32 = iota
	stepScores
	stepMeasure     // added to the above
	stepRelayed = 4 // added to all of them
	stepMeans   = 1 // of coflow.Control
	// FreeSteps and more are for messages that a strategy numbers itself.
	FreeSteps = 8
)

// key is the key of a transfer in this pass.
func (r *Rows) key(t Tag) wire.Key {
	if t.Layer < 0 { // once in a run, for training or for measuring
		return wire.Key{Step: r.step(t, stepRows), Coflow: coflow.ID{Type: coflow.Inputs, Layer: -1}}
	}
	step, id := stepRows, r.Coflow(t, coflow.Rows)
	if t.Scores {
		step = stepScores
	}
	switch {
	case t.mean:
		step, id.Type = stepMeans, coflow.Control
	case t.Stale: // what the next epoch begins with
		id.Type, id.Epoch = coflow.Inputs, id.Epoch+1
	}
	return wire.Key{Step: r.step(t, step), Coflow: id}
}

// Coflow is the group of a transfer in this pass.
func (r *Rows) Coflow(t Tag, urgency coflow.Type) coflow.ID {
	return coflow.ID{Epoch: uint32(r.Epoch), Batch: uint32(r.batch), Type: urgency, Layer: int16(t.Layer),
		Backward: t.Backward}
}

func (r *Rows) step(t Tag, s uint32) uint32 {
	if !r.Training {
		s += stepMeasure
	}
	if t.relayed {
		s += stepRelayed
	}
	return s
}
