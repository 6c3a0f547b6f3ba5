package serve

import (
	"slices"

	"starling/tensor/cpu"
)

// Partner is a vertex, and how likely it is linked with another.
type Partner struct {
	Vertex uint32
	Score  float32
}

// beginPairs prepares what a model of pairs scores: pairs of any two vertices, or of the ends of each of its relations.
func (a *Answers) beginPairs() error {
	if !a.trained.ofPairs() {
		return nil
	}
	if !a.data.Typed() {
		a.pairs = []*pairScorer{{of: a.trained, relation: -1, sources: a.kinds[0], targets: a.kinds[0]}}
	} else {
		for _, r := range a.trained.Config.Model.Typed.Scored {
			rel := &a.data.Meta.Schema.Relations[r]
			a.pairs = append(a.pairs, &pairScorer{of: a.trained, relation: r, sources: a.kinds[rel.Source],
				targets: a.kinds[rel.Target]})
		}
	}
	a.pairs[0].take(a.dev, a.outputs)
	for _, s := range a.pairs {
		s.z = a.pairs[0].z
	}
	return a.dev.Err()
}

// scorerOf finds what pairs are by the name of a relation; nil: the model predicts none of that name.
func (a *Answers) scorerOf(relation string) *pairScorer {
	if !a.data.Typed() {
		return a.pairs[0]
	}
	at := a.trained.scoredRelation(a.data.Meta.Schema, relation)
	for _, s := range a.pairs {
		if s.relation == at {
			return s
		}
	}
	return nil
}

// with has a scorer decode on a device of its own. REQUIRES: it is one of a.pairs.
func (a *Answers) with(s *pairScorer, f func(s *pairScorer)) {
	model := <-a.models
	defer func() { a.models <- model }()
	dev := cpu.New(1) // Close frees all its matrices
	defer dev.Close()
	own := *s
	own.decode(dev, model)
	f(&own)
}

// score is how likely each pair is an edge.
func (a *Answers) score(s *pairScorer, left, right []uint32) (out []float32) {
	a.with(s, func(s *pairScorer) { out = s.scores(left, right) })
	chances(out)
	return out
}

// partners are the k likeliest partners of a vertex, as Trained.TopScores finds them.
func (a *Answers) partners(s *pairScorer, u uint32, k int, known bool) (out []Partner) {
	var linked []uint32
	if !known {
		linked = s.linked(a.data, []uint32{u})[u]
	}
	a.with(s, func(s *pairScorer) {
		for _, p := range s.best(u, k, linked) {
			score := []float32{p.score}
			chances(score)
			out = append(out, Partner{p.vertex, score[0]})
		}
	})
	return slices.Clip(out)
}
