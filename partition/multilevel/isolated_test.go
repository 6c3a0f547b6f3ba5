package multilevel

import (
	"context"
	"testing"

	"starling/graph"
	"starling/rng"
)

// TestIsolatedAreSetAside: vertices without edges do not take the places of others, weigh as much
// as they do in the end, and even the parts out.
func TestIsolatedAreSetAside(t *testing.T) {
	for seed := range uint64(5) {
		p := withIsolated(seed)
		parts, load, err := Partition(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		count := make([]int64, p.Parts*len(p.Constraints))
		for v, k := range parts {
			for c := range p.Constraints {
				count[int(k)*len(p.Constraints)+c] += p.Constraints[c].of(uint32(v))
			}
		}
		for i, sum := range count {
			if sum != load[i] || sum > p.Constraints[i%len(p.Constraints)].Limit {
				t.Errorf("seed %d: loads %v, counted %v", seed, load, count)
				break
			}
		}
		for v := range uint32(60) { // two cliques: nothing needs to be cut
			if parts[v] != parts[v/30*30] {
				t.Errorf("seed %d: a clique is cut", seed)
				break
			}
		}
	}
}

// withIsolated is two cliques of 30 vertices and 140 vertices without edges, to be cut into four parts of
// about 50; odd seeds weigh vertices.
func withIsolated(seed uint64) *Problem {
	g := &graph.CSR{Indptr: make([]int64, 1)}
	for v := range uint32(200) {
		for u := v / 30 * 30; v < 60 && u < v/30*30+30; u++ {
			if u != v {
				g.Indices = append(g.Indices, u)
			}
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	p := &Problem{Graph: g, Parts: 4, Seed: seed, Constraints: []Constraint{{Limit: 51}}}
	if seed%2 == 1 {
		weight, total := make([]uint32, 200), int64(0)
		for v := range weight {
			weight[v] = uint32(rng.New(seed).IntN(uint64(v), 3))
			total += int64(weight[v])
		}
		p.Constraints = append(p.Constraints, Constraint{Weight: weight, Limit: total/4 + total/10})
	}
	return p
}
