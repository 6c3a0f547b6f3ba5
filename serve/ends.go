package serve

import (
	"slices"

	"starling/graph"
	"starling/tensor"
)

// Pairs scores pairs that a caller lists, over the whole graph of a dataset.
type Pairs struct {
	scorer *pairScorer
	data   *graph.Dataset
}

// Pairs makes ready to list pairs: as edges of a relation, which has to be named where the model knows several.
func (t *Trained) Pairs(d *graph.Dataset, relation string) (*Pairs, error) {
	s, err := t.scorer(d, relation)
	return &Pairs{s, d}, err
}

// Source is a vertex that pairs begin at, Target one that they end at, by the names they had before import.
func (p *Pairs) Source(name string) (uint32, bool) { return p.scorer.sources.find(vertexName(name)) }
func (p *Pairs) Target(name string) (uint32, bool) { return p.scorer.targets.find(vertexName(name)) }

// Run computes the rows of all vertices.
func (p *Pairs) Run(dev tensor.Device) error { return p.scorer.run(dev, p.data) }

// Scores are the decoder's, before the sigmoid. REQUIRES: Run.
func (p *Pairs) Scores(left, right []uint32) []float32 { return p.scorer.scores(left, right) }

// Edges is how many of some pairs are edges of the dataset.
func (p *Pairs) Edges(left, right []uint32) (edges int) {
	known := p.scorer.linked(p.data, left)
	for i, u := range left {
		if _, is := slices.BinarySearch(known[u], right[i]); is {
			edges++
		}
	}
	return edges
}
