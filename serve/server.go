package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"starling/graph"
)

// Limits bound what requests may cost.
type Limits struct {
	Body     int64         // bytes of a request
	Vertices int           // in one request: queried, or neighbours of a new one
	AtOnce   int           // requests being answered; others wait
	Wait     time.Duration // how long they wait before they are refused
}

// DefaultLimits suit a small machine.
func DefaultLimits() Limits {
	return Limits{Body: 8 << 20, Vertices: 10000, AtOnce: 64, Wait: 5 * time.Second}
}

// Server answers HTTP requests in JSON:
//
//	POST /predict      {"vertices": [..]}                      labels and probabilities
//	POST /embeddings   {"vertices": [..]}                      the input of the last layer
//	POST /nearest      {"vertex": v, "k": 10}                  by cosine of embeddings
//	POST /predict_new  {"features": [..], "neighbours": [..]}  for a vertex not in the graph
//	POST /score        {"pairs": [[u, v], ..]}                 how likely each is an edge
//	POST /partners     {"vertex": u, "k": 10}                  the likeliest other ends
//	GET  /healthz      for liveness probes
//	GET  /metrics      for Prometheus
//
// In a typed graph a vertex is known by its type, {"type": "author", ..}, a pair by its relation, {"relation": "writes", ..},
// and a new vertex has {"features": [..], "edges": {"writes": [..], ..}}.
//
// A model of pairs has embeddings, scores and partners, others all but these two. Mistakes get a status from 400
// to 499 and {"error": ".."}.
type Server struct {
	answers *Answers
	limits  Limits
	token   []byte
	slots   chan struct{}
	held    atomic.Int64 // bytes of requests and answers in flight
	most    int64        // of held
	metrics *metrics

	stopping atomic.Bool // answers are the last of their connections
}

// NewServer serves a; with a token, only requests that carry it, as
// "Authorization: Bearer TOKEN".
func NewServer(a *Answers, limits Limits, token []byte) *Server {
	return &Server{answers: a, limits: limits, token: token, slots: make(chan struct{}, limits.AtOnce),
		most: mostHeld, metrics: newMetrics(endpoints())}
}

// answer is an endpoint: from the body of a request to a value that becomes JSON.
type answer func(s *Server, body []byte) (any, error)

var answers = map[string]answer{"/predict": predict, "/embeddings": embeddings, "/nearest": nearestTo,
	"/predict_new": predictNew, "/score": scores, "/partners": partners}

func endpoints() (paths []string) {
	for path := range answers {
		paths = append(paths, path)
	}
	return paths
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.closing(w)
	work, ok := answers[r.URL.Path]
	switch {
	case r.URL.Path == "/healthz":
		s.get(w, r, "application/json", fmt.Sprintf("{\"status\":\"ok\",\"model\":%q,\"vertices\":%d}\n",
			s.answers.trained.Config.Model.Model, s.answers.Vertices()))
	case !s.authorised(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		reply(w, nil, refuse(http.StatusUnauthorized, "no such token; send the secret as Authorization: Bearer TOKEN"))
	case r.URL.Path == "/metrics":
		s.get(w, r, "text/plain; version=0.0.4; charset=utf-8", s.metrics.page(len(s.slots)))
	case !ok:
		reply(w, nil, refuse(http.StatusNotFound,
			"path: found %.80q, want /predict, /embeddings, /nearest, /predict_new, /score, /partners, /healthz or /metrics",
			r.URL.Path))
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		reply(w, nil, refuse(http.StatusMethodNotAllowed, "method: found %.20q, want POST with a JSON object",
			r.Method))
	default:
		s.measured(w, r, work)
	}
}

// get serves a GET request.
func (s *Server) get(w http.ResponseWriter, r *http.Request, kind, text string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		reply(w, nil, refuse(http.StatusMethodNotAllowed, "method: found %.20q, want GET", r.Method))
		return
	}
	w.Header().Set("Content-Type", kind)
	fmt.Fprint(w, text)
}

