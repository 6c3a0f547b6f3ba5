package shards

import (
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/dataset"
	"starling/graph"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write writes edges over several shards, and all of them to one file.
func write(t *testing.T, shards int, edges []string) (dir, whole string) {
	t.Helper()
	dir, whole = filepath.Join(t.TempDir(), "web"), filepath.Join(t.TempDir(), "web.csv")
	must(t, os.Mkdir(dir, 0o777))
	each := (len(edges) + shards - 1) / shards
	for k := range shards {
		text := strings.Join(edges[min(k*each, len(edges)):min((k+1)*each, len(edges))], "\n") + "\n"
		path := filepath.Join(dir, fmt.Sprintf("part-%d.csv", k))
		if k == 1 {
			f, err := os.Create(path + ".gz")
			must(t, err)
			z := gzip.NewWriter(f)
			_, err = io.WriteString(z, text)
			must(t, err)
			must(t, z.Close())
			must(t, f.Close())
			continue
		}
		must(t, os.WriteFile(path, []byte(text), 0o666))
	}
	must(t, os.WriteFile(whole, []byte(strings.Join(edges, "\n")+"\n"), 0o666))
	return dir, whole
}

func draw(n int, edge func(r *rand.Rand) string) (edges []string) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		edges = append(edges, edge(r))
	}
	return edges
}

// small is a memory that makes several runs, ranges, chunks and pieces of a few thousand edges.
const small = LeastMemory

func TestSameAsInOneProcess(t *testing.T) {
	skewed := func(r *rand.Rand, n int) int { return int(float64(n) * r.Float64() * r.Float64()) }
	for name, c := range map[string]struct {
		edge func(r *rand.Rand) string
		opt  dataset.ImportOptions
	}{
		"plain":    {func(r *rand.Rand) string { return fmt.Sprintf("%d,%d", skewed(r, 3000), r.IntN(3000)) }, dataset.ImportOptions{}},
		"nodes":    {func(r *rand.Rand) string { return fmt.Sprintf("%d %d", r.IntN(3000), skewed(r, 3000)) }, dataset.ImportOptions{Nodes: 5000}},
		"sparse":   {func(r *rand.Rand) string { return fmt.Sprintf("%d\t%d", 7*r.IntN(3000)-100, 7*r.IntN(3000)+1<<40) }, dataset.ImportOptions{}},
		"both":     {func(r *rand.Rand) string { return fmt.Sprintf("%d,%d", 3*r.IntN(3000), 3*r.IntN(3000)) }, dataset.ImportOptions{Symmetrize: true}},
		"repeated": {func(r *rand.Rand) string { return fmt.Sprintf("%d,%d", r.IntN(50), r.IntN(50)) }, dataset.ImportOptions{KeepDuplicates: true, KeepSelfLoops: true}},
		"weights": {func(r *rand.Rand) string {
			return fmt.Sprintf("%d,%d,%g", r.IntN(90), r.IntN(90), float32(r.Float64()))
		}, dataset.ImportOptions{Weights: true, Symmetrize: true}},
		"names": {func(r *rand.Rand) string { return fmt.Sprintf("user %d,%d", skewed(r, 3000), r.IntN(1000)) }, dataset.ImportOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, whole := write(t, 4, draw(20_000, c.edge))
			one, many := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "many")
			_, err := dataset.Import("edgelist", whole, c.opt, one)
			must(t, err)
			sum, err := Import(t.Context(), dir, Options{ImportOptions: c.opt, Memory: small}, many)
			must(t, err)
			if _, err := os.Stat(WorkFolder(many)); err == nil {
				t.Error("the work is still there")
			}
			a, err := graph.OpenWith(one, graph.OpenOptions{Verify: true})
			must(t, err)
			defer a.Close()
			b, err := graph.OpenWith(many, graph.OpenOptions{Verify: true})
			must(t, err)
			defer b.Close()
			if sum.Edges != b.Graph.Edges() || sum.Nodes != int64(b.Graph.Nodes()) || len(b.Meta.Arrays["indices.npy"].Pieces) < 2 {
				t.Errorf("%+v, %d pieces", sum, len(b.Meta.Arrays["indices.npy"].Pieces))
			}
			if name == "names" {
				sameByName(t, a, b)
				return
			}
			if x, y := a.Contents(), b.Contents(); x != y || a.Meta.Symmetric != b.Meta.Symmetric ||
				a.Meta.Arrays["ids.npy"].CRC32C != b.Meta.Arrays["ids.npy"].CRC32C {
				t.Errorf("%v %v, in one process %v %v", y, b.Meta.Symmetric, x, a.Meta.Symmetric)
			}
			if !slices.Equal(a.Graph.Indptr, b.Graph.Indptr) || !slices.Equal(a.Graph.Indices, b.Graph.Indices) ||
				!slices.Equal(a.Graph.Weights, b.Graph.Weights) {
				t.Error("the graphs differ")
			}
		})
	}
}

// sameByName compares graphs whose vertices are in different orders.
func sameByName(t *testing.T, a, b *graph.Dataset) {
	t.Helper()
	if a.Graph.Nodes() != b.Graph.Nodes() {
		t.Fatalf("%d vertices, in one process %d", b.Graph.Nodes(), a.Graph.Nodes())
	}
	list := func(d *graph.Dataset) (edges []string) {
		for v := range uint32(d.Graph.Nodes()) {
			for _, u := range d.Graph.Neighbors(v) {
				edges = append(edges, d.ID(u)+" -> "+d.ID(v))
			}
		}
		slices.Sort(edges)
		return edges
	}
	if !slices.Equal(list(a), list(b)) {
		t.Error("the edges differ")
	}
	for v := range uint32(b.Graph.Nodes()) {
		if v > 0 && b.ID(v-1) >= b.ID(v) {
			t.Fatalf("%q before %q", b.ID(v-1), b.ID(v))
		}
	}
}
