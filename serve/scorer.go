package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// pairScorer scores pairs of vertices with the rows that a model gives them: of a graph without types any two, of a typed
// graph the ends that an edge of one relation has.
type pairScorer struct {
	of               *Trained
	relation         int // of the schema; -1: the graph has no types
	sources, targets *ends
	// Once run: the decoder, the rows of all vertices on the device.
	dev     tensor.Device
	decoder *nn.Decoder
	z       tensor.Matrix
}

// ends are the vertices that one end of a pair may be: from first on, by the names they had before import.
type ends struct {
	*names
	first uint32
	count int
	kind  string // the name of the type; "": the graph has no types
}

func (e *ends) find(name vertexName) (uint32, bool) {
	v, ok := e.names.find(name)
	return v + e.first, ok
}

// name is what a vertex was called before import, json the same as JSON.
func (e *ends) name(v uint32) string          { return e.data.ID(v - e.first) }
func (e *ends) json(v uint32) json.RawMessage { return e.of(v - e.first) }

// allOf are the vertices of a graph without types, ofType those of a type.
func allOf(d *graph.Dataset) *ends { return &ends{namesOf(d), 0, d.Graph.Nodes(), ""} }

func ofType(d *graph.Dataset, k int) *ends {
	t := &d.Meta.Schema.Types[k]
	return &ends{namesOf(d.OfType(k)), uint32(t.First), int(t.Count), t.Name}
}

// scorer finds what pairs are: relation has to be named where the model knows several.
func (t *Trained) scorer(d *graph.Dataset, relation string) (*pairScorer, error) {
	if err := t.suits(d); err != nil {
		return nil, err
	}
	if !t.ofPairs() {
		return nil, &graph.InputError{File: t.Dir, Field: "task", Found: t.task(d),
			Want: "a model of pairs, for scores", Fix: "train one with --task link"}
	}
	if !d.Typed() {
		if relation != "" {
			return nil, &graph.InputError{Field: "--relation", Found: fmt.Sprintf("%q, and a graph without types", relation),
				Want: "a model of a typed graph", Fix: "leave it out"}
		}
		all := allOf(d)
		return &pairScorer{of: t, relation: -1, sources: all, targets: all}, nil
	}
	s := d.Meta.Schema
	at := t.scoredRelation(s, relation)
	if at < 0 {
		return nil, &graph.InputError{Field: "--relation", Found: fmt.Sprintf("%q", relation),
			Want: "one of the relations that the model predicts: " + t.scoredNames(s)}
	}
	return &pairScorer{of: t, relation: at, sources: ofType(d, s.Relations[at].Source),
		targets: ofType(d, s.Relations[at].Target)}, nil
}

// scoredRelation is the relation that the model predicts of a name, as source, name and target or the name alone; "" where
// it predicts one; -1: there is none, or several.
func (t *Trained) scoredRelation(s *graph.Schema, name string) int {
	at, scored := -1, t.Config.Model.Typed.Scored
	for _, r := range scored {
		if s.RelationName(r) != name && s.Relations[r].Name != name && (name != "" || len(scored) > 1) {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = r
	}
	return at
}

// scoredNames lists the relations that the model predicts.
func (t *Trained) scoredNames(s *graph.Schema) string {
	var names []string
	for _, r := range t.Config.Model.Typed.Scored {
		names = append(names, fmt.Sprintf("%q", s.RelationName(r)))
	}
	return strings.Join(names, ", ")
}

// run computes the rows of all vertices.
func (s *pairScorer) run(dev tensor.Device, d *graph.Dataset) error {
	t := s.of
	none := func(*nn.Model, int) bool { return false }
	var out *pass
	var err error
	if s.relation >= 0 {
		out, err = t.forwardTyped(dev, d, none)
	} else if features, failed := t.features(d); failed != nil {
		err = failed
	} else {
		out, err = t.forward(dev, d, features, none)
	}
	if err != nil {
		return err
	}
	model, err := t.Model(dev)
	if err != nil {
		return err
	}
	s.take(dev, out.logits)
	s.decode(dev, model)
	return dev.Err()
}

// take takes the rows of all vertices.
func (s *pairScorer) take(dev tensor.Device, z rows) {
	s.z, _ = stored(dev, s.of.Rows(), len(z.data)/z.width, z.width, z.data)
}

// decode has a model's decoder score pairs, on a device.
func (s *pairScorer) decode(dev tensor.Device, m *nn.Model) {
	s.dev, s.decoder = dev, m.Decoder
	if s.relation >= 0 {
		s.decoder.Relation(slices.Index(s.of.Config.Model.Typed.Scored, s.relation))
	}
}

// scoreBlock bounds the pairs that are decoded at a time.
const scoreBlock = 1 << 14

// scores decodes pairs, a block at a time.
func (s *pairScorer) scores(left, right []uint32) []float32 {
	out := make([]float32, len(left))
	for lo := 0; lo < len(left); lo += scoreBlock {
		hi := min(lo+scoreBlock, len(left))
		m := s.decoder.Score(&nn.Pass{Dev: s.dev, Rows: s.of.Rows()}, s.z, tensor.Indices(s.dev, left[lo:hi]),
			tensor.Indices(s.dev, right[lo:hi]))
		s.dev.Download(out[lo:hi], m)
		s.dev.Free(m)
	}
	return out
}
