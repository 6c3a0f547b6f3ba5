package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/tensor/cpu"
)

// The types of typedBlock.
const (
	papers, authors, fields = 60, 40, 9
)

// typedBlock has papers, which are predicted, authors without features and fields, and repeated edges. The last papers
// have no edges.
func typedBlock(t testing.TB) *graph.Dataset {
	t.Helper()
	s := &graph.Schema{Types: []graph.VertexType{
		{Name: "paper", Count: papers, Features: &graph.FeatureMeta{Kind: graph.Dense, Dim: 6}, Task: graph.SingleLabel, Classes: 4},
		{Name: "author", First: papers, Count: authors},
		{Name: "field", First: papers + authors, Count: fields, Features: &graph.FeatureMeta{Kind: graph.Dense, Dim: 3}},
	}, Relations: []graph.Relation{{Source: 0, Name: "cites", Target: 0}, {Source: 1, Name: "writes", Target: 0},
		{Source: 2, Name: "has", Target: 0}, {Source: 0, Name: "by", Target: 1}, {Source: 0, Name: "of", Target: 2}}}
	s.SortRelations()
	r := rand.New(rand.NewPCG(3, 4))
	var src, dst []uint32
	var kind []uint16
	for k := range s.Relations {
		rel := &s.Relations[k]
		from, to := s.Types[rel.Source], s.Types[rel.Target]
		for range 150 {
			u, v := r.IntN(int(from.Count)), r.IntN(int(to.Count))
			if v < papers-3 {
				src, dst, kind = append(src, uint32(from.First)+uint32(u)), append(dst, uint32(to.First)+uint32(v)), append(kind,
					uint16(k))
			}
		}
	}
	src, dst, kind = append(src, src[0]), append(dst, dst[0]), append(kind, kind[0])
	g, err := graph.FromTypedEdges(papers+authors+fields, src, dst, kind)
	if err != nil {
		t.Fatal(err)
	}
	labels := &graph.Labels{Classes: 4, Class: slices.Repeat([]int32{-1}, g.Nodes())}
	var splits graph.Splits
	for v := range papers {
		labels.Class[v] = int32(v % 4)
		split := []*[]uint32{&splits.Train, &splits.Val, &splits.Test}[v%3]
		*split = append(*split, uint32(v))
	}
	m := graph.Meta{Name: "typed", Nodes: int64(g.Nodes()), Edges: g.Edges(), Task: graph.SingleLabel, Classes: 4, Schema: s}
	d := graph.Described("typed", m, 0, labels, splits)
	d.Graph = g
	for _, f := range d.TypeFeatures {
		if f == nil {
			continue
		}
		for range f.Rows * f.Cols {
			f.F32 = append(f.F32, float32(r.NormFloat64()))
		}
	}
	return d
}

// typedRun is a run of a typed model with the weights that a seed gives.
func typedRun(t testing.TB, model, decoder string, d *graph.Dataset, scored ...string) *Trained {
	t.Helper()
	s := d.Meta.Schema
	c := nn.Config{Model: model, Layers: 2, Hidden: 16, Out: 4, Heads: 2, Dropout: 0.5, Decoder: decoder, Typed: nn.TypedOf(s)}
	config := Config{Format: "starling-run", Version: 1, Dataset: "typed", Task: nn.TaskClassify, Target: "paper"}
	for k := range s.Types {
		config.TypeFeatures = append(config.TypeFeatures, s.Types[k].Features)
	}
	if c.Typed.Outputs = []int{0}; decoder != "" {
		c.Typed.Outputs, config.Task, config.Target = nil, nn.TaskLink, scored[0]
		for _, name := range scored {
			c.Typed.Scored = append(c.Typed.Scored, s.RelationOf(name))
		}
	}
	config.Model = c
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	dev := cpu.New(1)
	defer dev.Close()
	r := rand.New(rand.NewPCG(5, 6))
	learnt := &nn.Tensor{Name: learntName("author"), Shape: []int{authors, c.Hidden}}
	for range authors * c.Hidden {
		learnt.Data = append(learnt.Data, r.NormFloat64())
	}
	return &Trained{Dir: "run", Config: config, Weights: nn.New(dev, c, 5).State(dev),
		Learnt: map[string]*nn.Tensor{"author": learnt}}
}

