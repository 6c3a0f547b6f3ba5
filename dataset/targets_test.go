package dataset

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zip"
	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// TestImportTargets: an edge list whose labels have fractions.
func TestImportTargets(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name, labels, task string
		want               []float32
		classes            int
		bad                string
	}{
		{name: "fractions", labels: "0,1.5\n1,-1\n3,2e3\n", want: []float32{1.5, -1, nan, 2000}},
		{name: "missing", labels: "0,1.5\n1,nan\n2,4\n3,5\n", want: []float32{1.5, nan, 4, 5}},
		{name: "told", labels: "0,1\n1,7\n2,-1\n3,4\n", task: "regression", want: []float32{1, 7, -1, 4}},
		{name: "whole", labels: "0,1\n1,7\n2,-1\n3,4\n", classes: 8},
		{name: "names", labels: "0,1.5\n1,b\n2,a\n3,a\n", classes: 3},
		{name: "told names", labels: "0,1.5\n1,1.5\n2,0.5\n3,0.5\n", task: "classify", classes: 2},
		{name: "no number", labels: "0,1.5\n1,b\n", task: "regression", bad: "label"},
		{name: "infinite", labels: "0,1.5\n1,inf\n2,1\n3,1\n", bad: "labels"},
		{name: "two", labels: "0,1.5\n0,2.5\n", bad: "two labels"},
		{name: "unknown task", labels: "0,1\n", task: "link", bad: "task"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			edges, labels, out := filepath.Join(dir, "e.csv"), filepath.Join(dir, "l.csv"), filepath.Join(dir, "out")
			os.WriteFile(edges, []byte("0,1\n1,2\n2,3\n"), 0o644)
			os.WriteFile(labels, []byte(c.labels), 0o644)
			_, err := Import("edgelist", edges,
				ImportOptions{Labels: labels, Task: c.task, Split: SplitOptions{Train: 1}}, out)
			if c.bad != "" {
				if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), c.bad) {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := graph.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if c.classes > 0 {
				if d.Meta.Task != graph.SingleLabel || d.Meta.Classes != c.classes {
					t.Fatal(d.Meta)
				}
				return
			}
			same := func(a, b float32) bool { return a == b || a != a && b != b }
			if d.Meta.Task != graph.Regression || !slices.EqualFunc(d.Labels.Values, c.want, same) {
				t.Fatal(d.Meta, d.Labels.Values)
			}
		})
	}
	if _, err := Import("metis", "x", ImportOptions{Task: "regression"},
		filepath.Join(t.TempDir(), "out")); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "task") {
		t.Error(err)
	}
}

// TestTargetsOfArrays: npz with a column or rows of numbers, parquet with a number, a
// missing one, or lists.
func TestTargetsOfArrays(t *testing.T) {
	nan := float32(math.NaN())
	same := func(a, b float32) bool { return a == b || a != a && b != b }
	check := func(name string, d *graph.Dataset, wide int, want ...float32) {
		t.Helper()
		if d.Meta.Task != graph.Regression || d.Meta.Classes != wide || !slices.EqualFunc(d.Labels.Values, want, same) {
			t.Errorf("%s: %s of %d, %+v", name, d.Meta.Task, d.Meta.Classes, d.Labels)
		}
	}
	npz := func(labels []byte) string {
		m := tinyNPZ()
		m["labels"] = labels
		return zipped(t, zip.Store, m)
	}
	all := SplitOptions{Train: 1}
	check("npz", imported(t, "npz", npz(npyOf("(3,)", []float64{0.5, -1, 2})), ImportOptions{Split: all}), 1, 0.5, -1,
		2)
	check("npz rows", imported(t, "npz", npz(npyOf("(3, 2)", []float32{0.5, 1, 2, nan, 3, 4})),
		ImportOptions{Split: all}), 2, 0.5, 1, nan, nan, 3, 4)
	check("npz told", imported(t, "npz", npz(npyOf("(3,)", []int64{7, 8, 9})),
		ImportOptions{Split: all, Task: "regression"}), 1, 7, 8, 9)
	refused(t, "npz", npz(npyOf("(2,)", []float64{0.5, 1})), ImportOptions{Split: all}, "labels")
	refused(t, "npz", npz(npyOf("(3,)", []float64{0.5, 1, math.Inf(1)})), ImportOptions{Split: all}, "labels")
	refused(t, "npz", npz(npyOf("(3,)", []float64{0.5, 1, 2})), ImportOptions{Split: all, Task: "classify"}, "labels")

	dir := t.TempDir()
	parquet.WriteFile(filepath.Join(dir, "edges.parquet"), []edgeRow{{0, 1}, {1, 2}})
	nodes := filepath.Join(dir, "nodes.parquet")
	type one struct {
		ID    int64    `parquet:"id"`
		Label *float64 `parquet:"label,optional"`
	}
	type several struct {
		ID    int64     `parquet:"id"`
		Label []float32 `parquet:"label,list"`
	}
	y := []float64{1.5, -1}
	parquet.WriteFile(nodes, []one{{2, &y[0]}, {0, &y[1]}, {1, nil}})
	check("parquet", imported(t, "parquet", dir, ImportOptions{Split: all}), 1, -1, nan, 1.5)
	parquet.WriteFile(nodes, []several{{2, []float32{1, 2.5}}, {0, []float32{3, 4}}, {1, []float32{0, 1}}})
	check("parquet lists", imported(t, "parquet", dir, ImportOptions{Split: all}), 2, 3, 4, 0, 1, 1, 2.5)
}
