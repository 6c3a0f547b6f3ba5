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
	"strings"
)

// The requests, each the body of a POST.
type (
	verticesRequest struct {
		Vertices list[vertexName] `json:"vertices"`
	}
	nearestRequest struct {
		Vertex *vertexName `json:"vertex"`
		K      *int        `json:"k"`
	}
	pairsRequest struct {
		Pairs list[pair] `json:"pairs"`
	}
	newRequest struct {
		Features   newFeatures      `json:"features"`
		Neighbours list[vertexName] `json:"neighbours"`
		Weights    list[number]     `json:"weights"`
	}
)

// list is a list of bounded length. It is counted before memory is allocated for it, which
// is many times that of the text.
type list[T any] struct {
	field string
	most  int
	all   []T
}

// UnmarshalJSON takes a list, or null.
func (l *list[T]) UnmarshalJSON(b []byte) error {
	l.all = nil
	switch n := elements(b); {
	case string(b) == "null":
		return nil
	case b[0] != '[':
		return refuse(http.StatusBadRequest, "%s: found %.40s, want a list", l.field, b)
	case n > l.most:
		return refuse(http.StatusBadRequest, "%s: found %d, want at most %d in a request", l.field, n, l.most)
	}
	if err := json.Unmarshal(b, &l.all); err != nil {
		return refuse(http.StatusBadRequest, "%s: %v", l.field, err)
	}
	return nil
}

// elements is how many a JSON list has.
func elements(list []byte) (n int) {
	depth, text := 0, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			n++
		}
	}
	if len(list) < 2 || len(bytes.TrimSpace(list[1:len(list)-1])) == 0 {
		return 0
	}
	return n + 1
}

// pair is two vertices.
type pair [2]vertexName

// UnmarshalJSON takes a list of two vertices.
func (p *pair) UnmarshalJSON(b []byte) error {
	if n := elements(b); b[0] != '[' || n != 2 {
		return fmt.Errorf("found %.40s, want two vertices", b)
	}
	return json.Unmarshal(b, (*[2]vertexName)(p))
}

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

// readBody reads a whole request. One that announces too large a body is refused at once.
func readBody(r io.Reader, announced, most int64) ([]byte, error) {
	tooLarge := refuse(http.StatusRequestEntityTooLarge, "body: found more than %d bytes; ask for fewer at a time",
		most)
	if announced > most {
		return nil, tooLarge
	}
	b, err := io.ReadAll(r)
	var large *http.MaxBytesError
	var no *refusal
	switch {
	case errors.As(err, &large):
		return nil, tooLarge
	case errors.As(err, &no):
		return nil, no
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "body: %v", err)
	}
	return b, nil
}

// unknownField begins the error of encoding/json, which has no type for it.
const unknownField = "json: unknown field "

// decode reads one JSON object into a request; unknown fields are mistakes.
func decode(b []byte, into any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return refuse(http.StatusBadRequest, "body: found nothing, want a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var no *refusal
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &no):
		return no
	case errors.As(err, &kind) && kind.Field == "":
		return refuse(http.StatusBadRequest, "body: found %s, want a JSON object", kind.Value)
	case errors.As(err, &kind):
		return refuse(http.StatusBadRequest, "%s: found %s, want a whole number", kind.Field, kind.Value)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(http.StatusBadRequest, "body: found its end in the middle of a JSON object")
	case err != nil && strings.HasPrefix(err.Error(), unknownField):
		return refuse(http.StatusBadRequest, "body: found the field %.80s, which such a request does not have",
			strings.TrimPrefix(err.Error(), unknownField))
	case err != nil:
		return refuse(http.StatusBadRequest, "body: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return refuse(http.StatusBadRequest, "body: found more after the JSON object")
	}
	return nil
}

// named returns a list of vertices, no longer than a request may name.
func (s *Server) named(field string) list[vertexName] {
	return list[vertexName]{field: field, most: s.limits.Vertices}
}

