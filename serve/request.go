package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// The requests, each the body of a POST.
type (
	verticesRequest struct {
		Type     string           `json:"type"`
		Vertices list[vertexName] `json:"vertices"`
	}
	nearestRequest struct {
		Type   string      `json:"type"`
		Vertex *vertexName `json:"vertex"`
		K      *int        `json:"k"`
	}
	pairsRequest struct {
		Relation string     `json:"relation"`
		Pairs    list[pair] `json:"pairs"`
	}
	partnersRequest struct {
		Relation string      `json:"relation"`
		Vertex   *vertexName `json:"vertex"`
		K        *int        `json:"k"`
		Known    bool        `json:"known"`
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
		return refuse(http.StatusBadRequest, "%s: found %s, want %s", kind.Field, kind.Value, wantKind(kind.Type.Kind()))
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

// wantKind is what a field of a request takes.
func wantKind(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	}
	return "a whole number"
}

// named returns a list of vertices, no longer than a request may name.
func (s *Server) named(field string) list[vertexName] {
	return list[vertexName]{field: field, most: s.limits.Vertices}
}

// findAll are the vertices of a list, which are of a type.
func findAll(of *ends, l list[vertexName]) ([]uint32, error) {
	out := make([]uint32, len(l.all))
	for i, name := range l.all {
		v, err := find(of, fmt.Sprintf("%s[%d]", l.field, i), name)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func find(of *ends, field string, name vertexName) (uint32, error) {
	v, ok := of.find(name)
	switch {
	case ok:
		return v, nil
	case of.kind != "":
		return 0, refuse(http.StatusNotFound, "%s: found %.80q, want a vertex of type %.60s", field, string(name), of.kind)
	}
	return 0, refuse(http.StatusNotFound, "%s: found %.80q, want a vertex of the graph", field, string(name))
}

// kind is the vertices of a type; without a name those that the model predicts.
func (s *Server) kind(name string) (*ends, error) {
	a := s.answers
	switch {
	case !a.data.Typed() && name != "":
		return nil, refuse(http.StatusBadRequest, "type: found %.80q, want none: the graph has no types", name)
	case name == "" && (!a.data.Typed() || !a.trained.ofPairs()):
		return a.kinds[a.target], nil
	}
	k := a.data.Meta.Schema.Type(name)
	if k < 0 {
		return nil, refuse(http.StatusNotFound, "type: found %.80q, want one of %.400s", name, a.kindNames())
	}
	return a.kinds[k], nil
}

func (s *Server) askedVertices(body []byte) (*ends, []uint32, error) {
	q := verticesRequest{Vertices: s.named("vertices")}
	if err := decode(body, &q); err != nil {
		return nil, nil, err
	}
	of, err := s.kind(q.Type)
	switch {
	case err != nil:
		return nil, nil, err
	case len(q.Vertices.all) == 0:
		return nil, nil, refuse(http.StatusBadRequest, "vertices: found none, want a list of vertices")
	}
	vertices, err := findAll(of, q.Vertices)
	return of, vertices, err
}

// askedPairs are as many vertices as other requests may name: half as many pairs.
func (s *Server) askedPairs(body []byte) (of *pairScorer, left, right []uint32, err error) {
	q := pairsRequest{Pairs: list[pair]{field: "pairs", most: max(s.limits.Vertices/2, 1)}}
	if err := decode(body, &q); err != nil {
		return nil, nil, nil, err
	}
	if of, err = s.relation(q.Relation); err != nil {
		return nil, nil, nil, err
	}
	if len(q.Pairs.all) == 0 {
		return nil, nil, nil, refuse(http.StatusBadRequest, "pairs: found none, want a list of pairs of vertices")
	}
	for i, p := range q.Pairs.all {
		u, err := find(of.sources, fmt.Sprintf("pairs[%d][0]", i), p[0])
		if err != nil {
			return nil, nil, nil, err
		}
		v, err := find(of.targets, fmt.Sprintf("pairs[%d][1]", i), p[1])
		if err != nil {
			return nil, nil, nil, err
		}
		left, right = append(left, u), append(right, v)
	}
	return of, left, right, nil
}

// relation finds what pairs are; a name is needed where the model predicts several relations.
func (s *Server) relation(name string) (*pairScorer, error) {
	a := s.answers
	if !a.data.Typed() && name != "" {
		return nil, refuse(http.StatusBadRequest, "relation: found %.80q, want none: the graph has no types", name)
	}
	of := a.scorerOf(name)
	if of == nil {
		return nil, refuse(http.StatusBadRequest, "relation: found %.80q, want one that the model predicts: %.400s", name,
			a.trained.scoredNames(a.data.Meta.Schema))
	}
	return of, nil
}

func (s *Server) askedPartners(body []byte) (of *pairScorer, u uint32, k int, known bool, err error) {
	var q partnersRequest
	if err = decode(body, &q); err != nil {
		return nil, 0, 0, false, err
	}
	if of, err = s.relation(q.Relation); err == nil {
		u, k, err = askedOne(of.sources, q.Vertex, q.K)
	}
	return of, u, k, q.Known, err
}

// mostNearest bounds k.
const mostNearest = 1000

func (s *Server) askedNearest(body []byte) (v uint32, k int, err error) {
	var q nearestRequest
	if err := decode(body, &q); err != nil {
		return 0, 0, err
	}
	of, err := s.kind(q.Type)
	if err != nil {
		return 0, 0, err
	}
	return askedOne(of, q.Vertex, q.K)
}

// askedOne is a vertex of a type, and how many others are asked for.
func askedOne(of *ends, name *vertexName, count *int) (v uint32, k int, err error) {
	k = 10
	if count != nil {
		k = *count
	}
	switch {
	case name == nil:
		return 0, 0, refuse(http.StatusBadRequest, "vertex: found none, want a vertex")
	case k < 1 || k > mostNearest:
		return 0, 0, refuse(http.StatusBadRequest, "k: found %d, want 1 to %d", k, mostNearest)
	}
	v, err = find(of, "vertex", *name)
	return v, k, err
}
