package shards

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"starling/dataset"
	"starling/graph"
)

type edgeRow struct {
	Src int64 `parquet:"src"`
	Dst int64 `parquet:"dst"`
}

type vertexRow struct {
	ID    int64     `parquet:"id"`
	Label string    `parquet:"label"`
	Split string    `parquet:"split"`
	X     []float32 `parquet:"features,list"`
}

// TestVertices: features, labels and splits of shards are as they are in one process.
func TestVertices(t *testing.T) {
	const n = 4000
	r := rand.New(rand.NewPCG(3, 4))
	var edges []edgeRow
	for range 15_000 {
		edges = append(edges, edgeRow{5 * r.Int64N(n), 5 * r.Int64N(n)})
	}
	var rows []vertexRow
	for v := range int64(n) {
		rows = append(rows, vertexRow{5 * v, []string{"cat", "dog", "ant", ""}[r.IntN(4)], []string{"train", "val", "test", ""}[r.IntN(4)],
			[]float32{float32(r.NormFloat64()), float32(v)}})
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	tables := filepath.Join(t.TempDir(), "tables")
	must(t, os.Mkdir(tables, 0o777))
	text := filepath.Join(t.TempDir(), "text")
	must(t, os.Mkdir(text, 0o777))
	for k := range 3 {
		e := edges[k*5000 : (k+1)*5000]
		v := rows[k*n/3 : (k+1)*n/3]
		if k == 2 {
			v = rows[k*n/3:]
		}
		must(t, parquet.WriteFile(filepath.Join(tables, fmt.Sprintf("edges-%d.parquet", k)), e))
		must(t, parquet.WriteFile(filepath.Join(tables, fmt.Sprintf("nodes-%d.parquet", k)), v))
		var a, b strings.Builder
		a.WriteString("src,dst\n")
		for _, x := range e {
			fmt.Fprintf(&a, "%d,%d\n", x.Src, x.Dst)
		}
		b.WriteString("split,id,f1,label,f2\n")
		for _, x := range v {
			fmt.Fprintf(&b, "%s,%d,%g,%s,%g\n", x.Split, x.ID, x.X[0], x.Label, x.X[1])
		}
		must(t, os.WriteFile(filepath.Join(text, fmt.Sprintf("edges-%d.csv", k)), []byte(a.String()), 0o666))
		must(t, os.WriteFile(filepath.Join(text, fmt.Sprintf("nodes-%d.csv", k)), []byte(b.String()), 0o666))
	}
	one := filepath.Join(t.TempDir(), "one")
	_, err := dataset.Import("parquet", tables, dataset.ImportOptions{Symmetrize: true}, one)
	must(t, err)
	a, err := graph.Open(one)
	must(t, err)
	defer a.Close()
	for name, src := range map[string]string{"parquet": tables, "text": text} {
		out := filepath.Join(t.TempDir(), name)
		_, err = Import(t.Context(), src, Options{ImportOptions: dataset.ImportOptions{Symmetrize: true}, Memory: small}, out)
		must(t, err)
		b, err := graph.OpenWith(out, graph.OpenOptions{Verify: true})
		must(t, err)
		if x, y := a.Contents(), b.Contents(); x != y || len(b.Meta.Arrays["features.npy"].Pieces) < 2 ||
			!slices.Equal(b.Meta.ClassNames, []string{"ant", "cat", "dog"}) {
			t.Errorf("%s: %v, in one process %v; %v", name, y, x, b.Meta.ClassNames)
		}
		must(t, b.Close())
	}
}

func TestWrongVertices(t *testing.T) {
	edges := map[string]string{"edges-0.csv": "src,dst\n1,2\n2,3\n"}
	for name, c := range map[string]struct {
		nodes string
		words []string
	}{
		"missing":   {"id,x\n1,0.5\n3,1.5\n", []string{"found 2, which edges name and no shard of vertices has"}},
		"twice":     {"id,x\n1,0.5\n2,1\n3,1.5\n2,3\n", []string{"nodes-0.csv: ids: found 2 in a second row"}},
		"types":     {"id,x\na,0.5\nb,1\nc,1.5\n", []string{"nodes-0.csv: ids: found names, want whole numbers, as in", "edges-0.csv"}},
		"no number": {"id,x\n1,0.5\n2,\n3,1.5\n", []string{"nodes-0.csv: line 3, column x: found no finite number", "--missing zero"}},
		"a split":   {"id,split\n1,train\n2,some\n3,val\n", []string{"line 3, column split", `found "some"`}},
		"no id":     {"key,x\n1,0.5\n2,1\n3,1.5\n", []string{"nodes-0.csv: columns: found key, x, want a column id"}},
		"numbers":   {"id,label\n1,0.5\n2,1\n3,1.5\n", []string{"found numbers to predict"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"nodes-0.csv": c.nodes}
			for k, v := range edges {
				files[k] = v
			}
			dir, out := web(t, files)
			_, err := Import(t.Context(), dir, Options{}, out)
			refuses(t, err, c.words...)
		})
	}
}
