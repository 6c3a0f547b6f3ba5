package partition

import (
	"context"

	"starling/partition/multilevel"
)

// Multilevel coarsens the graph, partitions the coarsest level and refines on the way back;
// package multilevel describes how. What still exceeds a limit then is moved out.
func Multilevel(ctx context.Context, p *Problem) ([]uint32, error) {
	if p.Graph.Nodes() == 0 {
		return []uint32{}, nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Parts == 1 {
		return make([]uint32, p.Graph.Nodes()), nil
	}
	l := newLoads(p)
	m := &multilevel.Problem{Graph: p.Graph, Symmetric: p.Symmetric, Parts: p.Parts, Seed: p.Seed, Threads: p.Threads,
		Volume: p.Objective == Volume, Progress: p.Progress}
	for i := 1; i < p.Tries; i++ {
		m.Others = append(m.Others, seedOf(p.Seed, i))
	}
	for i, c := range l.constraints {
		m.Constraints = append(m.Constraints, multilevel.Constraint{Weight: c.Weight, Limit: l.limit[i]})
	}
	parts, load, err := multilevel.Partition(ctx, m)
	if err != nil {
		return nil, err
	}
	for k, weight := range l.weight {
		copy(weight, load[k*len(weight):])
	}
	return parts, rebalance(ctx, p, parts, l)
}
