package dataset

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// people is an edge list of three vertices and a table of features beside it.
func people(t *testing.T, features string, opt ImportOptions) (string, ImportOptions) {
	t.Helper()
	opt.Features = written(t, "people.csv", features)
	return written(t, "e.csv", "a,b\nb,c\nc,a\n"), opt
}

func importedPeople(t *testing.T, features string, opt ImportOptions) *graph.Dataset {
	t.Helper()
	src, opt := people(t, features, opt)
	return imported(t, "edgelist", src, opt)
}

func TestClassNamesSurvive(t *testing.T) {
	edges := written(t, "e.csv", "0,1\n1,2\n")
	labels := written(t, "l.csv", "0,physics\n1,biology\n2,physics\n")
	d := imported(t, "edgelist", edges, ImportOptions{Labels: labels, Split: SplitOptions{Train: 1}})
	want := []string{"biology", "physics"}
	if !slices.Equal(d.Meta.ClassNames, want) || !slices.Equal(d.Labels.Names, want) ||
		graph.ClassName(want, 1) != "physics" {
		t.Errorf("%+v", d.Meta)
	}
	d = imported(t, "edgelist", edges, ImportOptions{Labels: written(t, "l.csv", "0,1\n1,0\n2,1\n"),
		Split: SplitOptions{Train: 1}})
	if d.Meta.ClassNames != nil || graph.ClassName(d.Labels.Names, 1) != "1" {
		t.Errorf("numbers have names: %+v", d.Meta)
	}
}

func TestClassNamesOfParquet(t *testing.T) {
	type edge struct{ Src, Dst int64 }
	type node struct {
		ID    int64
		Label string
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "edges.parquet"), []edge{{0, 1}, {1, 2}})
	put(t, filepath.Join(dir, "nodes.parquet"), []node{{2, "x"}, {0, "y"}, {1, "x"}})
	d := imported(t, "parquet", dir, ImportOptions{Split: SplitOptions{Train: 1}})
	if !slices.Equal(d.Meta.ClassNames, []string{"x", "y"}) || !slices.Equal(d.Labels.Class, []int32{1, 0, 0}) {
		t.Errorf("%+v %v", d.Meta, d.Labels.Class)
	}
}

func put[T any](t *testing.T, path string, rows []T) {
	t.Helper()
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
}

func TestBadFeaturesAreNamed(t *testing.T) {
	for features, mention := range map[string]string{
		"id,age,income\na,1,2\nb,3,x7\nc,5,6\n":  `line 3, column 3 (income): found "x7", want a finite number`,
		"id,age,income\na,1,2\nb,,4\nc,5,6\n":    `line 3, column 2 (age): found "", want a finite number; fill it in, or give --missing`,
		"id,age,income\na,1,2\nb,NaN,4\nc,5,6\n": `line 3, column 2 (age): found "NaN"`,
		"a,1,2\nb,3,inf\nc,5,6\n":                `line 2, column 3: found "inf"`,
		"a,1,2\nb,3,1e60\nc,5,6\n":               `line 2, column 3: found "1e60", want a finite number that a float32 can hold`,
		"a,1,2\nb,3\nc,5,6\n":                    "line 2: found 1 value after the id, want as many as in the first row (2)",
		"age,id,city\n1,a,Rome\n2,b,Oslo\n":      `line 2, column 3 (city): found "Rome"`,
		"a,1,2\n":                                `none for "b", "c", want one for each of 3 vertices (2 have none)`,
		"user:0,1\nuser:1,2\nuser:2,3\n":         `"user:0" and 2 others, none of which is an id of the edges (as "a" is)`,
	} {
		src, opt := people(t, features, ImportOptions{})
		refused(t, "edgelist", src, opt, mention)
	}
}

func TestIDsThatDoNotMatch(t *testing.T) {
	src := written(t, "e.csv", "0,1\n1,2\n")
	refused(t, "edgelist", src, ImportOptions{Labels: written(t, "l.csv", "user:0,1\nuser:1,0\n")},
		`"user:0" and 1 others, none of which is an id of the edges (as "0" is)`)
	refused(t, "edgelist", src, ImportOptions{Labels: written(t, "l.csv", "100,1\n101,0\n")}, "none of which is an id")
	d := imported(t, "edgelist", src, ImportOptions{Labels: written(t, "l.csv", "0,1\n1,0\n2,0\n9,0\n"),
		Split: SplitOptions{Train: 1}})
	if !noted(d, `ids of l.csv that no edge names: 1, as "9"`) {
		t.Error(d.Meta.Notes)
	}
}

