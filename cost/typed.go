package cost

import (
	"starling/graph"
	"starling/nn"
)

// TypedStep is what a small step of a typed graph takes beside: rows of every type, as many as its share of the part.
type TypedStep struct {
	Schema *graph.Schema
	// Core and All are the runs of the worker's vertices, and of all that edges start at.
	Core, All []graph.Run
	Features  []*graph.Features
	Input     func(runs []graph.Run, f []*graph.Features) nn.Input

	picked []graph.Run // of the rows that are timed
}

// fold is a graph of about n vertices with all their in-edges, from vertices of the same type: as folded, but edges
// from types of which the worker has no vertex are left out.
func (t *TypedStep) fold(in *graph.CSR, n int) *graph.CSR {
	from := t.pick(n, in.Nodes())
	of := make([]graph.Run, len(t.Schema.Types)) // the picked rows of each type
	for _, run := range t.picked {
		of[run.Type] = run
	}
	source := sourceTypes(t.All)
	g := &graph.CSR{Indptr: []int64{0}}
	for i, run := range t.picked {
		for v := from[i]; v < from[i]+run.Hi-run.Lo; v++ {
			for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
				if to := of[source[in.Indices[e]]]; to.Hi > to.Lo {
					g.Indices = append(g.Indices, uint32(to.Lo)+in.Indices[e]%uint32(to.Hi-to.Lo))
					g.Relations = append(g.Relations, in.Relations[e])
				}
			}
			g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		}
	}
	return g
}

// pick takes the first rows of every type, about n of all, and returns where they begin in the part.
func (t *TypedStep) pick(n, all int) (from []int) {
	t.picked = nil
	seen, at := make([]bool, len(t.Schema.Types)), 0
	for _, run := range t.Core {
		if seen[run.Type] {
			continue
		}
		seen[run.Type] = true
		rows := run.Hi - run.Lo
		take := min(rows, (rows*n+all-1)/max(all, 1))
		t.picked = append(t.picked, graph.Run{Type: run.Type, Lo: at, Hi: at + take})
		from = append(from, run.Lo)
		at += take
	}
	return from
}

// sourceTypes is the type of every vertex that edges start at.
func sourceTypes(runs []graph.Run) []int {
	var out []int
	for _, run := range runs {
		for range run.Hi - run.Lo {
			out = append(out, run.Type)
		}
	}
	return out
}

// input puts the picked rows on the device.
func (t *TypedStep) input() nn.Input {
	features := make([]*graph.Features, len(t.Features))
	for _, run := range t.picked {
		if f := t.Features[run.Type]; f != nil {
			features[run.Type] = firstRows(f, run.Hi-run.Lo)
		}
	}
	for i, f := range t.Features { // types without a row here
		if f != nil && features[i] == nil {
			features[i] = firstRows(f, 0)
		}
	}
	return t.Input(t.picked, features)
}
