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
	data *graph.Dataset
	*graph.Names
}

func namesOf(d *graph.Dataset) *names { return &names{d, graph.NewNames(d)} }

// find is the vertex of a name.
func (n *names) find(name vertexName) (v uint32, ok bool) { return n.Find(string(name)) }

// of is a vertex's name, as JSON.
func (n *names) of(v uint32) json.RawMessage {
	name := n.data.ID(v)
	if !n.Texts() {
		return json.RawMessage(name)
	}
	b, _ := json.Marshal(name) // a string is always valid JSON
	return b
}