func noted(d *graph.Dataset, text string) bool {
	return slices.ContainsFunc(d.Meta.Notes, func(s string) bool { return strings.Contains(s, text) })
}

func TestMissingFeatures(t *testing.T) {
	const table = "id,x,y\na,1,10\nb,,30\n" // c has no row
	for how, want := range map[string][]float32{
		"zero": {1, 10, 0, 30, 0, 0},
		"mean": {1, 10, 1, 30, 1, 20},
	} {
		d := importedPeople(t, table, ImportOptions{Missing: how})
		if !slices.Equal(d.Features.F32, want) {
			t.Errorf("%s: %v, want %v", how, d.Features.F32, want)
		}
		if !slices.Equal(d.Meta.Features.Columns, []string{"x", "y"}) || !noted(d, "missing features") {
			t.Errorf("%+v %v", d.Meta.Features, d.Meta.Notes)
		}
	}
	src, opt := people(t, table, ImportOptions{Missing: "median"})
	refused(t, "edgelist", src, opt, "--missing: found \"median\", want error, zero or mean")
}

func TestMissingInArrays(t *testing.T) {
	nan := float32(math.NaN())
	src := written(t, "e.csv", "0,1\n1,2\n")
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := graph.WriteNPY(path, []float32{1, 2, nan, 4, 3, 6}, 3, 2); err != nil {
		t.Fatal(err)
	}
	refused(t, "edgelist", src, ImportOptions{Features: path}, path+": features: found NaN in row 1, column 0")
	refused(t, "edgelist", src, ImportOptions{Features: path}, "--missing zero or --missing mean")
	d := imported(t, "edgelist", src, ImportOptions{Features: path, Missing: "mean"})
	if want := []float32{1, 2, 2, 4, 3, 6}; !slices.Equal(d.Features.F32, want) {
		t.Errorf("%v, want %v", d.Features.F32, want)
	}
}

func TestWordsBecomeColumns(t *testing.T) {
	want := []float32{1, 0, 1, 0, 2, 1, 0, 0, 3, 0, 0, 1}
	columns := []string{"age", "city=Oslo", "city=Rome", "city=Turku"}
	d := importedPeople(t, "id,city,age\na,Rome,1\nb,Oslo,2\nc,Turku,3\n", ImportOptions{OneHot: []string{"City"}})
	if !slices.Equal(d.Features.F32, want) || !slices.Equal(d.Meta.Features.Columns, columns) {
		t.Errorf("%v of %v", d.Features.F32, d.Meta.Features.Columns)
	}
	d = importedPeople(t, "a,Rome,1\nb,Oslo,2\nc,Turku,3\n", ImportOptions{OneHot: []string{"2"}})
	if !slices.Equal(d.Features.F32, want) {
		t.Errorf("by number: %v", d.Features.F32)
	}
	d = importedPeople(t, "id,city\na,Rome\nb,\nc,Rome\n", ImportOptions{OneHot: []string{"city"}})
	if !slices.Equal(d.Features.F32, []float32{1, 0, 1}) {
		t.Errorf("a missing word: %v", d.Features.F32)
	}
	src, opt := people(t, "id,city\na,Rome\nb,Oslo\nc,Oslo\n", ImportOptions{OneHot: []string{"town"}})
	refused(t, "edgelist", src, opt, `no column "town", want --one-hot with columns of this file: city`)
}

func TestOneHotAndHolesOfParquet(t *testing.T) {
	type edge struct{ Src, Dst string }
	type node struct {
		ID   string
		City string
		Age  *float64
	}
	one, three := 1.0, 3.0
	dir := t.TempDir()
	put(t, filepath.Join(dir, "edges.parquet"), []edge{{"a", "b"}, {"b", "c"}})
	put(t, filepath.Join(dir, "nodes.parquet"), []node{{"c", "Rome", &three}, {"a", "Oslo", &one}, {"b", "Rome", nil}})
	refused(t, "parquet", dir, ImportOptions{OneHot: []string{"city"}}, "row 2, column Age: found a missing value")
	refused(t, "parquet", dir, ImportOptions{OneHot: []string{"town"}}, `no column "town"`)
	d := imported(t, "parquet", dir, ImportOptions{OneHot: []string{"city"}, Missing: "mean"})
	if want := []float32{1, 1, 0, 2, 0, 1, 3, 0, 1}; !slices.Equal(d.Features.F32, want) {
		t.Errorf("%v of %v, want %v", d.Features.F32, d.Meta.Features.Columns, want)
	}
}

