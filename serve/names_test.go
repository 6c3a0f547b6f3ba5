package serve

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"starling/graph"
	"starling/tensor/cpu"
)

var subjects = []string{"biology", "chemistry, organic", "math", "physics"}

// withNames is a model whose classes have names.
func withNames(t testing.TB, d *graph.Dataset) *Trained {
	r := trained(t, models["gcn"], d)
	r.Config.ClassNames = subjects
	return r
}

func TestClassNamesInFiles(t *testing.T) {
	d := block(t)
	r := withNames(t, d)
	p := predicted(t, r, d, Labels)
	probabilities := predicted(t, r, d, Probabilities)
	dir := t.TempDir()
	if err := p.WriteNPY(filepath.Join(dir, "labels.npy")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "labels.classes.txt")); string(b) != strings.Join(subjects, "\n")+"\n" {
		t.Errorf("%q", b)
	}
	if err := p.WriteCSV(filepath.Join(dir, "labels.csv"), d); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(filepath.Join(dir, "labels.csv"))
	lines, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil || len(lines) != 201 || !slices.Equal(lines[0], []string{"id", "label", "probability"}) {
		t.Fatal(len(lines), lines[0], err)
	}
	if err := p.WriteParquet(filepath.Join(dir, "labels.parquet"), d); err != nil {
		t.Fatal(err)
	}
	table, err := parquet.ReadFile[namedRow[int64]](filepath.Join(dir, "labels.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for v := range 200 {
		class := p.Class[v]
		want := probabilities.Values[v*4+int(class)]
		if lines[v+1][1] != subjects[class] || lines[v+1][2] != shortest(want) {
			t.Fatalf("vertex %d: %v, want %s of %g", v, lines[v+1], subjects[class], want)
		}
		if table[v] != (namedRow[int64]{int64(v), class, subjects[class], want}) {
			t.Fatalf("%+v", table[v])
		}
	}
	if err := probabilities.WriteCSV(filepath.Join(dir, "p.csv"), d); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "p.csv")); !bytes.HasPrefix(b, []byte("id,biology,\"chemistry, organic\",math,physics\n0,")) {
		t.Errorf("%.80s", b)
	}
}

func TestCSVOfOtherKinds(t *testing.T) {
	d := block(t)
	for want, p := range map[string]*Predictions{
		"id,labels\n0,0;2\n1,\n":            {What: Labels, Vertices: 2, Width: 3, Marks: []uint8{1, 0, 1, 0, 0, 0}},
		"id,labels\n0,a;c\n1,\n":            {What: Labels, Vertices: 2, Width: 3, Marks: []uint8{1, 0, 1, 0, 0, 0}, ClassNames: []string{"a", "b", "c"}},
		"id,value\n0,0.5\n1,-3\n":           {What: Labels, Vertices: 2, Width: 1, Values: []float32{0.5, -3}},
		"id,value0,value1\n0,0.5,-3\n":      {What: Labels, Vertices: 1, Width: 2, Values: []float32{0.5, -3}},
		"id,e0,e1\n0,0.1,1e-10\n":           {What: Embeddings, Vertices: 1, Width: 2, Values: []float32{0.1, 1e-10}},
		"id,0,1\n0,0.25,0.75\n1,0.5,0.5\n":  {What: Probabilities, Vertices: 2, Width: 2, Values: []float32{0.25, 0.75, 0.5, 0.5}},
		"id,label,probability\n0,1,0.625\n": {What: Labels, Vertices: 1, Width: 1, Class: []int32{1}, Probability: []float32{0.625}},
	} {
		path := filepath.Join(t.TempDir(), "x.csv")
		if err := p.WriteCSV(path, d); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(path); string(b) != want {
			t.Errorf("%q, want %q", b, want)
		}
	}
}

func TestClassNamesServed(t *testing.T) {
	d := block(t)
	dev := cpu.New(1)
	defer dev.Close()
	a, err := NewAnswers(dev, withNames(t, d), d)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(a, DefaultLimits(), nil)
	for _, p := range asked[predictionsReply](t, s, "/predict", `{"vertices":[0,5,9]}`).Predictions {
		if p.Class != subjects[*p.Label] {
			t.Errorf("%+v", p)
		}
	}
	several, _ := json.Marshal(Prediction{Labels: []int32{1, 3}}.reply(nil, subjects))
	if !strings.Contains(string(several), `"classes":["chemistry, organic","physics"]`) {
		t.Errorf("%s", several)
	}
}

func TestClassNamesExported(t *testing.T) {
	d := block(t)
	r := withNames(t, d)
	r.Config.Features = &graph.FeatureMeta{Kind: graph.Dense, Dim: 12, Scale: graph.NewScale(12)}
	for _, library := range Formats {
		dir := filepath.Join(t.TempDir(), "out")
		if _, err := r.Export(library, dir); err != nil {
			t.Fatal(err)
		}
		var e Exported
		b, _ := os.ReadFile(filepath.Join(dir, configFile))
		if err := json.Unmarshal(b, &e); err != nil || !slices.Equal(e.ClassNames, subjects) || len(e.Features.Scale.Mean) != 12 {
			t.Errorf("%s: %s %v", library, b, err)
		}
	}
}