// findAll are the vertices of a list.
func (s *Server) findAll(l list[vertexName]) ([]uint32, error) {
	out := make([]uint32, len(l.all))
	for i, name := range l.all {
		v, err := s.find(fmt.Sprintf("%s[%d]", l.field, i), name)
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

func (s *Server) askedVertices(body []byte) ([]uint32, error) {
	q := verticesRequest{s.named("vertices")}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	if len(q.Vertices.all) == 0 {
		return nil, refuse(http.StatusBadRequest, "vertices: found none, want a list of vertices")
	}
	return s.findAll(q.Vertices)
}

// askedPairs are as many vertices as other requests may name: half as many pairs.
func (s *Server) askedPairs(body []byte) (left, right []uint32, err error) {
	q := pairsRequest{list[pair]{field: "pairs", most: max(s.limits.Vertices/2, 1)}}
	if err := decode(body, &q); err != nil {
		return nil, nil, err
	}
	if len(q.Pairs.all) == 0 {
		return nil, nil, refuse(http.StatusBadRequest, "pairs: found none, want a list of pairs of vertices")
	}
	for i, p := range q.Pairs.all {
		u, err := s.find(fmt.Sprintf("pairs[%d][0]", i), p[0])
		if err != nil {
			return nil, nil, err
		}
		v, err := s.find(fmt.Sprintf("pairs[%d][1]", i), p[1])
		if err != nil {
			return nil, nil, err
		}
		left, right = append(left, u), append(right, v)
	}
	return left, right, nil
}

// mostNearest bounds k.
const mostNearest = 1000

func (s *Server) askedNearest(body []byte) (v uint32, k int, err error) {
	var q nearestRequest
	if err := decode(body, &q); err != nil {
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

func (s *Server) askedNew(body []byte) (features []float32, neighbours []uint32, weights []float32, err error) {
	want := s.answers.trained.Config.Model.In
	q := newRequest{newFeatures{list: list[number]{field: "features", most: want + s.limits.Vertices}}, s.named("neighbours"),
		list[number]{field: "weights", most: s.limits.Vertices}}
	if err := decode(body, &q); err != nil {
		return nil, nil, nil, err
	}
	if s.answers.trained.Embeddings != nil {
		return nil, nil, nil, refuse(http.StatusBadRequest,
			"new vertices: found a model with embeddings of the vertices it was trained on, want one without")
	}
	if s.answers.trained.Config.Model.EdgeDim > 0 {
		return nil, nil, nil, refuse(http.StatusBadRequest,
			"new vertices: found a model that looks at features of edges, want one that does not")
	}
	if features, err = q.Features.numbers(s.answers.trained.Config.Preparation); err != nil {
		return nil, nil, nil, err
	}
	if n := len(features); n != want {
		return nil, nil, nil, refuse(http.StatusBadRequest,
			"features: found %d, want %d, as the vertices of the graph have", n, want)
	}
	if neighbours, err = s.findAll(q.Neighbours); err != nil {
		return nil, nil, nil, err
	}
	seen := make(map[uint32]bool, len(neighbours))
	for i, u := range neighbours {
		if seen[u] {
			return nil, nil, nil, refuse(http.StatusBadRequest, "neighbours[%d]: found %.80q again, want each once",
				i, string(q.Neighbours.all[i]))
		}
		seen[u] = true
	}
	if q.Weights.all != nil {
		if s.answers.data.Graph.Weights == nil {
			return nil, nil, nil, refuse(http.StatusBadRequest,
				"weights: found some, want none: the graph has no weights")
		}
		if n := len(q.Weights.all); n != len(neighbours) {
			return nil, nil, nil, refuse(http.StatusBadRequest, "weights: found %d, want one per neighbour (%d)", n,
				len(neighbours))
		}
		weights = floats(q.Weights.all)
	}
	return features, neighbours, weights, nil
}
