package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
)

// The requests, each the body of a POST.
type (
	verticesRequest struct {
		Vertices []vertexName `json:"vertices"`
	}
	nearestRequest struct {
		Vertex *vertexName `json:"vertex"`
		K      *int        `json:"k"`
	}
	pairsRequest struct {
		Pairs [][]vertexName `json:"pairs"`
	}
	newRequest struct {
		Features   []number     `json:"features"`
		Neighbours []vertexName `json:"neighbours"`
		Weights    []number     `json:"weights"`
	}
)

// number is a float32 that is neither null nor too large for one.
type number float32

// UnmarshalJSON takes a number.
func (n *number) UnmarshalJSON(b []byte) error {
	x, err := strconv.ParseFloat(string(b), 32)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return fmt.Errorf("found %.40s, want a number that a float32 can hold", b)
	}
	*n = number(x)
	return nil
}

func floats(n []number) []float32 {
	out := make([]float32, len(n))
	for i, x := range n {
		out[i] = float32(x)
	}
	return out
}

// refusal is a request that cannot be answered, with its HTTP status.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// decode reads one JSON object into a request; unknown fields are mistakes.
func decode(r io.Reader, into any) error {
	b, err := io.ReadAll(r)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return refuse(http.StatusRequestEntityTooLarge, "body: found more than %d bytes; ask for fewer at a time", large.Limit)
		}
		return refuse(http.StatusBadRequest, "body: %v", err)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return refuse(http.StatusBadRequest, "body: found nothing, want a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return refuse(http.StatusBadRequest, "body: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return refuse(http.StatusBadRequest, "body: found more after the JSON object")
	}
	return nil
}

// findAll are the vertices of a list.
func (s *Server) findAll(field string, list []vertexName) ([]uint32, error) {
	if len(list) > s.limits.Vertices {
		return nil, refuse(http.StatusBadRequest, "%s: found %d, want at most %d; ask several times", field, len(list), s.limits.Vertices)
	}
	out := make([]uint32, len(list))
	for i, name := range list {
		v, err := s.find(fmt.Sprintf("%s[%d]", field, i), name)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (s *Server) find(field string, name vertexName) (uint32, error) {
	v, ok := s.answers.names.find(name)
	if !ok {
		return 0, refuse(http.StatusNotFound, "%s: found %.80q, want a vertex of the graph", field, string(name))
	}
	return v, nil
}

func (s *Server) askedVertices(r io.Reader) ([]uint32, error) {
	var q verticesRequest
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if len(q.Vertices) == 0 {
		return nil, refuse(http.StatusBadRequest, "vertices: found none, want a list of vertices")
	}
	return s.findAll("vertices", q.Vertices)
}

// askedPairs are as many vertices as other requests may name: half as many pairs.
func (s *Server) askedPairs(r io.Reader) (left, right []uint32, err error) {
	var q pairsRequest
	if err := decode(r, &q); err != nil {
		return nil, nil, err
	}
	if most := max(s.limits.Vertices/2, 1); len(q.Pairs) == 0 || len(q.Pairs) > most {
		return nil, nil, refuse(http.StatusBadRequest, "pairs: found %d, want 1 to %d pairs of vertices; ask several times for more", len(q.Pairs), most)
	}
	for i, pair := range q.Pairs {
		if len(pair) != 2 {
			return nil, nil, refuse(http.StatusBadRequest, "pairs[%d]: found %d vertices, want two", i, len(pair))
		}
		u, err := s.find(fmt.Sprintf("pairs[%d][0]", i), pair[0])
		if err != nil {
			return nil, nil, err
		}
		v, err := s.find(fmt.Sprintf("pairs[%d][1]", i), pair[1])
		if err != nil {
			return nil, nil, err
		}
		left, right = append(left, u), append(right, v)
	}
	return left, right, nil
}

// mostNearest bounds k.
const mostNearest = 1000

func (s *Server) askedNearest(r io.Reader) (v uint32, k int, err error) {
	var q nearestRequest
	if err := decode(r, &q); err != nil {
		return 0, 0, err
	}
	k = 10
	if q.K != nil {
		k = *q.K
	}
	switch {
	case q.Vertex == nil:
		return 0, 0, refuse(http.StatusBadRequest, "vertex: found none, want a vertex")
	case k < 1 || k > mostNearest:
		return 0, 0, refuse(http.StatusBadRequest, "k: found %d, want 1 to %d", k, mostNearest)
	}
	v, err = s.find("vertex", *q.Vertex)
	return v, k, err
}

func (s *Server) askedNew(r io.Reader) (features []float32, neighbours []uint32, weights []float32, err error) {
	var q newRequest
	if err := decode(r, &q); err != nil {
		return nil, nil, nil, err
	}
	if s.answers.trained.Config.Model.EdgeDim > 0 {
		return nil, nil, nil, refuse(http.StatusBadRequest, "new vertices: found a model that looks at features of edges, want one that does not")
	}
	if want := s.answers.trained.Config.Model.In; len(q.Features) != want {
		return nil, nil, nil, refuse(http.StatusBadRequest, "features: found %d numbers, want %d, as the vertices of the graph have", len(q.Features), want)
	}
	if neighbours, err = s.findAll("neighbours", q.Neighbours); err != nil {
		return nil, nil, nil, err
	}
	seen := make(map[uint32]bool, len(neighbours))
	for i, u := range neighbours {
		if seen[u] {
			return nil, nil, nil, refuse(http.StatusBadRequest, "neighbours[%d]: found %.80q again, want each once", i, string(q.Neighbours[i]))
		}
		seen[u] = true
	}
	if q.Weights != nil {
		if s.answers.data.Graph.Weights == nil {
			return nil, nil, nil, refuse(http.StatusBadRequest, "weights: found some, want none: the graph has no weights")
		}
		if len(q.Weights) != len(neighbours) {
			return nil, nil, nil, refuse(http.StatusBadRequest, "weights: found %d, want one a neighbour (%d)", len(q.Weights), len(neighbours))
		}
		weights = floats(q.Weights)
	}
	return floats(q.Features), neighbours, weights, nil
}
