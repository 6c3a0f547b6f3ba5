package generate

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"starling/graph"
)

func drawn(t *testing.T, like string, scale float64, change func(*Params)) *graph.Dataset {
	t.Helper()
	p, err := LikeTyped(like, scale)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&p)
	}
	out := filepath.Join(t.TempDir(), "d")
	if _, err := Dataset("typed", p, out); err != nil {
		t.Fatal(err)
	}
	d, err := graph.OpenWith(out, graph.OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestTypedShapes have the published types and relations, each with its reverse.
func TestTypedShapes(t *testing.T) {
	for like, want := range map[string][2]int{"small": {3, 6}, "ogbn-mag": {4, 8}, "igbh": {6, 12}} {
		scale := map[string]float64{"small": 0.1, "ogbn-mag": 0.001, "igbh": 0.00001}[like]
		d := drawn(t, like, scale, func(p *Params) { p.Features = 16 })
		s := d.Meta.Schema
		if len(s.Types) != want[0] || len(s.Relations) != want[1] || len(d.Targets()) != 1 {
			t.Errorf("%s: %+v", like, s)
		}
		for r := range s.Relations {
			if len(s.Into(s.Relations[r].Source)) == 0 {
				t.Errorf("%s: nothing leads to %s", like, s.Types[s.Relations[r].Source].Name)
			}
		}
	}
	if d := drawn(t, "small", 0.1, func(p *Params) { p.Directed = true }); len(d.Meta.Schema.Relations) != 3 ||
		d.Meta.Edges != 4800 {
		t.Errorf("%+v", d.Meta.Schema)
	}
}

func TestTypedGraphsAreTheSameEverywhere(t *testing.T) {
	read := func(d *graph.Dataset, name string) []byte {
		b, err := os.ReadFile(filepath.Join(d.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one, other := drawn(t, "small", 0.5, nil), drawn(t, "small", 0.5, nil)
	for _, name := range []string{"indices.npy", "relations.npy", "features_0.npy", "labels_0.npy", "train_0.npy",
		"meta.json"} {
		if !bytes.Equal(read(one, name), read(other, name)) {
			t.Errorf("%s differs", name)
		}
	}
}

// TestTypesAreNeeded: who knows centres and cycles tells classes far better by relation than without.
func TestTypesAreNeeded(t *testing.T) {
	p, _ := LikeTyped("small", 1)
	d, m, centres := drawn(t, "small", 1, nil), newTypedModel(p), p.centres()
	f, labels := d.TypeFeatures[0], func() *graph.Labels { l, _ := d.TypeLabels(0); return l }()
	dot := func(a, b []float32) (s float64) {
		for i := range a {
			s += float64(a[i]) * float64(b[i])
		}
		return s
	}
	before := make([]int, p.Classes)
	for c := range before {
		before[m.next(c)] = c
	}
	var typed, blind int
	for v := range uint32(f.Rows) {
		sums := map[string][]float32{"cites": make([]float32, f.Cols), "rev_cites": make([]float32, f.Cols)}
		for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
			if sum := sums[d.Meta.Schema.Relations[d.Graph.Relations[e]].Name]; sum != nil {
				for i, x := range f.F32[int(d.Graph.Indices[e])*f.Cols:][:f.Cols] {
					sum[i] += x
				}
			}
		}
		best := func(score func(c int) float64) (at int) {
			for c := range p.Classes {
				if score(c) > score(at) {
					at = c
				}
			}
			return at
		}
		own := f.F32[int(v)*f.Cols:][:f.Cols]
		in, out := sums["cites"], sums["rev_cites"]
		if best(func(c int) float64 {
			return dot(own, centres[c]) + dot(in, centres[before[c]]) + dot(out, centres[m.next(c)])
		}) == int(labels.Class[v]) {
			typed++
		}
		if best(func(c int) float64 {
			return dot(own, centres[c]) + (dot(in, centres[before[c]])+dot(in, centres[m.next(c)])+dot(out,
				centres[before[c]])+dot(out, centres[m.next(c)]))/2
		}) == int(labels.Class[v]) {
			blind++
		}
	}
	if 20*(typed-blind) < f.Rows {
		t.Errorf("%d of %d by relation, %d without", typed, f.Rows, blind)
	}
	t.Logf("%d of %d by relation, %d without", typed, f.Rows, blind)
}

func TestTypedMistakes(t *testing.T) {
	if _, err := LikeTyped("igb", 1); err == nil {
		t.Error("an unknown shape")
	}
	p, _ := LikeTyped("igbh", 100)
	if _, err := Dataset("typed", p, filepath.Join(t.TempDir(), "d")); err == nil {
		t.Error("more vertices than fit")
	}
}
