package exchange

import (
	"fmt"

	"starling/graph"
)

// In a typed graph replicas have features, of their type's width. Rows that are learnt change in every step, and a
// worker has the gradients of its own ones alone: vertices of such types are never replicated. Their rows are received
// in every layer, also for replicas that need them, and the gradients return to their owners.

// Learnt reports whether the rows of a vertex, by its id in the dataset, are learnt.
func (w *Worker) Learnt(id uint32) bool {
	s := w.Part.Book.Schema
	return s != nil && s.Types[s.TypeOf(id)].Features == nil
}

// checkTypes checks that the ends of every edge are of its relation's types: peers sent some of both.
func (c *Replicas) checkTypes() error {
	s := c.W.Part.Book.Schema
	if s == nil {
		return nil
	}
	types := make([]int, len(c.all))
	for i := range c.all {
		types[i] = s.TypeOf(c.vertices[i].ID)
	}
	for v := range c.In.Nodes() {
		for e := c.In.Indptr[v]; e < c.In.Indptr[v+1]; e++ {
			if r := &s.Relations[c.In.Relations[e]]; r.Target != types[v] || r.Source != types[c.from[e]] {
				return fmt.Errorf("an edge from vertex %d to %d of relation %q does not fit their types; do all "+
					"workers have parts of the same partition?", c.vertices[c.from[e]].ID, c.vertices[v].ID,
					s.RelationName(int(c.In.Relations[e])))
			}
		}
	}
	return nil
}

// typesOf are the types of replicas.
func (c *Replicas) typesOf() []int {
	out, core := make([]int, len(c.IDs)), c.W.Part.Core()
	for i := range out {
		out[i] = c.W.Part.Book.Schema.TypeOf(c.vertices[core+i].ID)
	}
	return out
}

// joinedTypes are the features of own vertices and replicas, by type: rows of a type are in the order of all rows.
func (c *Replicas) joinedTypes() ([]*graph.Features, error) {
	own, types := c.W.Part.TypeFeatures, c.typesOf()
	if c.W.MemoryOnly {
		return unreadTypes(own, types), nil
	}
	ids, at := c.asked()
	sorted := make([]int, len(ids))
	for i, j := range at {
		sorted[j] = types[i]
	}
	got, err := c.Owners.TypeFeatures(ids, sorted)
	if err != nil || len(ids) == 0 {
		return own, err
	}
	rows := make([]int, len(ids)) // of the type, where a replica's row arrived
	count := make([]int, len(own))
	for j, t := range sorted {
		rows[j] = count[t]
		count[t]++
	}
	order := make([][]int, len(own)) // rows of got by type, in the order of replicas
	for i, t := range types {
		order[t] = append(order[t], rows[at[i]])
	}
	out := make([]*graph.Features, len(own))
	for t, f := range own {
		if f != nil {
			out[t] = withRows(f, got[t], order[t])
		}
	}
	return out, nil
}

// withRows are features followed by rows of others.
func withRows(f, others *graph.Features, order []int) *graph.Features {
	if len(order) == 0 {
		return f
	}
	out := &graph.Features{Rows: f.Rows + len(order), Cols: f.Cols}
	if others.BF16 != nil {
		out.BF16 = appendRows(append([]uint16(nil), f.BF16...), others.BF16, order, f.Cols)
	} else {
		out.F32 = appendRows(append([]float32(nil), f.F32...), others.F32, order, f.Cols)
	}
	return out
}

// unreadTypes are features with rows for replicas of these types, which are never read.
func unreadTypes(own []*graph.Features, types []int) []*graph.Features {
	out, count := make([]*graph.Features, len(own)), make([]int, len(own))
	for _, t := range types {
		count[t]++
	}
	for t, f := range own {
		if out[t] = f; count[t] > 0 {
			out[t] = unread(f, f.Rows+count[t])
		}
	}
	return out
}
