package serve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/ref"
)

// models are all kinds, with settings that matter to prediction.
var models = map[string]nn.Config{
	"gcn":       {Model: "gcn", Layers: 2, Norm: "none"},
	"gcn-batch": {Model: "gcn", Layers: 3, Norm: "batch"},
	"gcn-one":   {Model: "gcn", Layers: 1, Norm: "none"},
	"sage":      {Model: "sage", Layers: 3, Norm: "layer", Aggregator: "mean"},
	"sage-gcn":  {Model: "sage", Layers: 2, Norm: "none", Aggregator: "gcn"},
	"gat":       {Model: "gat", Layers: 2, Norm: "none", Heads: 4, OutHeads: 1},
	"gat-mean":  {Model: "gat", Layers: 2, Norm: "none", Heads: 2, OutHeads: 3},
	"sage-pool": {Model: "sage-pool", Layers: 2, Norm: "none"},
	"gatv2":     {Model: "gatv2", Layers: 2, Norm: "none", Heads: 2, OutHeads: 3},
	"film":      {Model: "film", Layers: 2, Norm: "layer"},
	"gin":       {Model: "gin", Layers: 2, Norm: "none", TrainEps: true},
	"resgcn+":   {Model: "resgcn+", Layers: 3, Norm: "batch"},
	"ressage+":  {Model: "ressage+", Layers: 2, Norm: "layer", Aggregator: "mean"},
	"mlp":       {Model: "mlp", Layers: 2, Norm: "none"},
}

