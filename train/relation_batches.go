package train

import (
	"starling/graph"
	"starling/sample"
)

// What batches of pairs of relations need on several workers (train/batch/pairs), beside what the whole graph does.

// RelationTraining are this worker's pairs of one relation to learn from, in ascending order of row and destination.
type RelationTraining struct {
	Relation int
	Rows, U  []uint32 // of sources: own row and id
	V        []uint32 // ids of destinations
	// Negatives are drawn for own rows.
	Negatives *sample.RelationNegatives
}

// RelationLinks are the run's pairs of relations; nil: it learns something else.
func (s *Site) RelationLinks() *RelationLinks { return s.links }

// Training are the pairs of each relation.
func (r *RelationLinks) Training() (list []RelationTraining) {
	for _, p := range r.pairs {
		t := &p.sets[sample.TrainEdges]
		list = append(list, RelationTraining{p.relation, t.row, t.u, t.v, p.negatives})
	}
	return list
}

// InBatches has a loop measure pairs, which it learns from in batches.
func (r *RelationLinks) InBatches(f *Loop) {
	r.Links = LinksOn(f, r.linkOptions())
	f.Measure = r.measure
}

// Numbers are the numbers in the partition of a type that relations lead to, by id after the type's first.
func (r *RelationLinks) Numbers(target int) []uint32 {
	return r.rows.numbers[uint32(r.schema.Types[target].First)]
}

// HeldOutOfRelations are the edges of relations that a run holds out for validation and the test, and a negative of
// each: those of the first relation first. A set without edges has no lists.
func HeldOutOfRelations(data *graph.Dataset, opt *Options) (sets [2][]sample.Pairs, err error) {
	r, err := newRelations(data.Meta.Schema, opt)
	if err != nil {
		return sets, err
	}
	if err = r.findInGraph(data.Graph); err != nil {
		return sets, err
	}
	for i, set := range []int{sample.ValEdges, sample.TestEdges} {
		var edges, negatives sample.Pairs
		for _, p := range r.pairs {
			list := &p.sets[set]
			edges.U, edges.V = append(edges.U, list.u...), append(edges.V, list.v...)
			negatives.U, negatives.V = append(negatives.U, list.u...), append(negatives.V, p.against(set)...)
		}
		if len(edges.U) > 0 {
			sets[i] = []sample.Pairs{edges, negatives}
		}
	}
	return sets, nil
}