// authorised reports whether a request carries the token. Hashes are compared, so that the
// time reveals nothing, not even the secret's length.
func (s *Server) authorised(r *http.Request) bool {
	if s.token == nil {
		return true
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256(s.token)
	return ok && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// measured answers when there is a slot, and records the time. Only computing takes a
// slot: slow senders and receivers do not block others, and the memory of all of them
// together is bounded instead.
func (s *Server) measured(w http.ResponseWriter, r *http.Request, work answer) {
	start := time.Now()
	in := &counted{from: http.MaxBytesReader(w, r.Body, s.limits.Body), s: s}
	defer in.release()
	var out any
	body, err := readBody(in, r.ContentLength, s.limits.Body)
	if err == nil {
		out, err = s.placed(w, r, body, work)
	}
	status, b := encode(out, err)
	if !in.hold(len(b)) {
		status, b = encode(nil, errBusy)
	}
	s.closing(w) // it may have been told to stop since the request came
	write(w, status, b)
	s.metrics.note(r.URL.Path, status, time.Since(start))
}

func (s *Server) placed(w http.ResponseWriter, r *http.Request, body []byte, work answer) (any, error) {
	select {
	case s.slots <- struct{}{}:
	default:
		late := time.NewTimer(s.limits.Wait)
		defer late.Stop()
		select {
		case s.slots <- struct{}{}:
		case <-r.Context().Done():
			return nil, refuse(http.StatusServiceUnavailable, "the client went away")
		case <-late.C:
			w.Header().Set("Retry-After", "1")
			return nil, refuse(http.StatusServiceUnavailable, "%d requests are being answered; ask again later",
				s.limits.AtOnce)
		}
	}
	defer func() { <-s.slots }()
	return s.guarded(body, work)
}

// guarded answers, and returns an error if a mapped file of the dataset was
// truncated: the system would end the program.
func (s *Server) guarded(body []byte, work answer) (out any, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		e := recover()
		if _, fault := e.(interface{ Addr() uintptr }); fault {
			err = refuse(http.StatusInternalServerError,
				"the dataset's files were changed while they were in use; start the server again")
		} else if e != nil {
			panic(e)
		}
	}()
	return work(s, body)
}

// counted is the bytes of a request and its answer, which count until it is sent.
type counted struct {
	from io.Reader
	s    *Server
	n    int64
}

var errBusy = refuse(http.StatusServiceUnavailable,
	"requests and answers on their way take too much memory; ask for fewer at a time, or later")

// mostHeld bounds the bytes of all requests and answers in flight.
const mostHeld = 512 << 20

// hold counts n bytes more. Other limits bound a single request.
func (c *counted) hold(n int) bool {
	c.n += int64(n)
	all := c.s.held.Add(int64(n))
	return all <= c.s.most || all == c.n
}

func (c *counted) release() { c.s.held.Add(-c.n) }

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if !c.hold(n) {
		return n, errBusy
	}
	return n, err
}

// reply writes an answer or an error.
func reply(w http.ResponseWriter, out any, err error) {
	status, b := encode(out, err)
	write(w, status, b)
}

// encode is an answer or an error as JSON, and its status.
func encode(out any, err error) (status int, b []byte) {
	status = http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
		var no *refusal
		if errors.As(err, &no) {
			status = no.status
		}
		out = map[string]string{"error": err.Error()}
	}
	b, err = json.Marshal(out)
	if err != nil { // NaN or infinity, which JSON does not have
		status, b = http.StatusInternalServerError, []byte(`{"error":"the model's answer is not finite"}`)
	}
	return status, append(b, '\n')
}

func write(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}

type predictionReply struct {
	Vertex        json.RawMessage `json:"vertex,omitempty"`
	Label         *int32          `json:"label,omitempty"`
	Class         string          `json:"class,omitempty"` // the label's name, where classes have names
	Labels        []int32         `json:"labels,omitzero"` // where a vertex may have several
	Classes       []string        `json:"classes,omitzero"`
	Probabilities []float32       `json:"probabilities,omitempty"`
	Values        []float32       `json:"values,omitempty"` // of regression, instead
}

func (p Prediction) reply(vertex json.RawMessage, names []string) predictionReply {
	out := predictionReply{Vertex: vertex, Labels: p.Labels, Probabilities: p.Probabilities, Values: p.Values}
	if p.Labels == nil && p.Values == nil {
		out.Label = &p.Label
	}
	if len(names) == 0 {
		return out
	}
	if out.Label != nil {
		out.Class = graph.ClassName(names, int(p.Label))
	}
	for _, c := range p.Labels {
		out.Classes = append(out.Classes, graph.ClassName(names, int(c)))
	}
	return out
}

// ofPairs refuses queries that the model is not for.
func (s *Server) ofPairs(want bool) error {
	switch {
	case want == s.answers.trained.ofPairs():
		return nil
	case want:
		return refuse(http.StatusNotFound,
			"the model is of vertices: ask /predict; one trained with --task link scores pairs")
	}
	return refuse(http.StatusNotFound, "the model is of pairs: ask /score, /partners, /embeddings or /nearest")
}