// A dumb twin: mean and deviation over the training rows in two passes.
func TestStandardize(t *testing.T) {
	opt := ImportOptions{Standardize: true, OneHot: []string{"city"}}
	opt.Labels = written(t, "l.csv", "a,0\nb,1\nc,0\nd,1\n")
	opt.Splits = written(t, "s.csv", "id,split\na,train\nb,train\nc,val\nd,2\n")
	opt.Features = written(t, "x.csv", "id,income,same,city\na,1000,5,x\nb,3000,5,y\nc,8000,5,x\nd,0,6,y\n")
	d := imported(t, "edgelist", written(t, "e.csv", "a,b\nb,c\nc,d\n"), opt)
	want := []float32{-1, 0, 1, 0, 1, 0, 0, 1, 6, 0, 1, 0, -2, 1, 0, 1}
	if !slices.Equal(d.Features.F32, want) {
		t.Errorf("%v, want %v", d.Features.F32, want)
	}
	s := d.Meta.Features.Scale
	if s == nil || !slices.Equal(s.Mean, []float64{2000, 5, 0, 0}) || !slices.Equal(s.Deviation, []float64{1000, 1, 1, 1}) {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(d.Splits.Train, []uint32{0, 1}) || !slices.Equal(d.Splits.Val, []uint32{2}) ||
		!slices.Equal(d.Splits.Test, []uint32{3}) {
		t.Errorf("%+v", d.Splits)
	}
	raw, err := d.Features.Rescaled(s, nil)
	if err != nil || raw.F32[8] != 8000 || raw.F32[12] != 0 {
		t.Error(raw, err)
	}
}

// Every format standardizes; sparse features are divided only.
func TestStandardizeSparse(t *testing.T) {
	f := &graph.Features{Rows: 3, Cols: 2, Indptr: []int64{0, 1, 2, 3}, Indices: []uint32{0, 0, 1}, Values: []float32{2, 6, 9}}
	r := &read{features: f, splits: graph.Splits{Train: []uint32{0, 1}}}
	if err := r.prepare(ImportOptions{Standardize: true}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Values, []float32{1, 3, 9}) || !slices.Equal(r.scale.Deviation, []float64{2, 1}) {
		t.Errorf("%v by %v", f.Values, r.scale)
	}
	d := imported(t, "planetoid", shared(t, "planetoid"), ImportOptions{Name: "cora", Standardize: true})
	if d.Features.Kind() != graph.Sparse || d.Meta.Features.Scale == nil {
		t.Errorf("%+v", d.Meta.Features)
	}
}

func TestSplitFileRefuses(t *testing.T) {
	src := written(t, "e.csv", "a,b\nb,c\n")
	for splits, mention := range map[string]string{
		"a,train\nb,holdout\n":       `line 2, column 2: found "holdout", want train, val or test`,
		"a,train\na,test\nb,train\n": `"a" in train and in test`,
		"a,val\nb,test\n":            "no vertex to train on",
	} {
		refused(t, "edgelist", src, ImportOptions{Splits: written(t, "s.csv", splits)}, mention)
	}
	refused(t, "edgelist", src, ImportOptions{Splits: "s.csv", Labels: "l.csv", Split: SplitOptions{Train: 0.5}}, "--splits")
}

func TestWeightsAreNoticed(t *testing.T) {
	const text = "source,target,weight\n0,1,0.5\n1,0,-2\n"
	d := imported(t, "edgelist", written(t, "e.csv", text), ImportOptions{})
	if !noted(d, `the column "weight" is not used: --weights`) {
		t.Error(d.Meta.Notes)
	}
	refused(t, "edgelist", written(t, "e.csv", text), ImportOptions{Weights: true}, `line 3: found "1,0,-2", want a weight of 0 or more in column 3`)
	d = imported(t, "edgelist", written(t, "e.csv", text), ImportOptions{Weights: true, NegativeWeights: true})
	if !slices.Equal(d.Graph.Weights, []float32{-2, 0.5}) {
		t.Error(d.Graph.Weights)
	}
	type edge struct {
		Src, Dst int64
		Weight   float32
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "edges.parquet"), []edge{{0, 1, 1}, {1, 2, -1}})
	refused(t, "parquet", dir, ImportOptions{Weights: true}, "weights: found -1, want weights of 0 or more")
	imported(t, "parquet", dir, ImportOptions{Weights: true, NegativeWeights: true})
}