// block is a small block model, in memory: files would cost most of the time.
func block(t testing.TB) *graph.Dataset {
	t.Helper()
	const n, edges, wide, classes = 200, 1600, 12, 4
	r := rand.New(rand.NewPCG(1, 2))
	f := &graph.Features{Rows: n, Cols: wide, F32: make([]float32, n*wide)}
	for i := range f.F32 {
		f.F32[i] = float32(r.NormFloat64())
	}
	l := &graph.Labels{Classes: classes, Class: make([]int32, n)}
	var s graph.Splits
	for v := range n {
		l.Class[v] = int32(v % classes)
		split := []*[]uint32{&s.Train, &s.Val, &s.Test}[v%3]
		*split = append(*split, uint32(v))
	}
	var src, dst []uint32
	for range edges {
		// The last vertices have no edges.
		if u, v := uint32(r.IntN(n-3)), uint32(r.IntN(n-3)); u != v {
			src, dst = append(src, u), append(dst, v)
		}
	}
	g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{DropDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	m := graph.Meta{Name: "block", Nodes: n, Edges: g.Edges(), Task: graph.SingleLabel, Classes: classes}
	return &graph.Dataset{Dir: "block", Meta: m, Graph: g, Features: f, Labels: l, Splits: s}
}

func opened(t testing.TB, dir string) *graph.Dataset {
	t.Helper()
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// trained is a run with the weights a seed gives.
func trained(t testing.TB, c nn.Config, d *graph.Dataset) *Trained {
	t.Helper()
	c.Hidden, c.In, c.Out, c.Dropout = 16, d.Features.Cols, d.Meta.Classes, 0.5
	dev := cpu.New(1)
	defer dev.Close()
	state := nn.New(dev, c, 5).State(dev)
	for i := range state { // statistics that are not those of an untrained model
		if strings.Contains(state[i].Name, "running") || strings.HasSuffix(state[i].Name, "bias") {
			for j := range state[i].Data {
				state[i].Data[j] += 0.1 + 0.01*float64(j)
			}
		}
	}
	return &Trained{Dir: "run", Config: Config{Format: "starling-run", Version: 1, Model: c, Dataset: d.Meta.Name},
		Weights: state}
}

// written is the folder of a run.
func written(t testing.TB, r *Trained) string {
	t.Helper()
	dir := t.TempDir()
	err := nn.SaveSafetensors(filepath.Join(dir, weightsFile), r.Weights, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := r.Config
	if config.WeightsCRC32C, err = WeightsSum(dir); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(config)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, configFile), b, 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func predicted(t testing.TB, r *Trained, d *graph.Dataset, what string) *Predictions {
	t.Helper()
	dev := cpu.New(2)
	defer dev.Close()
	p, err := r.Predict(dev, d, what)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// twin is the model's own forward pass in double precision.
func twin(t testing.TB, r *Trained, d *graph.Dataset) [][]float64 {
	t.Helper()
	dev := ref.New()
	m, err := r.Model(dev)
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.features(d)
	if err != nil {
		t.Fatal(err)
	}
	x := dev.New(tensor.F64, f.Rows, f.Cols)
	host, row := make([]float64, 0, f.Rows*f.Cols), make([]float32, f.Cols)
	for v := range f.Rows {
		f.CopyRow(row, uint32(v))
		for _, x := range row {
			host = append(host, float64(x))
		}
	}
	dev.Upload(x, host)
	y := m.Forward(&nn.Pass{Dev: dev, Rows: tensor.F64, Agg: nn.NewLocal(nn.NewTopology(dev, d.Graph), false)},
		nn.Input{Matrix: x})
	flat := make([]float64, y.Rows*y.Cols)
	dev.Download(flat, y)
	return slices.Collect(slices.Chunk(flat, y.Cols))
}

func softmax(row []float64) []float64 {
	sum, out := 0.0, make([]float64, len(row))
	for i, x := range row {
		out[i] = math.Exp(x)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func TestPredictionsEqualTheModels(t *testing.T) {
	d := block(t)
	for name, c := range models {
		t.Run(name, func(t *testing.T) {
			r := trained(t, c, d)
			want := twin(t, r, d)
			p, l := predicted(t, r, d, Probabilities), predicted(t, r, d, Labels)
			for v, row := range want {
				for i, x := range softmax(row) {
					if got := float64(p.Values[v*p.Width+i]); math.Abs(got-x) > 1e-5 {
						t.Fatalf("vertex %d, class %d: probability %g, want %g", v, i, got, x)
					}
				}
				if got := largest(p.Values[v*p.Width : (v+1)*p.Width]); l.Class[v] != got {
					t.Fatalf("vertex %d: label %d, likeliest %d", v, l.Class[v], got)
				}
			}
			if _, ok := l.Measured["test"]; !ok {
				t.Error("no accuracy of the test split")
			}
			if name == "gcn-one" {
				dev := cpu.New(1)
				defer dev.Close()
				if _, err := r.Predict(dev, d, Embeddings); !errors.Is(err, graph.ErrInput) {
					t.Errorf("embeddings of one layer: %v", err)
				}
				return
			}
			if e := predicted(t, r, d, Embeddings); e.Width != 16 || len(e.Values) != 200*16 {
				t.Errorf("embeddings %d wide, %d numbers", e.Width, len(e.Values))
			}
		})
	}
}

// TestFeatureForms: sparse, dense, and bfloat16 features, normalized or not.
func TestFeatureForms(t *testing.T) {
	d := block(t)
	sparse := &graph.Features{Rows: d.Features.Rows, Cols: d.Features.Cols, Indptr: []int64{0}}
	half := &graph.Features{Rows: d.Features.Rows, Cols: d.Features.Cols}
	for i, x := range d.Features.F32 {
		x = graph.FromBF16(graph.ToBF16(x)) // what all three can hold
		half.BF16 = append(half.BF16, graph.ToBF16(x))
		sparse.Indices, sparse.Values = append(sparse.Indices, uint32(i%d.Features.Cols)), append(sparse.Values, x)
		if (i+1)%d.Features.Cols == 0 {
			sparse.Indptr = append(sparse.Indptr, int64(i+1))
		}
	}
	r := trained(t, models["sage"], d)
	r.Config.RowNormalize = true
	for _, f := range []*graph.Features{d.Features, sparse, half} {
		d := &graph.Dataset{Dir: d.Dir, Meta: d.Meta, Graph: d.Graph, Features: f}
		want, p := twin(t, r, d), predicted(t, r, d, Probabilities)
		for v, row := range want {
			for i, x := range softmax(row) {
				if got := float64(p.Values[v*p.Width+i]); math.Abs(got-x) > 1e-5 {
					t.Fatalf("%s features, vertex %d: %g, want %g", f.Kind(), v, got, x)
				}
			}
		}
	}
}

func TestSeveralLabels(t *testing.T) {
	d := block(t)
	r := trained(t, models["gcn"], d)
	r.Config.Task = nn.TaskMultiLabel
	p, l := predicted(t, r, d, Probabilities), predicted(t, r, d, Labels)
	for i, x := range p.Values {
		if (x > 0.5) != (l.Marks[i] == 1) && x != 0.5 {
			t.Fatalf("probability %g, mark %d", x, l.Marks[i])
		}
	}
	if l.Metric != "" {
		t.Errorf("marks were compared with classes: %v", l.Measured)
	}
	// Against its own marks every prediction is right.
	d.Labels = &graph.Labels{Classes: l.Width, Multi: l.Marks}
	if l = predicted(t, r, d, Labels); l.Metric != "micro_f1" || l.Measured["test"] != 1 {
		t.Errorf("%s: %v", l.Metric, l.Measured)
	}
}

// TestRegression: labels are the logits, there are no probabilities, and R² against
// the same numbers with a known error is what it should be.
func TestRegression(t *testing.T) {
	d := block(t)
	r := trained(t, models["sage"], d)
	r.Config.Task = nn.TaskRegression
	p := predicted(t, r, d, Labels)
	if p.Width != 4 || p.Class != nil || p.Metric != "" {
		t.Fatalf("%+v", p)
	}
	dev := cpu.New(1)
	defer dev.Close()
	if _, err := r.Predict(dev, d, Probabilities); !errors.Is(err, graph.ErrInput) ||
		!strings.Contains(err.Error(), "regression") {
		t.Error(err)
	}
	d.Labels = &graph.Labels{Classes: 4, Values: p.Values}
	if p = predicted(t, r, d, Labels); p.Metric != "r2" || p.Measured["val"] != 1 {
		t.Errorf("%s: %v", p.Metric, p.Measured)
	}
	a, err := NewAnswers(dev, r, d)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Predict(7); !slices.Equal(got.Values, p.Values[28:32]) || got.Probabilities != nil {
		t.Errorf("%+v", got)
	}
	text, _ := json.Marshal(a.Predict(7).reply(json.RawMessage("7"), nil))
	if s := string(text); !strings.Contains(s, `"values":[`) || strings.Contains(s, "label") ||
		strings.Contains(s, "probabilities") {
		t.Error(s)
	}
	path := filepath.Join(t.TempDir(), "values.parquet")
	if err := p.WriteParquet(path, d); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.ReadFile[valuesRow[int64]](path)
	if err != nil || len(rows) != 200 || !slices.Equal(rows[7].Values, p.Values[28:32]) {
		t.Error(err, len(rows))
	}
}

// named is the block model whose vertices were called something else.
func named(t testing.TB, ints []int64, texts []string) *graph.Dataset {
	t.Helper()
	d := block(t)
	dir := filepath.Join(t.TempDir(), "named")
	w, err := graph.Create(dir, graph.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Meta.Name = "named"
	err = errors.Join(w.Graph(d.Graph), w.Features(d.Features), w.Labels(d.Labels), w.Splits(d.Splits))
	if ints != nil {
		err = errors.Join(err, w.IntIDs(ints))
	} else {
		err = errors.Join(err, w.TextIDs(texts))
	}
	if err := errors.Join(err, w.Commit()); err != nil {
		t.Fatal(err)
	}
	return opened(t, dir)
}

func called() (ints []int64, texts []string) {
	for v := range 200 {
		ints, texts = append(ints, int64(5000-7*v)), append(texts, fmt.Sprintf("user %d", v))
	}
	return ints, texts
}

func TestFiles(t *testing.T) {
	ints, texts := called()
	whole, text := named(t, ints, nil), named(t, nil, texts)
	r := trained(t, models["gcn"], whole)
	dir := t.TempDir()
	for _, what := range Whats {
		p := predicted(t, r, whole, what)
		path := filepath.Join(dir, what)
		if err := errors.Join(p.WriteNPY(path+".npy"), p.WriteParquet(path+".parquet", whole)); err != nil {
			t.Fatal(err)
		}
		if what == Labels {
			continue
		}
		b, err := os.ReadFile(path + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		h, err := graph.ReadNPYHeader(bytes.NewReader(b))
		if err != nil || !slices.Equal(h.Shape, []int64{200, int64(p.Width)}) {
			t.Fatalf("%s.npy: %v %v", what, h, err)
		}
		got := make([]float32, len(p.Values))
		if err := binary.Read(bytes.NewReader(b[h.Offset:]), binary.LittleEndian, got); err != nil ||
			!slices.Equal(got, p.Values) {
			t.Fatalf("%s.npy: other numbers, or %v", what, err)
		}
	}
	p := predicted(t, r, whole, Labels)
	table, err := parquet.ReadFile[labelRow[int64]](filepath.Join(dir, "labels.parquet"))
	if err != nil || len(table) != 200 {
		t.Fatal(err, len(table))
	}
	for v, row := range table {
		if row.ID != ints[v] || row.Label != p.Class[v] {
			t.Fatalf("row %d: %v", v, row)
		}
	}
	e := predicted(t, r, text, Embeddings)
	path := filepath.Join(dir, "e.parquet")
	if err := e.WriteParquet(path, text); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.ReadFile[embeddingRow[string]](path)
	if err != nil || rows[7].ID != texts[7] || !slices.Equal(rows[7].Embedding, e.Values[7*e.Width:8*e.Width]) {
		t.Fatal(err, rows[7].ID)
	}
}

func TestBadRuns(t *testing.T) {
	d := block(t)
	good := written(t, trained(t, models["gcn"], d))
	if _, err := Open(good); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(good, configFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(dir string) error{
		"nothing":     func(dir string) error { return os.RemoveAll(filepath.Join(dir, configFile)) },
		"no weights":  func(dir string) error { return os.Remove(filepath.Join(dir, weightsFile)) },
		"cut weights": func(dir string) error { return os.Truncate(filepath.Join(dir, weightsFile), 200) },
		"damaged":     func(dir string) error { return flipLast(filepath.Join(dir, weightsFile)) },
		"a folder": func(dir string) error {
			path := filepath.Join(dir, configFile)
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
		},
		"no JSON": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, configFile), []byte("{"), 0o644)
		},
		"another model": replaced(config, `"hidden":16`, `"hidden":24`),
		"huge":          replaced(config, `"in":12`, `"in":2000000000`),
		"future":        replaced(config, `"version":1`, `"version":9`),
		"not a run":     replaced(config, "starling-run", "starling-dataset"),
	} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := errors.Join(os.CopyFS(dir, os.DirFS(good)), change(dir)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// flipLast changes the last byte of a file.
func flipLast(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[len(b)-1] ^= 1
	return os.WriteFile(path, b, 0o644)
}

func replaced(text []byte, old, new string) func(dir string) error {
	return func(dir string) error {
		return os.WriteFile(filepath.Join(dir, configFile), []byte(strings.Replace(string(text), old, new, 1)), 0o644)
	}
}

func TestAnotherDataset(t *testing.T) {
	d := block(t)
	r := trained(t, models["gcn"], d)
	r.Config.Model.In = 13
	dev := cpu.New(1)
	defer dev.Close()
	if _, err := r.Predict(dev, d, Labels); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "13") {
		t.Error(err)
	}
}

func FuzzConfig(f *testing.F) {
	d := block(f)
	b, err := json.Marshal(trained(f, models["gat"], d).Config)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":"starling-run","version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig(b)
		if err == nil && c.Model.Validate() != nil {
			t.Error("took a model that is not valid")
		}
	})
}

// TestExplanationsOfStandardizedTargets: attributions are in the targets' own units, and masks are as without the scale.
func TestExplanationsOfStandardizedTargets(t *testing.T) {
	d := block(t)
	d.Meta.Classes = 1
	plain := trained(t, nn.Config{Model: "sage", Layers: 2, Norm: "none", Aggregator: "mean"}, d)
	plain.Config.Task = nn.TaskRegression
	scaled := *plain
	scaled.Config.Model.StandardizeTargets = true
	scaled.Weights = append(slices.Clone(plain.Weights),
		nn.Tensor{Name: "targets.mean", Shape: []int{1}, F64: true, Data: []float64{5000}},
		nn.Tensor{Name: "targets.deviation", Shape: []int{1}, F64: true, Data: []float64{64}})
	for method, times := range map[string]float64{Gradients: 64, Masks: 1} {
		o := ExplainOptions{Method: method, Epochs: 8, Keep: 5, Most: 20}
		a, err := plain.Explain(d, 3, o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := scaled.Explain(d, 3, o)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(b.Values[0]-5000-64*a.Values[0]) > 1e-2 {
			t.Errorf("%s: predicted %g, and %g standardized", method, b.Values[0], a.Values[0])
		}
		if math.Abs(b.FidelityPlus-64*a.FidelityPlus) > 1e-2 {
			t.Errorf("%s: fidelity+ %g, and %g standardized", method, b.FidelityPlus, a.FidelityPlus)
		}
		for c := range a.Columns {
			x, y := a.Columns[c], b.Columns[c]
			if x.Column != y.Column || math.Abs(y.Score-times*x.Score) > 1e-3*times {
				t.Errorf("%s: %s counts %g, and %s %g standardized", method, y.Column, y.Score, x.Column, x.Score)
			}
		}
	}
}
