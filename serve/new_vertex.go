package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// newRequest is a vertex that is not in the graph.
type newRequest struct {
	Type       string           `json:"type"`
	Features   newFeatures      `json:"features"`
	Neighbours list[vertexName] `json:"neighbours"`
	Weights    list[number]     `json:"weights"`
	Edges      relationLists    `json:"edges"` // of a typed graph, instead of Neighbours
}

// relationLists are vertices by the names of relations; their number is bounded.
type relationLists struct {
	most int
	by   map[string]list[vertexName]
}

// UnmarshalJSON takes an object of lists, or null.
func (r *relationLists) UnmarshalJSON(b []byte) error {
	r.by = nil
	if string(b) == "null" {
		return nil
	}
	var raw map[string]json.RawMessage
	switch n := elements(b); {
	case b[0] != '{':
		return refuse(http.StatusBadRequest, "edges: found %.40s, want lists of vertices by relation", b)
	case n > r.most:
		return refuse(http.StatusBadRequest, "edges: found %d, want at most %d in a request", n, r.most)
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	r.by = map[string]list[vertexName]{}
	left := r.most
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		l := list[vertexName]{field: "edges." + short(name), most: left}
		if err := json.Unmarshal(raw[name], &l); err != nil {
			return err
		}
		left -= len(l.all)
		r.by[name] = l
	}
	return nil
}

// short is as much of a name as a message shows.
func short(name string) string { return name[:min(len(name), 80)] }

// newVertex is a new vertex as the model takes it.
type newVertex struct {
	features   []float32 // as they were before they were standardized
	neighbours []uint32
	weights    []float32
	in         []Incoming // of a typed graph, instead of neighbours
}

func (v *newVertex) predicted(a *Answers) Prediction {
	if a.data.Typed() {
		return a.PredictNewTyped(v.features, v.in)
	}
	return a.PredictNew(v.features, v.neighbours, v.weights)
}

func (s *Server) askedNew(body []byte) (v *newVertex, err error) {
	of, want := s.answers.kinds[s.answers.target], s.answers.newWidth()
	q := newRequest{Features: newFeatures{list: list[number]{field: "features", most: want + s.limits.Vertices}},
		Neighbours: s.named("neighbours"), Weights: list[number]{field: "weights", most: s.limits.Vertices},
		Edges: relationLists{most: s.limits.Vertices}}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	if err := s.refuseNew(&q, of); err != nil {
		return nil, err
	}
	v = &newVertex{}
	if v.features, err = q.Features.numbers(s.answers.trained.Config.Preparation, of.kind); err != nil {
		return nil, err
	}
	if n := len(v.features); n != want {
		return nil, refuse(http.StatusBadRequest, "features: found %d, want %d, as the vertices of the graph have", n, want)
	}
	if s.answers.data.Typed() {
		v.in, err = s.incoming(&q)
		return v, err
	}
	return v, s.neighbours(&q, of, v)
}

// newWidth is how many features a new vertex has.
func (a *Answers) newWidth() int {
	if c := a.trained.Config.Model.Typed; c != nil {
		return c.Types[a.target].In
	}
	return a.trained.Config.Model.In
}

// refuseNew refuses what the model knows nothing of, and fields that the graph has no use for.
func (s *Server) refuseNew(q *newRequest, of *ends) error {
	bad := func(format string, args ...any) error { return refuse(http.StatusBadRequest, format, args...) }
	c, typed := &s.answers.trained.Config, s.answers.data.Typed()
	kind, err := s.kind(q.Type)
	switch {
	case err != nil:
		return err
	case kind != of:
		return refuse(http.StatusNotFound, "type: found %.80q, want %.80q, which the model predicts", kind.kind, of.kind)
	case typed && c.Model.Typed.Types[s.answers.target].In == 0:
		return bad("new vertices: found type %.80q, whose vertices have rows that were learnt, want one with features", of.kind)
	case s.answers.trained.Embeddings != nil:
		return bad("new vertices: found a model with embeddings of the vertices it was trained on, want one without")
	case c.Model.EdgeDim > 0:
		return bad("new vertices: found a model that looks at features of edges, want one that does not")
	case typed && (q.Neighbours.all != nil || q.Weights.all != nil):
		return bad("neighbours, weights: found some, want edges: lists of vertices by relation, of %.400s", s.answers.allInto())
	case !typed && q.Edges.by != nil:
		return bad("edges: found some, want neighbours: the graph has no types")
	}
	return nil
}

// neighbours are found in a graph without types, each once.
func (s *Server) neighbours(q *newRequest, of *ends, v *newVertex) (err error) {
	if v.neighbours, err = findAll(of, q.Neighbours); err != nil {
		return err
	}
	seen := make(map[uint32]bool, len(v.neighbours))
	for i, u := range v.neighbours {
		if seen[u] {
			return refuse(http.StatusBadRequest, "neighbours[%d]: found %.80q again, want each once", i,
				string(q.Neighbours.all[i]))
		}
		seen[u] = true
	}
	if q.Weights.all == nil {
		return nil
	}
	if s.answers.data.Graph.Weights == nil {
		return refuse(http.StatusBadRequest, "weights: found some, want none: the graph has no weights")
	}
	if n := len(q.Weights.all); n != len(v.neighbours) {
		return refuse(http.StatusBadRequest, "weights: found %d, want one per neighbour (%d)", n, len(v.neighbours))
	}
	v.weights = floats(q.Weights.all)
	return nil
}

// incoming are the edges of a new vertex of a typed graph.
func (s *Server) incoming(q *newRequest) (in []Incoming, err error) {
	schema := s.answers.data.Meta.Schema
	for _, name := range slices.Sorted(maps.Keys(q.Edges.by)) {
		r := s.answers.into(name)
		switch {
		case r < 0:
			return nil, refuse(http.StatusNotFound, "edges: found the relation %.80q, want one that leads to %.60s: %.400s", name,
				schema.Types[s.answers.target].Name, s.answers.allInto())
		case slices.ContainsFunc(in, func(x Incoming) bool { return x.Relation == r }):
			return nil, refuse(http.StatusBadRequest, "edges: found the relation %.80q by two names, want each once",
				schema.RelationName(r))
		}
		from, err := findAll(s.answers.kinds[schema.Relations[r].Source], q.Edges.by[name])
		if err != nil {
			return nil, err
		}
		in = append(in, Incoming{r, from})
	}
	return in, nil
}

// into is the relation of a name that leads to the target; -1: there is none, or several.
func (a *Answers) into(name string) int {
	found := -1
	s := a.data.Meta.Schema
	for _, r := range s.Into(a.target) {
		switch {
		case s.RelationName(r) == name:
			return r
		case s.Relations[r].Name == name && found == -1:
			found = r
		case s.Relations[r].Name == name:
			found = -2
		}
	}
	return max(found, -1)
}

// allInto lists the relations that lead to the target.
func (a *Answers) allInto() string {
	var list []string
	for _, r := range a.data.Meta.Schema.Into(a.target) {
		list = append(list, fmt.Sprintf("%q", a.data.Meta.Schema.RelationName(r)))
	}
	return strings.Join(list, ", ")
}
