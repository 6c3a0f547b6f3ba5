package run

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"starling/graph"
	"starling/predict"
	"starling/setup/setuptest"
)

// scored is a line of a file of scores.
type scored struct {
	source, target string
	score          float64
}

func predictedScores(t *testing.T, o predict.Options) (list []scored) {
	t.Helper()
	o.What, o.Out = "scores", filepath.Join(t.TempDir(), "scores.csv")
	if _, err := predict.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		x, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, scored{line[0], line[1], x})
	}
	return list
}

// TestTopIsTheBestOfAllPairs: the partners of vertices are the best of all pairs that are no edges, in both kinds of
// graphs.
func TestTopIsTheBestOfAllPairs(t *testing.T) {
	block, typed := setuptest.Block(t, nil), setuptest.Typed(t)
	for _, dir := range []string{block, typed} {
		s := pairSpecs(block)["link full"]
		relation := ""
		if dir == typed {
			s = setuptest.QuickTyped(typed, "hsage")
			s.Task, s.Target, s.Pairs.Decoder, relation = "link", "writes; cites", "distmult", "author writes paper"
		}
		s.Training.Epochs, s.Output.Dir = 5, filepath.Join(t.TempDir(), "run")
		trained(t, s, nil)
		d, err := graph.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		n, isEdge := d.Graph.Nodes(), func(u, w int) bool {
			return slices.Contains(d.Graph.Neighbors(uint32(w)), uint32(u)) ||
				slices.Contains(d.Graph.Neighbors(uint32(u)), uint32(w))
		}
		if relation != "" {
			author, paper := d.Meta.Schema.Types[1], d.Meta.Schema.Types[0]
			n, isEdge = int(paper.Count), func(u, w int) bool {
				lo, hi := d.Graph.Relation(uint32(paper.First)+uint32(w), d.Meta.Schema.RelationOf(relation))
				return slices.Contains(d.Graph.Indices[lo:hi], uint32(author.First)+uint32(u))
			}
		}
		for _, known := range []bool{false, true} {
			o := predict.Options{Run: s.Output.Dir, Dataset: dir, Relation: relation}
			var want []scored
			edges := 0
			for _, u := range []int{3, 17} {
				all, lines := o, &strings.Builder{}
				for w := range n {
					if isEdge(u, w) {
						edges++
					}
					if known || !isEdge(u, w) {
						if relation != "" || u != w {
							fmt.Fprintf(lines, "%d,%d\n", u, w)
						}
					}
				}
				all.Pairs = filepath.Join(t.TempDir(), "pairs.txt")
				if err := os.WriteFile(all.Pairs, []byte(lines.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				list := predictedScores(t, all)
				slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
				want = append(want, list[:7]...)
			}
			o.Top, o.Vertices, o.Known = 7, []string{"3", "17"}, known
			got := predictedScores(t, o)
			for i := range want {
				if edges == 0 || len(got) != len(want) || got[i].score != want[i].score || got[i].source != want[i].source {
					t.Fatalf("%s, known %v: %v, want %v; %d edges", dir, known, got, want, edges)
				}
			}
		}
		o := predict.Options{Run: s.Output.Dir, Dataset: dir, Relation: relation, Top: 1}
		if list := predictedScores(t, o); relation != "" && len(list) != int(d.Meta.Schema.Types[1].Count) {
			t.Errorf("partners of all: %d", len(list))
		}
		refused(t, o, relation)
	}
}

// refused: what makes no sense names its flag.
func refused(t *testing.T, o predict.Options, relation string) {
	t.Helper()
	for want, change := range map[string]func(o *predict.Options){
		"--vertex":       func(o *predict.Options) { o.Vertices = []string{"-7"} },
		"--relation":     func(o *predict.Options) { o.Relation = "sells" },
		"--pairs":        func(o *predict.Options) { o.Pairs = "pairs.txt" },
		"--top":          func(o *predict.Options) { o.Top = -1 },
		"--out":          func(o *predict.Options) { o.Out = "top.npy" },
		"--known":        func(o *predict.Options) { o.Top, o.Known, o.Pairs = 0, true, "pairs.txt" },
		"--what":         func(o *predict.Options) { o.What, o.Top, o.Relation = "labels", 0, "" },
		"--what labels,": func(o *predict.Options) { o.What = "labels" },
	} {
		if want == "--what" && relation == "" {
			continue // a graph without types says so of the task
		}
		other := o
		other.What, other.Out = "scores", filepath.Join(t.TempDir(), "x.csv")
		change(&other)
		_, err := predict.Run(context.Background(), other)
		if !setuptest.IsMistake(err, strings.TrimSuffix(want, " labels,")) {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := os.Stat(other.Out); err == nil {
			t.Errorf("%s: something was written", want)
		}
	}
}
