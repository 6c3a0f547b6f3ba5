package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/graph"
	"starling/internal/testdeadline"
	"starling/nn"
	"starling/tensor/cpu"
)

func answersFor(t testing.TB, model string, d *graph.Dataset) *Answers {
	t.Helper()
	dev := cpu.New(2)
	t.Cleanup(dev.Close)
	a, err := NewAnswers(dev, trained(t, models[model], d), d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func serverFor(t testing.TB, model string, d *graph.Dataset) *Server {
	return NewServer(answersFor(t, model, d), DefaultLimits(), nil)
}

// post asks and returns the status and the answer.
func post(s *Server, path, body string) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func asked[T any](t testing.TB, s *Server, path, body string) (out T) {
	t.Helper()
	status, text := post(s, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %.200s: %d %s", path, body, status, text)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

type predictionsReply struct{ Predictions []predictionReply }

// TestServedEqualsPredicted: to the bit, in any kind of ids.
func TestServedEqualsPredicted(t *testing.T) {
	ints, texts := called()
	for name, d := range map[string]*graph.Dataset{"numbers": block(t), "integers": named(t, ints, nil),
		"texts": named(t, nil, texts)} {
		t.Run(name, func(t *testing.T) {
			s := serverFor(t, "gat", d)
			want, labels := predicted(t, s.answers.trained, d, Probabilities), predicted(t, s.answers.trained, d,
				Labels)
			var list []json.RawMessage
			for v := range 200 {
				list = append(list, s.answers.name(uint32(v)))
			}
			b, _ := json.Marshal(map[string]any{"vertices": list})
			got := asked[predictionsReply](t, s, "/predict", string(b)).Predictions
			for v, p := range got {
				if string(p.Vertex) != string(list[v]) || *p.Label != labels.Class[v] ||
					!slices.Equal(p.Probabilities, want.Values[v*want.Width:(v+1)*want.Width]) {
					t.Fatalf("vertex %d: %+v", v, p)
				}
			}
			e := predicted(t, s.answers.trained, d, Embeddings)
			emb := asked[struct{ Embeddings []embeddingReply }](t, s, "/embeddings", string(b)).Embeddings
			for v, x := range emb {
				if !slices.Equal(x.Embedding, e.Values[v*e.Width:(v+1)*e.Width]) {
					t.Fatalf("embedding of vertex %d differs", v)
				}
			}
		})
	}
}

// TestNewVertexLikeAnOldOne: a vertex with the features and neighbours of one in the
// graph is predicted as that one, in every model; many ask at once.
func TestNewVertexLikeAnOldOne(t *testing.T) {
	plain := block(t)
	weighted := block(t)
	weighted.Graph.Weights = make([]float32, len(weighted.Graph.Indices))
	for i := range weighted.Graph.Weights {
		weighted.Graph.Weights[i] = 0.5 + float32(i%7)/4
	}
	for _, d := range []*graph.Dataset{plain, weighted} {
		for name := range models {
			s := serverFor(t, name, d)
			var all sync.WaitGroup
			for v := uint32(0); v < 200; v += 9 {
				all.Go(func() {
					row := make([]float32, d.Features.Cols)
					d.Features.CopyRow(row, v)
					q := map[string]any{"features": row, "neighbours": d.Graph.Neighbors(v)}
					if w := d.Graph.Weights; w != nil {
						q["weights"] = w[d.Graph.Indptr[v]:d.Graph.Indptr[v+1]]
					}
					b, _ := json.Marshal(q)
					status, text := post(s, "/predict_new", string(b))
					var got predictionReply
					if status != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil {
						t.Errorf("%s, vertex %d: %d %s", name, v, status, text)
						return
					}
					for i, x := range s.answers.Predict(v).Probabilities {
						if math.Abs(float64(got.Probabilities[i]-x)) > 1e-5 {
							t.Errorf("%s, weights %v, vertex %d: %v, want %v", name, d.Graph.Weights != nil, v,
								got.Probabilities, s.answers.Predict(v).Probabilities)
							return
						}
					}
				})
			}
			all.Wait()
		}
	}
}

func TestNearestEqualsSlowTwin(t *testing.T) {
	a := answersFor(t, "sage", block(t))
	e, _ := a.embeddings()
	for _, k := range []int{1, 7, 199, 1000} {
		for v := uint32(0); v < 200; v += 37 {
			var want []Similar
			for u := range uint32(200) {
				if u == v {
					continue
				}
				want = append(want, Similar{u, dot(e.of(v), e.of(u)) / (a.norms[v] * a.norms[u])})
			}
			slices.SortStableFunc(want, func(x, y Similar) int {
				switch {
				case x.Cosine > y.Cosine:
					return -1
				case x.Cosine < y.Cosine:
					return 1
				}
				return 0
			})
			if got := a.Nearest(v, k); !slices.Equal(got, want[:min(k, 199)]) {
				t.Fatalf("vertex %d, k %d: %v, want %v", v, k, got, want[:min(k, 199)])
			}
		}
	}
}

func TestBadRequests(t *testing.T) {
	s := serverFor(t, "gcn", block(t))
	s.limits.Vertices, s.limits.Body = 50, 1000
	features := strings.Repeat("1,", 11) + "1"
	many := strings.TrimSuffix(strings.Repeat("1,", 51), ",")
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/predict", "", 400, "found nothing"},
		{"/predict", "{", 400, "found its end"},
		{"/predict", "[]", 400, "want a JSON object"},
		{"/predict", `{"vertices":{}}`, 400, "vertices: found {}, want a list"},
		{"/predict", `{"vertices":"1,2"}`, 400, "want a list"},
		{"/nearest", `{"vertex":1,"k":"5"}`, 400, "k: found string, want a whole number"},
		{"/nearest", `{"vertex":1,"k":1.5}`, 400, "want a whole number"},
		{"/predict_new", `{"features":[` + strings.Repeat("3e38,", 11) + `3e38],"neighbours":[1]}`, 400, "not finite"},
		{"/predict", "{}", 400, "vertices"},
		{"/predict", `{"vertices":[]}`, 400, "vertices"},
		{"/predict", `{"vertices":null}`, 400, "vertices"},
		{"/predict", `{"vertices":[null]}`, 400, "null"},
		{"/predict", `{"vertices":[1.5]}`, 400, "1.5"},
		{"/predict", `{"vertices":[{}]}`, 400, "{}"},
		{"/predict", `{"vertices":[0,200]}`, 404, "vertices[1]"},
		{"/predict", `{"vertices":[-1]}`, 404, "-1"},
		{"/predict", `{"vertices":["x"]}`, 404, "x"},
		{"/predict", `{"vertices":[1],"more":2}`, 400, `found the field "more"`},
		{"/predict", `{"vertices":[1]} {}`, 400, "more after"},
		{"/predict", `{"vertices":[` + many + `]}`, 400, "at most 50"},
		{"/predict", `{"vertices":[1]` + strings.Repeat(" ", 1000) + `}`, 413, "1000 bytes"},
		{"/embeddings", `{"vertices":[4000000000000]}`, 404, "4000000000000"},
		{"/nearest", `{}`, 400, "vertex"},
		{"/nearest", `{"vertex":1,"k":0}`, 400, "k: found 0"},
		{"/nearest", `{"vertex":1,"k":100000}`, 400, "100000"},
		{"/nearest", `{"vertex":"absent"}`, 404, "absent"},
		{"/predict_new", `{"features":[1],"neighbours":[]}`, 400, "want 12"},
		{"/predict_new", `{"features":[` + features[:len(features)-1] + `null]}`, 400, "null"},
		{"/predict_new", `{"features":[` + features[:len(features)-1] + `1e39]}`, 400, "1e39"},
		{"/predict_new", `{"features":[` + features + `],"neighbours":[3,3]}`, 400, "again"},
		{"/predict_new", `{"features":[` + features + `],"neighbours":[999]}`, 404, "neighbours[0]"},
		{"/predict_new", `{"features":[` + features + `],"neighbours":[3],"weights":[1]}`, 400, "no weights"},
		{"/elsewhere", `{}`, 404, "elsewhere"},
	} {
		status, text := post(s, c.path, c.body)
		var e struct{ Error string }
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != c.status ||
			!strings.Contains(e.Error, c.says) || strings.Contains(e.Error, "serve.") {
			t.Errorf("%s %.60s: %d %s, want %d and %q", c.path, c.body, status, text, c.status, c.says)
		}
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{{"GET", "/predict", 405}, {"POST", "/healthz", 405}, {"DELETE", "/metrics", 405}, {"GET", "/healthz",
		200}, {"HEAD", "/metrics", 200}} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.status {
			t.Errorf("%s %s: %d", c.method, c.path, w.Code)
		}
	}
	if status, text := post(serverFor(t, "gcn-one", block(t)), "/nearest", `{"vertex":1}`); status != 404 ||
		!strings.Contains(text, "one layer") {
		t.Error(status, text)
	}
}

func TestTokenPlacesAndMetrics(t *testing.T) {
	l := DefaultLimits()
	l.AtOnce, l.Wait = 1, 1
	s := NewServer(answersFor(t, "gcn", block(t)), l, []byte("sixteen letters!"))
	ask := func(path, method, token string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(`{"vertices":[1]}`))
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for token, want := range map[string]int{"": 401, "sixteen letters?": 401, "sixteen letters!": 200} {
		if status, text := ask("/predict", "POST", token); status != want {
			t.Errorf("token %q: %d %s", token, status, text)
		}
	}
	if status, _ := ask("/healthz", "GET", ""); status != 200 {
		t.Error("a liveness probe needs no token")
	}
	s.slots <- struct{}{} // a request is being answered
	if status, text := ask("/predict", "POST", "sixteen letters!"); status != 503 {
		t.Error(status, text)
	}
	<-s.slots
	_, page := ask("/metrics", "GET", "sixteen letters!")
	for _, want := range []string{`requests_total{path="/predict",status="200"} 1`,
		`requests_total{path="/predict",status="503"} 1`,
		`request_seconds_count{path="/predict"} 2`, `request_seconds_bucket{path="/nearest",le="+Inf"} 0`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
}

// TestSlowClients: slow senders block no other request, and all of them together
// cannot hold more than so much.
func TestSlowClients(t *testing.T) {
	l := DefaultLimits()
	l.AtOnce, l.Wait = 1, 1
	s := NewServer(answersFor(t, "gcn", block(t)), l, nil)
	s.most = 1000
	body, sender := io.Pipe()
	done := make(chan struct{})
	slow := httptest.NewRecorder()
	go func() {
		defer close(done)
		defer body.Close()
		s.ServeHTTP(slow, httptest.NewRequest("POST", "/predict", body))
	}()
	n, _ := sender.Write([]byte(`{"vertices":[1` + strings.Repeat(" ", 500)))
	testdeadline.Do(t, time.Minute, "counting the bytes of a slow sender", func() {
		for s.held.Load() < int64(n) {
			runtime.Gosched()
		}
	})
	if status, text := post(s, "/predict", `{"vertices":[1]}`); status != 200 {
		t.Error(status, text)
	}
	if status, text := post(s, "/predict", `{"vertices":[1]`+strings.Repeat(" ", 500)+"}"); status != 503 ||
		!strings.Contains(text, "memory") {
		t.Error(status, text)
	}
	sender.Write([]byte("]}" + strings.Repeat(" ", 1000))) // alone it may have more
	sender.Close()
	testdeadline.Do(t, time.Minute, "answering the slow sender", func() { <-done })
	if slow.Code != 200 || s.held.Load() != 0 {
		t.Error(slow.Code, slow.Body.String(), s.held.Load())
	}
}

// TestFilesCutOff: a dataset that shrinks underneath fails a request, not the program.
func TestFilesCutOff(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("datasets are mapped on Linux and macOS alone")
	}
	ids := make([]int64, 200)
	for v := range ids {
		ids[v] = int64(v)
	}
	d := named(t, ids, nil)
	s := NewServer(answersFor(t, "gcn", d), DefaultLimits(), nil)
	if err := os.Truncate(filepath.Join(d.Dir, "features.npy"), 0); err != nil {
		t.Fatal(err)
	}
	if status, text := post(s, "/predict_new",
		`{"features":[1,1,1,1,1,1,1,1,1,1,1,1],"neighbours":[3]}`); status != 500 ||
		!strings.Contains(text, "changed") {
		t.Error(status, text)
	}
	if status, text := post(s, "/predict", `{"vertices":[3]}`); status != 200 {
		t.Error(status, text)
	}
}

// TestElements: lists are counted as they are decoded.
func TestElements(t *testing.T) {
	for _, text := range []string{`[]`, `[ ]`, `[1]`, `[1,2 , 3]`, `["a,b","\"],[",""]`,
		`[[],[1,2],{"a":[1,2],"b":"\\"}]`, `[[]]`, `[{}]`, `[null,"\\\",",true]`} {
		var all []json.RawMessage
		if err := json.Unmarshal([]byte(text), &all); err != nil || elements([]byte(text)) != len(all) {
			t.Errorf("%s: %d, want %d, %v", text, elements([]byte(text)), len(all), err)
		}
	}
}

func TestServedSeveralLabels(t *testing.T) {
	d := block(t)
	r := trained(t, models["gcn"], d)
	r.Config.Task = nn.TaskMultiLabel
	dev := cpu.New(1)
	defer dev.Close()
	a, err := NewAnswers(dev, r, d)
	if err != nil {
		t.Fatal(err)
	}
	marks := predicted(t, r, d, Labels)
	for v := range uint32(200) {
		got := a.Predict(v)
		for c := range 4 {
			if slices.Contains(got.Labels, int32(c)) != (marks.Marks[int(v)*4+c] == 1) {
				t.Fatalf("vertex %d: %v", v, got)
			}
		}
	}
}

// pairsServer answers from a model of pairs.
func pairsServer(t testing.TB, decoder string, d *graph.Dataset) *Server {
	t.Helper()
	c := models["sage"]
	c.Decoder = decoder
	dev := cpu.New(2)
	t.Cleanup(dev.Close)
	a, err := NewAnswers(dev, trained(t, c, d), d)
	if err != nil {
		t.Fatal(err)
	}
	return NewServer(a, DefaultLimits(), nil)
}

// TestServedPairs: scores and embeddings are those that are predicted; what the model
// is not for is refused.
func TestServedPairs(t *testing.T) {
	_, texts := called()
	d := named(t, nil, texts)
	for _, decoder := range nn.Decoders {
		s := pairsServer(t, decoder, d)
		u, v := s.answers.name(3), s.answers.name(7)
		file := filepath.Join(t.TempDir(), "pairs.csv")
		line := strings.ReplaceAll(fmt.Sprintf("%s,%s\n%s,%s\n", u, v, v, v), `"`, "")
		if err := os.WriteFile(file, []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
		want, err := s.answers.trained.Scores(s.answers.dev, d, file, "")
		if err != nil {
			t.Fatal(err)
		}
		got := asked[struct{ Scores []scoreReply }](t, s, "/score",
			fmt.Sprintf(`{"pairs":[[%s,%s],[%s,%s]]}`, u, v, v, v)).Scores
		for i, x := range got {
			if math.Abs(float64(x.Score-want.Values[i])) > 1e-6 || string(x.Target) != string(v) {
				t.Errorf("%s: pair %d: %+v, want %v", decoder, i, x, want.Values[i])
			}
		}
		e := predicted(t, s.answers.trained, d, Embeddings)
		emb := asked[struct{ Embeddings []embeddingReply }](t, s, "/embeddings",
			fmt.Sprintf(`{"vertices":[%s]}`, v)).Embeddings
		if !slices.Equal(emb[0].Embedding, e.Values[7*e.Width:8*e.Width]) {
			t.Errorf("%s: the embedding differs", decoder)
		}
		if near := asked[struct{ Nearest []nearReply }](t, s, "/nearest",
			fmt.Sprintf(`{"vertex":%s,"k":3}`, v)).Nearest; len(near) != 3 {
			t.Error(near)
		}
		s.limits.Vertices = 4
		for body, says := range map[string]string{`{}`: "found none", `{"pairs":[[1,2,3]]}`: "want two vertices",
			`{"pairs":[5]}`: "want two vertices", `{"pairs":[["absent","x"]]}`: "pairs[0][0]",
			`{"pairs":[[1,2],[1,2],[1,2]]}`: "at most 2"} {
			if status, text := post(s, "/score", body); status < 400 || status > 499 || !strings.Contains(text, says) {
				t.Errorf("%s: %d %s", body, status, text)
			}
		}
		if status, text := post(s, "/predict", fmt.Sprintf(`{"vertices":[%s]}`, v)); status != 404 ||
			!strings.Contains(text, "/score") {
			t.Error(status, text)
		}
	}
	if status, text := post(serverFor(t, "gcn", d), "/score", `{"pairs":[[1,2]]}`); status != 404 ||
		!strings.Contains(text, "--task link") {
		t.Error(status, text)
	}
}

// FuzzRequests: whatever comes, the answer is JSON, and never the server's fault.
func FuzzRequests(f *testing.F) {
	d := typedBlock(f)
	servers := []*Server{serverFor(f, "sage", block(f)), pairsServer(f, "mlp", block(f)),
		serverOf(f, typedRun(f, "rgcn", "", d), d), serverOf(f, typedRun(f, "rgat", "dot", d, "by", "cites"), d)}
	paths := slices.Sorted(slices.Values(endpoints()))
	for i, body := range []string{`{"vertices":[1,"2"]}`, `{"vertex":3,"k":2}`,
		`{"features":[1,2,3,4,5,6,7,8,9,10,11,12],"neighbours":[1,2]}`, `{"vertices":[1e400]}`, `{"pairs":[[1,2]]}`,
		"{\"vertices\":[\"\\u0000\"]}", `{"type":"author","vertices":[1]}`, `{"relation":"by","pairs":[[1,2]]}`,
		`{"features":[1,2,3,4,5,6],"edges":{"writes":[1,1],"cites":[]}}`, `{"relation":"cites","vertex":3,"known":true}`} {
		for j := range paths {
			for k := range servers {
				f.Add(byte(k*len(paths)+(i+j)%len(paths)), []byte(body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, path byte, body []byte) {
		w := httptest.NewRecorder()
		s := servers[int(path)/len(paths)%len(servers)]
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, paths[int(path)%len(paths)], bytes.NewReader(body)))
		if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
			t.Error(fmt.Sprint(w.Code), w.Body.String())
		}
	})
}

// endless is a body that never comes.
type endless struct{ t *testing.T }

func (e endless) Read([]byte) (int, error) {
	e.t.Error("a body was waited for that says it is too large")
	return 0, io.EOF
}

// TestTooLargeIsNotWaitedFor: a request that announces a large body is answered at once.
func TestTooLargeIsNotWaitedFor(t *testing.T) {
	s := serverFor(t, "gcn", block(t))
	r := httptest.NewRequest("POST", "/predict", endless{t})
	r.ContentLength = 1 << 40
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != 413 || !strings.Contains(w.Body.String(), "more than") {
		t.Error(w.Code, w.Body)
	}
}