func serverOf(t testing.TB, r *Trained, d *graph.Dataset) *Server {
	t.Helper()
	dev := cpu.New(2)
	t.Cleanup(dev.Close)
	a, err := NewAnswers(dev, r, d)
	if err != nil {
		t.Fatal(err)
	}
	return NewServer(a, DefaultLimits(), nil)
}

// all are the names of the vertices of a type, as a request.
func all(kind string, count int) string {
	var list []int
	for v := range count {
		list = append(list, v)
	}
	b, _ := json.Marshal(map[string]any{"type": kind, "vertices": list})
	return string(b)
}

// TestServedTypedEqualsPredicted: labels, probabilities and embeddings of every type equal what predict says, to the
// bit.
func TestServedTypedEqualsPredicted(t *testing.T) {
	d := typedBlock(t)
	for _, model := range nn.TypedModels {
		t.Run(model, func(t *testing.T) {
			r := typedRun(t, model, "", d)
			r.Config.ClassNames = []string{"a", "b", "c", "d"}
			s := serverOf(t, r, d)
			labels, want := predicted(t, r, d, Labels), predicted(t, r, d, Probabilities)
			got := asked[predictionsReply](t, s, "/predict", all("paper", papers)).Predictions
			if unnamed := asked[predictionsReply](t, s, "/predict", `{"vertices":[7]}`).Predictions; len(got) != papers ||
				*unnamed[0].Label != *got[7].Label {
				t.Fatalf("%d papers; without a type: %+v", len(got), unnamed)
			}
			for v, p := range got {
				if string(p.Vertex) != fmt.Sprint(v) || *p.Label != labels.Class[v] || p.Class != string('a'+rune(*p.Label)) ||
					!slices.Equal(p.Probabilities, want.Values[v*4:v*4+4]) {
					t.Fatalf("paper %d: %+v, want %v", v, p, want.Values[v*4:v*4+4])
				}
			}
			for kind, count := range map[string]int{"paper": papers, "author": authors, "field": fields} {
				of := *r
				if err := of.ForType(kind); err != nil {
					t.Fatal(err)
				}
				e := predicted(t, &of, d, Embeddings)
				for v, x := range asked[struct{ Embeddings []embeddingReply }](t, s, "/embeddings", all(kind, count)).Embeddings {
					if len(x.Embedding) == 0 || !slices.Equal(x.Embedding, e.Values[v*e.Width:(v+1)*e.Width]) {
						t.Fatalf("%s %d: %v, want %v", kind, v, x.Embedding, e.Values[v*e.Width:(v+1)*e.Width])
					}
				}
				near := asked[struct{ Nearest []nearReply }](t, s, "/nearest",
					fmt.Sprintf(`{"type":%q,"vertex":3,"k":1000}`, kind)).Nearest
				if len(near) != count-1 || slices.ContainsFunc(near, func(n nearReply) bool { return string(n.Vertex) == "3" }) {
					t.Errorf("%d nearest of type %s: %v", len(near), kind, near)
				}
			}
		})
	}
}

// TestNewTypedVertexLikeAnOldOne: a paper with the features and edges of one in the graph is predicted as that one; many
// ask at once.
func TestNewTypedVertexLikeAnOldOne(t *testing.T) {
	d := typedBlock(t)
	schema := d.Meta.Schema
	for _, model := range nn.TypedModels {
		s := serverOf(t, typedRun(t, model, "", d), d)
		var wait sync.WaitGroup
		for v := range uint32(papers) {
			wait.Go(func() {
				edges := map[string][]uint32{}
				for _, r := range schema.Into(0) {
					lo, hi := d.Graph.Relation(v, r)
					list := []uint32{}
					for _, u := range d.Graph.Indices[lo:hi] {
						list = append(list, u-uint32(schema.Types[schema.Relations[r].Source].First))
					}
					slices.Reverse(list) // the order does not matter
					name := schema.RelationName(r)
					if v%2 == 0 {
						name = schema.Relations[r].Name
					}
					edges[name] = list
				}
				b, _ := json.Marshal(map[string]any{"features": d.TypeFeatures[0].F32[v*6 : v*6+6], "edges": edges})
				status, text := post(s, "/predict_new", string(b))
				var got predictionReply
				if status != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil {
					t.Errorf("%s, paper %d: %d %s", model, v, status, text)
					return
				}
				for i, x := range s.answers.Predict(v).Probabilities {
					if math.Abs(float64(got.Probabilities[i]-x)) > 1e-6 {
						t.Errorf("%s, paper %d: %v, want %v", model, v, got.Probabilities, s.answers.Predict(v).Probabilities)
						return
					}
				}
			})
		}
		wait.Wait()
	}
}

