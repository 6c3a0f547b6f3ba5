package partition

import (
	"context"
	"fmt"
	"math"

	"starling/event"
	"starling/graph"
)

// Hierarchical partitions between servers first and inside each server afterwards, so
// that traffic over the slow links between servers is minimised first. Worker w of server s is part s·workers + w.
//
// A tolerance ε is divided evenly: √(1+ε)-1 at each level, which compounds to
// ε again. Inside a server, edges that leave it do not count.
func Hierarchical(ctx context.Context, method string, p *Problem, servers int) ([]uint32, error) {
	workers := p.Parts / servers
	if servers <= 1 || workers <= 1 {
		return By(ctx, method, p)
	}
	outer := *p
	outer.Parts, outer.Constraints = servers, halved(p.constraints())
	parts, err := By(ctx, method, &outer)
	if parts == nil {
		return nil, err
	}
	start, order := group(parts, servers)
	out := make([]uint32, len(parts))
	for s := range servers {
		members := order[start[s]:start[s+1]]
		if len(members) < workers {
			return nil, &graph.InputError{Field: "workers",
				Found: fmt.Sprintf("%d on a server with %s", workers, event.Tally(len(members), "vertex")),
				Want:  "at least one vertex per worker", Fix: "ask for fewer workers or servers"}
		}
		sub := subproblem(&outer, members, parts)
		sub.Parts = workers
		inner, err := By(ctx, method, sub)
		if inner == nil {
			return nil, err
		}
		for i, v := range members {
			out[v] = uint32(s*workers) + inner[i]
		}
	}
	return out, newLoads(p).of(out).unbalanced(out)
}

func halved(constraints []Constraint) []Constraint {
	out := make([]Constraint, len(constraints))
	for i, c := range constraints {
		c.Tolerance = math.Sqrt(1+c.Tolerance) - 1
		out[i] = c
	}
	return out
}

// subproblem is the problem on some vertices, which all have the same part, and
// the edges among them.
func subproblem(p *Problem, members []uint32, parts []uint32) *Problem {
	sub := *p
	home := parts[members[0]]
	local := make([]uint32, p.Graph.Nodes())
	for i, v := range members {
		local[v] = uint32(i)
	}
	g := &graph.CSR{Indptr: make([]int64, len(members)+1)}
	for i, v := range members {
		for _, u := range p.Graph.Neighbors(v) {
			if parts[u] == home {
				g.Indices = append(g.Indices, local[u])
			}
		}
		g.Indptr[i+1] = int64(len(g.Indices))
	}
	sub.Graph = g
	sub.Constraints = make([]Constraint, len(p.Constraints))
	for c, con := range p.Constraints {
		sub.Constraints[c] = con
		if con.Weight == nil {
			continue
		}
		w := make([]uint32, len(members))
		for i, v := range members {
			w[i] = con.Weight[v]
		}
		sub.Constraints[c].Weight = w
	}
	pick := func(ids []uint32) (out []uint32) {
		for _, v := range ids {
			if parts[v] == home {
				out = append(out, local[v])
			}
		}
		return out
	}
	sub.Splits = graph.Splits{Train: pick(p.Splits.Train), Val: pick(p.Splits.Val), Test: pick(p.Splits.Test)}
	return &sub
}
