package graph

import "strconv"

// Names finds vertices by their names before import.
type Names struct {
	texts map[string]uint32
	ints  map[int64]uint32
	nodes int
}

// NewNames are the names of a dataset's vertices; of a typed one those of a type: see OfType.
func NewNames(d *Dataset) *Names {
	n := &Names{nodes: int(d.Meta.Nodes)}
	if d.Graph != nil {
		n.nodes = d.Graph.Nodes()
	}
	switch {
	case !d.HasIDs():
	case d.TextIDs():
		n.texts = make(map[string]uint32, n.nodes)
		for v := range n.nodes {
			n.texts[d.ID(uint32(v))] = uint32(v)
		}
	default:
		n.ints = make(map[int64]uint32, n.nodes)
		for v := range n.nodes {
			id, _ := strconv.ParseInt(d.ID(uint32(v)), 10, 64) // they were written from numbers
			n.ints[id] = uint32(v)
		}
	}
	return n
}

// Texts reports whether names are texts, not numbers.
func (n *Names) Texts() bool { return n.texts != nil }

// Find is the vertex of a name.
func (n *Names) Find(name string) (v uint32, ok bool) {
	if n.texts != nil {
		v, ok = n.texts[name]
		return v, ok
	}
	id, err := strconv.ParseInt(name, 10, 64)
	switch {
	case err != nil:
		return 0, false
	case n.ints != nil:
		v, ok = n.ints[id]
		return v, ok
	}
	return uint32(id), id >= 0 && id < int64(n.nodes)
}
