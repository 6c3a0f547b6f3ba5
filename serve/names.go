package serve

import (
	"encoding/json"
	"fmt"
	"strconv"

	"starling/graph"
)

// vertexName is a vertex in a request: a whole number or a text, as its dataset
// has it.
type vertexName string

// UnmarshalJSON takes a whole number or a text.
func (n *vertexName) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil && b[0] == '"' {
		*n = vertexName(s)
		return nil
	}
	if _, err := strconv.ParseInt(string(b), 10, 64); err != nil {
		return fmt.Errorf("found %.40s, want a vertex: a whole number or a text", b)
	}
	*n = vertexName(b)
	return nil
}

// names finds vertices by their names before import.
type names struct {
	data  *graph.Dataset
	texts map[string]uint32
	ints  map[int64]uint32
	nodes int
}

func namesOf(d *graph.Dataset) *names {
	n := &names{data: d, nodes: int(d.Meta.Nodes)}
	if d.Graph != nil {
		n.nodes = d.Graph.Nodes()
	}
	switch {
	case !d.HasIDs():
	case textIDs(d):
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

// find is the vertex of a name.
func (n *names) find(name vertexName) (v uint32, ok bool) {
	if n.texts != nil {
		v, ok = n.texts[string(name)]
		return v, ok
	}
	id, err := strconv.ParseInt(string(name), 10, 64)
	switch {
	case err != nil:
		return 0, false
	case n.ints != nil:
		v, ok = n.ints[id]
		return v, ok
	}
	return uint32(id), id >= 0 && id < int64(n.nodes)
}

// of is a vertex's name, as JSON.
func (n *names) of(v uint32) json.RawMessage {
	name := n.data.ID(v)
	if n.texts == nil {
		return json.RawMessage(name)
	}
	b, _ := json.Marshal(name) // a string is always valid JSON
	return b
}