// Another dataset may number the classes otherwise: those of one name are the same.
func TestMeasuredByName(t *testing.T) {
	d := block(t)
	d.Labels.Names = subjects
	r := withNames(t, d)
	want := predicted(t, r, d, Labels).Measured
	other := block(t)
	other.Labels.Names = []string{"physics", "math", "biology", "chemistry, organic"}
	to := []int32{2, 3, 1, 0} // of d's classes
	for v, c := range other.Labels.Class {
		other.Labels.Class[v] = to[c]
	}
	got := predicted(t, r, other, Labels).Measured
	for split, x := range want {
		if got[split] != x {
			t.Errorf("%s: %g, want %g", split, got[split], x)
		}
	}
}

// A model that was trained on standardized features gives the same answers for a dataset with
// the same scale, with none, and with another, and for a new vertex with raw features.
func TestScaleIsApplied(t *testing.T) {
	raw := block(t)
	scale := graph.NewScale(12)
	for c := range 12 {
		scale.Mean[c], scale.Deviation[c] = float64(c), 1+float64(c)/4
	}
	scaled := func(s *graph.Scale) *graph.Dataset {
		d := block(t)
		d.Features, _ = d.Features.Rescaled(nil, s)
		d.Meta.Features = &graph.FeatureMeta{Kind: graph.Dense, Dim: 12, Scale: s}
		return d
	}
	other := graph.NewScale(12)
	other.Mean[3], other.Deviation[4] = -7, 100
	same := scaled(scale)
	r := trained(t, models["sage"], same)
	r.Config.Features = same.Meta.Features
	want := predicted(t, r, same, Probabilities).Values
	for name, d := range map[string]*graph.Dataset{"raw": raw, "another scale": scaled(other)} {
		for i, x := range predicted(t, r, d, Probabilities).Values {
			if math.Abs(float64(x-want[i])) > 1e-4 {
				t.Fatalf("%s: %g, want %g", name, x, want[i])
			}
		}
	}
	dev := cpu.New(1)
	defer dev.Close()
	a, err := NewAnswers(dev, r, same)
	if err != nil {
		t.Fatal(err)
	}
	const v = 17
	before := slices.Clone(raw.Features.F32[v*12 : v*12+12])
	row := slices.Clone(before)
	got := a.PredictNew(row, slices.Clone(raw.Graph.Neighbors(v)), nil)
	for c, x := range got.Probabilities {
		if math.Abs(float64(x-want[v*4+c])) > 1e-4 {
			t.Errorf("a new vertex like %d: %g, want %g", v, x, want[v*4+c])
		}
	}
	if !slices.Equal(row, before) {
		t.Error("the caller's features were changed")
	}
}

func TestOtherColumnsAreRefused(t *testing.T) {
	d := block(t)
	d.Meta.Features = &graph.FeatureMeta{Kind: graph.Dense, Dim: 12, Columns: strings.Split("a b c d e f g h i j k l", " ")}
	r := trained(t, models["gcn"], d)
	r.Config.Features = &graph.FeatureMeta{Columns: strings.Split("a b c D e f g h i j k l", " ")}
	dev := cpu.New(1)
	defer dev.Close()
	if _, err := r.Predict(dev, d, Labels); err == nil || !strings.Contains(err.Error(), `column 3 of the features: found "d", want "D"`) {
		t.Error(err)
	}
}

func TestConfigIsSealed(t *testing.T) {
	d := block(t)
	dir := written(t, withNames(t, d))
	path := filepath.Join(dir, configFile)
	config := withNames(t, d).Config
	config.WeightsCRC32C, _ = WeightsSum(dir)
	b, err := graph.SealJSON(&config, &config.CRC32C)
	if err != nil {
		t.Fatal(err)
	}
	open := func(b []byte) error {
		t.Helper()
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		return err
	}
	if err := open(b); err != nil {
		t.Fatal(err)
	}
	if err := open(bytes.Replace(b, []byte(`"row_normalize": false`), []byte(`"row_normalize": true `), 1)); err == nil ||
		!strings.Contains(err.Error(), "checksum") || !strings.Contains(err.Error(), configFile) {
		t.Errorf("a changed value: %v", err)
	}
	if err := open(bytes.Replace(b, []byte(`"row_normalize"`), []byte(`"row_normalise"`), 1)); err == nil ||
		!strings.Contains(err.Error(), `unknown field "row_normalise"`) {
		t.Errorf("an unknown key: %v", err)
	}
	if err := open(bytes.Replace(b, []byte(config.CRC32C), nil, 1)); err != nil {
		t.Errorf("written by hand: %v", err)
	}
	// Every single damaged byte is found.
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 1
		if err := open(damaged); err == nil {
			t.Fatalf("byte %d, %q for %q, was not noticed", i, damaged[i], b[i])
		}
	}
}