func TestDirectionIsSaid(t *testing.T) {
	d := imported(t, "edgelist", written(t, "e.csv", "0,1\n1,2\n2,1\n"), ImportOptions{})
	if !noted(d, "directed: 66.7% of edges have their reverse") {
		t.Error(d.Meta.Notes)
	}
	var b strings.Builder
	for v := range 50 {
		line(&b, v, v+1)
		line(&b, v+1, v)
	}
	line(&b, 0, 50)
	d = imported(t, "edgelist", written(t, "e.csv", b.String()), ImportOptions{})
	if !noted(d, "nearly symmetric: 99.0%") {
		t.Error(d.Meta.Notes)
	}
	d = imported(t, "edgelist", written(t, "e.csv", b.String()), ImportOptions{Symmetrize: true})
	if noted(d, "symmetric:") || noted(d, "directed") {
		t.Error(d.Meta.Notes)
	}
}

func TestFeaturesFrom(t *testing.T) {
	src := written(t, "e.csv", "0,1\n1,2\n2,0\n3,0\n0,2\n4,3\n")
	for from, cols := range map[string]int{"degree": 0, "one-hot": 5, "random": 64, "random:7": 7, "position:3": 3, "position": 4} {
		d := imported(t, "edgelist", src, ImportOptions{FeaturesFrom: from, Symmetrize: true, Seed: 3})
		if d.Features == nil || cols > 0 && d.Features.Cols != cols {
			t.Errorf("%s: %+v", from, d.Meta.Features)
		}
		if !noted(d, "features made from the structure") || noted(d, "no features") {
			t.Error(d.Meta.Notes)
		}
	}
	d := imported(t, "edgelist", src, ImportOptions{FeaturesFrom: "degree", Symmetrize: true})
	// degrees 3, 2, 2, 2, 1
	if d.Features.Cols != 4 || d.Features.F32[0] != float32(math.Log(4)) || d.Features.F32[3] != 1 || d.Features.F32[16+2] != 1 {
		t.Errorf("%v", d.Features.F32)
	}
	for from, mention := range map[string]string{"pagerank": "degree, one-hot, random", "degree:4": "degree, one-hot", "random:0": "1 to 65536"} {
		refused(t, "edgelist", src, ImportOptions{FeaturesFrom: from}, mention)
	}
	d = imported(t, "edgelist", src, ImportOptions{})
	if !noted(d, "no features: training needs some; --features-from") {
		t.Error(d.Meta.Notes)
	}
}

// Two cliques joined by one edge: positions of one side are alike, and unlike the other's.
func TestPositionsSeparateBlocks(t *testing.T) {
	var b strings.Builder
	for side := range 2 {
		for u := range 12 {
			for v := range u {
				line(&b, side*12+u, side*12+v)
			}
		}
	}
	line(&b, 0, 12)
	src := written(t, "e.csv", b.String())
	opt := ImportOptions{FeaturesFrom: "position:1", Symmetrize: true, Seed: 1}
	d := imported(t, "edgelist", src, opt)
	apart := func(u, v int) float64 { return math.Abs(float64(d.Features.F32[u] - d.Features.F32[v])) }
	if near, far := apart(3, 7), apart(3, 20); near > far/10 {
		t.Errorf("%g inside a clique, %g between them", near, far)
	}
	again := imported(t, "edgelist", src, opt)
	if !slices.Equal(again.Features.F32, d.Features.F32) {
		t.Error("a seed gives two results")
	}
}

func Test4eltHasPositions(t *testing.T) {
	d := imported(t, "metis", shared(t, "metis/4elt.graph"), ImportOptions{FeaturesFrom: "position:8"})
	for c := range 8 {
		sum, square := 0.0, 0.0
		for v := range d.Features.Rows {
			x := float64(d.Features.F32[v*8+c])
			sum += x
			square += x * x
		}
		if n := float64(d.Features.Rows); math.Abs(sum/n) > 1e-3 || math.Abs(square/n-1) > 1e-2 {
			t.Errorf("column %d: mean %g, variance %g", c, sum/n, square/n)
		}
	}
}

func line(b *strings.Builder, u, v int) {
	b.WriteString(strings.Join([]string{strconv.Itoa(u), strconv.Itoa(v)}, ",") + "\n")
}
