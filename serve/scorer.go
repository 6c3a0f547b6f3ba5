package serve

import (
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
}

func (e *ends) find(name vertexName) (uint32, bool) {
	v, ok := e.names.find(name)
	return v + e.first, ok
}

// name is what a vertex was called before import.
func (e *ends) name(v uint32) string { return e.data.ID(v - e.first) }

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
		all := &ends{namesOf(d), 0, d.Graph.Nodes()}
		return &pairScorer{of: t, relation: -1, sources: all, targets: all}, nil
	}
	s, scored := d.Meta.Schema, t.Config.Model.Typed.Scored
	var names []string
	at := -1
	for _, r := range scored {
		names = append(names, fmt.Sprintf("%q", s.RelationName(r)))
		if s.RelationName(r) == relation || s.Relations[r].Name == relation || relation == "" && len(scored) == 1 {
			if at >= 0 {
				at = -1
				break
			}
			at = r
		}
	}
	if at < 0 {
		return nil, &graph.InputError{Field: "--relation", Found: fmt.Sprintf("%q", relation),
			Want: "one of the relations that the model predicts: " + strings.Join(names, ", ")}
	}
	of := func(k int) *ends {
		return &ends{namesOf(d.OfType(k)), uint32(s.Types[k].First), int(s.Types[k].Count)}
	}
	return &pairScorer{of: t, relation: at, sources: of(s.Relations[at].Source), targets: of(s.Relations[at].Target)}, nil
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
	s.dev, s.decoder = dev, model.Decoder
	if s.relation >= 0 {
		s.decoder.Relation(slices.Index(t.Config.Model.Typed.Scored, s.relation))
	}
	s.z, _ = stored(dev, t.Rows(), len(out.logits.data)/out.logits.width, out.logits.width, out.logits.data)
	return dev.Err()
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