// TestServedRelations: scores of pairs and partners are those that are predicted, to the bit, of every relation.
func TestServedRelations(t *testing.T) {
	d := typedBlock(t)
	s := serverOf(t, typedRun(t, "rgcn", "distmult", d, "paper by author", "cites"), d)
	dev := cpu.New(2)
	defer dev.Close()
	file := filepath.Join(t.TempDir(), "pairs.csv")
	if err := os.WriteFile(file, []byte("5,7\n0,3\n9,9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, relation := range []string{"paper by author", "cites"} {
		r := s.answers.trained
		want, err := r.Scores(dev, d, file, relation)
		if err != nil {
			t.Fatal(err)
		}
		got := asked[struct{ Scores []scoreReply }](t, s, "/score", fmt.Sprintf(`{"relation":%q,"pairs":[[5,7],[0,3],[9,9]]}`,
			relation)).Scores
		for i, x := range got {
			if x.Score != want.Values[i] || string(x.Source) != want.Left[i] || string(x.Target) != want.Right[i] {
				t.Errorf("%s: %+v, want %v", relation, x, want)
			}
		}
		for _, known := range []bool{false, true} {
			for v := range 10 {
				top, err := r.TopScores(dev, d, TopOptions{K: 5, Vertices: []string{fmt.Sprint(v)}, Relation: relation, Known: known})
				if err != nil {
					t.Fatal(err)
				}
				list := asked[struct{ Partners []partnerReply }](t, s, "/partners",
					fmt.Sprintf(`{"relation":%q,"vertex":%d,"k":5,"known":%v}`, relation, v, known)).Partners
				for i, x := range list {
					if len(list) != 5 || x.Score != top.Values[i] || string(x.Vertex) != top.Right[i] {
						t.Fatalf("%s, paper %d, known %v: %+v, want %v", relation, v, known, list, top)
					}
				}
			}
		}
	}
	for _, kind := range []string{"paper", "author", "field"} {
		of := *s.answers.trained
		if err := of.ForType(kind); err != nil {
			t.Fatal(err)
		}
		e := predicted(t, &of, d, Embeddings)
		got := asked[struct{ Embeddings []embeddingReply }](t, s, "/embeddings", fmt.Sprintf(`{"type":%q,"vertices":[2]}`, kind))
		if !slices.Equal(got.Embeddings[0].Embedding, e.Values[2*e.Width:3*e.Width]) {
			t.Errorf("the embedding of %s 2 differs", kind)
		}
	}
	for path, asks := range map[string]map[string]string{
		"/score": {`{"pairs":[[1,2]]}`: `relation: found "", want one that the model predicts: "paper by author", "paper cites paper"`,
			`{"relation":"writes","pairs":[[1,2]]}`: `relation: found "writes"`,
			`{"relation":"by","pairs":[[1,40]]}`:    `pairs[0][1]: found "40", want a vertex of type author`,
			`{"relation":"by","pairs":[[60,1]]}`:    `pairs[0][0]: found "60", want a vertex of type paper`,
			`{"relation":"by","pairs":[]}`:          "found none"},
		"/partners": {`{"relation":"by"}`: "vertex: found none", `{"relation":"by","vertex":1,"k":0}`: "k: found 0",
			`{"vertex":1}`: "relation: found"},
		"/embeddings": {`{"vertices":[1]}`: `type: found "", want one of paper, author, field`},
		"/predict":    {`{"vertices":[1]}`: "/partners"},
	} {
		for body, says := range asks {
			if status, text := post(s, path, body); status < 400 || status > 499 || !strings.Contains(unquoted(text), says) {
				t.Errorf("%s %s: %d %s", path, body, status, text)
			}
		}
	}
}

// unquoted is the text of an error.
func unquoted(text string) string {
	var e struct{ Error string }
	_ = json.Unmarshal([]byte(text), &e)
	return e.Error
}

// TestServedPartners: those of a graph without types are what predict --top finds.
func TestServedPartners(t *testing.T) {
	d := block(t)
	s := pairsServer(t, "mlp", d)
	dev := cpu.New(2)
	defer dev.Close()
	for _, known := range []bool{false, true} {
		want, err := s.answers.trained.TopScores(dev, d, TopOptions{K: 7, Vertices: []string{"3"}, Known: known})
		if err != nil {
			t.Fatal(err)
		}
		got := asked[struct{ Partners []partnerReply }](t, s, "/partners", fmt.Sprintf(`{"vertex":3,"k":7,"known":%v}`, known)).Partners
		if len(got) != 7 {
			t.Fatal(got)
		}
		for i, x := range got {
			if x.Score != want.Values[i] || string(x.Vertex) != want.Right[i] {
				t.Fatalf("known %v: %v, want %v", known, got, want)
			}
		}
	}
	if status, text := post(s, "/partners", `{"vertex":3,"relation":"by"}`); status != 400 || !strings.Contains(text, "no types") {
		t.Error(status, text)
	}
	if status, text := post(serverFor(t, "gcn", d), "/partners", `{"vertex":3}`); status != 404 {
		t.Error(status, text)
	}
}

// TestBadTypedRequests: each is one sentence that names the field.
func TestBadTypedRequests(t *testing.T) {
	d := typedBlock(t)
	s := serverOf(t, typedRun(t, "rgcn", "", d), d)
	s.limits.Vertices = 20
	row := `"features":[1,2,3,4,5,6]`
	many := strings.TrimSuffix(strings.Repeat("1,", 11), ",")
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/predict", `{"type":"author","vertices":[1]}`, 404, `type: found "author", want "paper", which the model predicts`},
		{"/predict", `{"type":"book","vertices":[1]}`, 404, `type: found "book", want one of paper, author, field`},
		{"/predict", `{"type":"paper","vertices":[60]}`, 404, `vertices[0]: found "60", want a vertex of type paper`},
		{"/predict", `{"type":7,"vertices":[60]}`, 400, `type: found number, want a text`},
		{"/embeddings", `{"type":"field","vertices":[9]}`, 404, `want a vertex of type field`},
		{"/nearest", `{"type":"field","vertex":-1}`, 404, `want a vertex of type field`},
		{"/predict_new", `{"type":"author",` + row + `}`, 404, `want "paper"`},
		{"/predict_new", `{` + row + `,"neighbours":[1]}`, 400, `want edges: lists of vertices by relation, of "paper cites paper"`},
		{"/predict_new", `{` + row + `,"edges":[1]}`, 400, `edges: found [1], want lists of vertices by relation`},
		{"/predict_new", `{` + row + `,"edges":{"by":[1]}}`, 404, `edges: found the relation "by", want one that leads to paper`},
		{"/predict_new", `{` + row + `,"edges":{"cites":[1],"paper cites paper":[2]}}`, 400, `by two names`},
		{"/predict_new", `{` + row + `,"edges":{"writes":[40]}}`, 404, `edges.writes[0]: found "40", want a vertex of type author`},
		{"/predict_new", `{` + row + `,"edges":{"writes":[` + many + `],"cites":[` + many + `]}}`, 400,
			`edges.writes: found 11, want at most 9`},
		{"/predict_new", `{` + row + `,"edges":{"writes":{}}}`, 400, `edges.writes: found {}, want a list`},
		{"/predict_new", `{"features":[1]}`, 400, `features: found 1, want 6`},
		{"/predict_new", `{"features":{"year":1}}`, 400, `was not read from tables`},
		{"/score", `{"pairs":[[1,2]]}`, 404, `--task link`},
	} {
		if status, text := post(s, c.path, c.body); status != c.status || !strings.Contains(unquoted(text), c.says) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, text)
		}
	}
	plain := serverFor(t, "gcn", block(t))
	for path, body := range map[string]string{"/predict": `{"type":"paper","vertices":[1]}`,
		"/predict_new": `{"features":[1,2,3,4,5,6,7,8,9,10,11,12],"edges":{"by":[1]}}`} {
		if status, text := post(plain, path, body); status != 400 || !strings.Contains(text, "the graph has no types") {
			t.Error(status, text)
		}
	}
}
