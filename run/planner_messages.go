package run

import (
	"starling/spec"
	"starling/train"
	"starling/wire"
)

// messages is how many a worker of a full-graph strategy sends for the rows of an epoch: one, or as many as its strategy
// says, to each peer that needs some, for each layer and direction.
func (p *planner) messages(s *spec.Spec, rank int, sent wire.Bytes) float64 {
	if s.Mode != string(train.FullGraph) {
		return 0
	}
	exchanges := map[wire.Class]bool{}
	for class := range sent {
		if isRow(class.Kind) {
			exchanges[wire.Class{Kind: class.Kind, Layer: class.Layer}] = true
		}
	}
	part, peers, each := p.open[rank], 0, 1.0
	for q := range part.Book.Parts {
		if q != rank && len(part.SendTo(q)) > 0 {
			peers++
		}
	}
	if d := train.Find(s.StrategyName()); d.Messages != nil {
		each = d.Messages(part.Book, 4*(max(p.featureDim(), s.Model.Hidden)+s.Model.Hidden))
	}
	return each * float64(len(exchanges)*peers)
}