func predict(s *Server, body []byte) (any, error) {
	if err := s.ofPairs(false); err != nil {
		return nil, err
	}
	of, vertices, err := s.askedVertices(body)
	if err != nil {
		return nil, err
	}
	if target := s.answers.kinds[s.answers.target]; of != target {
		return nil, refuse(http.StatusNotFound, "type: found %.80q, want %.80q, which the model predicts; /embeddings has rows "+
			"of other types", of.kind, target.kind)
	}
	out := make([]predictionReply, len(vertices))
	for i, v := range vertices {
		out[i] = s.answers.Predict(v).reply(of.json(v), s.answers.trained.Config.ClassNames)
	}
	return map[string]any{"predictions": out}, nil
}

func predictNew(s *Server, body []byte) (any, error) {
	if err := s.ofPairs(false); err != nil {
		return nil, err
	}
	if s.answers.apart {
		return nil, refuse(http.StatusBadRequest,
			"new vertices: the server was started on a partition; start it on the dataset to have them answered")
	}
	v, err := s.askedNew(body)
	if err != nil {
		return nil, err
	}
	p := v.predicted(s.answers)
	for _, x := range slices.Concat(p.Probabilities, p.Values) {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, refuse(http.StatusBadRequest,
				"features: with these the model's answer is not finite; want numbers as the vertices of the graph have")
		}
	}
	return p.reply(nil, s.answers.trained.Config.ClassNames), nil
}

type embeddingReply struct {
	Vertex    json.RawMessage `json:"vertex"`
	Embedding []float32       `json:"embedding"`
}

// hasEmbeddings refuses to show the features of a model of one layer as such.
func (s *Server) hasEmbeddings() (rows, error) {
	e, ok := s.answers.embeddings()
	if !ok {
		return e, refuse(http.StatusNotFound,
			"a model of one layer has no embeddings: the input of its only layer is the features")
	}
	return e, nil
}

func embeddings(s *Server, body []byte) (any, error) {
	e, err := s.hasEmbeddings()
	if err != nil {
		return nil, err
	}
	of, vertices, err := s.askedVertices(body)
	if err != nil {
		return nil, err
	}
	out := make([]embeddingReply, len(vertices))
	for i, v := range vertices {
		out[i] = embeddingReply{of.json(v), e.of(v)}
	}
	return map[string]any{"embeddings": out}, nil
}

type nearReply struct {
	Vertex json.RawMessage `json:"vertex"`
	Cosine float32         `json:"cosine"`
}

func nearestTo(s *Server, body []byte) (any, error) {
	if _, err := s.hasEmbeddings(); err != nil {
		return nil, err
	}
	v, k, err := s.askedNearest(body)
	if err != nil {
		return nil, err
	}
	out := []nearReply{}
	for _, n := range s.answers.Nearest(v, k) {
		out = append(out, nearReply{s.answers.name(n.Vertex), n.Cosine})
	}
	return map[string]any{"vertex": s.answers.name(v), "nearest": out}, nil
}

type scoreReply struct {
	Source json.RawMessage `json:"source"`
	Target json.RawMessage `json:"target"`
	Score  float32         `json:"score"`
}

func scores(s *Server, body []byte) (any, error) {
	if err := s.ofPairs(true); err != nil {
		return nil, err
	}
	of, left, right, err := s.askedPairs(body)
	if err != nil {
		return nil, err
	}
	out := make([]scoreReply, len(left))
	for i, x := range s.answers.score(of, left, right) {
		out[i] = scoreReply{of.sources.json(left[i]), of.targets.json(right[i]), x}
	}
	return map[string]any{"scores": out}, nil
}

type partnerReply struct {
	Vertex json.RawMessage `json:"vertex"`
	Score  float32         `json:"score"`
}

func partners(s *Server, body []byte) (any, error) {
	if err := s.ofPairs(true); err != nil {
		return nil, err
	}
	of, u, k, known, err := s.askedPartners(body)
	if err != nil {
		return nil, err
	}
	out := []partnerReply{}
	for _, p := range s.answers.partners(of, u, k, known) {
		out = append(out, partnerReply{of.targets.json(p.Vertex), p.Score})
	}
	return map[string]any{"vertex": of.sources.json(u), "partners": out}, nil
}
