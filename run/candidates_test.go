package run

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"starling/graph"
	"starling/predict"
	"starling/setup/setuptest"
)

// candidatesInNumpy writes files of candidates for embeddings, and prints what OGB's evaluators compute of them: dot
// products, ranks with ties in the middle, and the k-th best of all negatives.
const candidatesInNumpy = `
import json, sys
import numpy as np
e = np.load("e.npy").astype(np.float64)
r = np.random.default_rng(3)
n, k = 40, 120
source, target, neg = r.integers(0, 300, n), r.integers(0, 300, n), r.integers(0, 300, (n, k))
neg[:, 0] = target  # a tie
np.savez("own.npz", source=source, target=target, target_neg=neg)
np.savez("ogb.npz", source_node=source, target_node=target, target_node_neg=neg.astype(np.int32))
rows = np.concatenate([source[:, None], target[:, None], neg], 1)
np.save("own.npy", rows)
np.savetxt("own.csv", rows, fmt="%d", delimiter=",")
edge, edge_neg = np.stack([source, target], 1), r.integers(0, 300, (90, 2))
np.savez("shared.npz", edge=edge, edge_neg=edge_neg)
score = lambda u, v: (e[u] * e[v]).sum(-1)
p, q = score(source, target)[:, None], score(source[:, None], neg)
near = 1e-9
rank = 0.5 * ((q > p + near).sum(1) + (q > p - near).sum(1)) + 1
own = {"mrr": (1 / rank).mean(), **{str(k): (rank <= k).mean() for k in (1, 3, 10, 100)}}
p, q = score(edge[:, 0], edge[:, 1]), np.sort(score(edge_neg[:, 0], edge_neg[:, 1]))[::-1]
shared = {str(k): (p > q[k - 1]).mean() if k <= len(q) else 1.0 for k in (10, 20, 50, 100)}
json.dump({"own": own, "shared": shared}, sys.stdout)
`

// TestCandidatesAreNumpys: MRR and hits@k of candidates from a file are what numpy computes of the embeddings, in every
// format.
func TestCandidatesAreNumpys(t *testing.T) {
	python := cmp.Or(os.Getenv("STARLING_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skip("no numpy: ", err)
	}
	dir, tmp := setuptest.Block(t, nil), t.TempDir()
	s := pairSpecs(dir)["link full"]
	s.Output.Dir, s.Pairs.Decoder = filepath.Join(tmp, "run"), "dot"
	trained(t, s, nil)
	ran := func(o predict.Options) *predict.Predicted {
		o.Run, o.Dataset, o.Overwrite = s.Output.Dir, dir, true
		p, err := predict.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ran(predict.Options{What: "embeddings", Out: filepath.Join(tmp, "e.npy")})
	c := exec.Command(python, "-c", candidatesInNumpy)
	c.Dir = tmp
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]float64
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for file, kind := range map[string]string{"own.npz": "own", "ogb.npz": "own", "own.npy": "own", "own.csv": "own",
		"shared.npz": "shared"} {
		p := ran(predict.Options{What: "scores", Candidates: filepath.Join(tmp, file),
			Out: filepath.Join(tmp, "ranks.npy")})
		if p.Ranked.Pairs != 40 || p.Ranked.Shared != (kind == "shared") || !strings.Contains(p.String(), "hits@10") {
			t.Errorf("%s: %+v, %s", file, p.Ranked, p)
		}
		for name, w := range want[kind] {
			got := float64(p.Ranked.Hits[name])
			if name == "mrr" {
				got = float64(p.Ranked.MRR)
			}
			if math.Abs(got-w) > 1e-6 {
				t.Errorf("%s: %s is %g, in numpy %g", file, name, got, w)
			}
		}
		b, err := os.ReadFile(filepath.Join(tmp, "ranks.npy"))
		if h, bad := graph.ReadNPYHeader(bytes.NewReader(b)); err != nil || bad != nil || h.Elements() != 40 {
			t.Errorf("%s: ranks %+v, %v, %v", file, h, err, bad)
		}
	}
}

// TestCandidatesOfEdgesAreNoted: pairs that messages pass over are counted.
func TestCandidatesOfEdgesAreNoted(t *testing.T) {
	dir, tmp := setuptest.Block(t, nil), t.TempDir()
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := pairSpecs(dir)["link full"]
	s.Output.Dir, s.Training.Epochs = filepath.Join(tmp, "run"), 1
	trained(t, s, nil)
	var v uint32
	for len(d.Graph.Neighbors(v)) == 0 || d.Graph.Neighbors(v)[0] == v {
		v++
	}
	file := filepath.Join(tmp, "c.npy")
	if err := graph.WriteNPY(file, []int64{int64(d.Graph.Neighbors(v)[0]), int64(v), 1, 2, 3, 3, 4, 5}, 2, 4); err != nil {
		t.Fatal(err)
	}
	p, err := predict.Run(t.Context(), predict.Options{Run: s.Output.Dir, Dataset: dir, What: "scores", Candidates: file,
		Out: filepath.Join(tmp, "ranks.npy")})
	if err != nil || p.Ranked.Edges != 1 || !strings.Contains(p.String(), "1 of the 2 pairs are edges") {
		t.Errorf("%+v, %v", p, err)
	}
}

// packNPZ writes arrays to an npz, and returns its path.
func packNPZ(t *testing.T, path string, arrays, shapes map[string][]int64) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for key, numbers := range arrays {
		one := filepath.Join(t.TempDir(), "part.npy")
		if err := graph.WriteNPY(one, numbers, shapes[key]...); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(one)
		if err != nil {
			t.Fatal(err)
		}
		w, err := z.Create(key + ".npy")
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCandidatesRefuse: a file without candidates gets one sentence, and nothing is written.
func TestCandidatesRefuse(t *testing.T) {
	dir, tmp := setuptest.Block(t, nil), t.TempDir()
	s := pairSpecs(dir)["link full"]
	s.Output.Dir, s.Training.Epochs = filepath.Join(tmp, "run"), 1
	trained(t, s, nil)
	file := func(name, text string) string {
		path := filepath.Join(tmp, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	array := func(name string, numbers []int64, shape ...int64) string {
		path := filepath.Join(tmp, name)
		if err := graph.WriteNPY(path, numbers, shape...); err != nil {
			t.Fatal(err)
		}
		return path
	}
	packed := func(name string, arrays, shapes map[string][]int64) string {
		return packNPZ(t, filepath.Join(tmp, name), arrays, shapes)
	}
	two := []int64{1, 2}
	for _, c := range []struct{ want, path string }{
		{"no array target", packed("a.npz", map[string][]int64{"source": two}, map[string][]int64{"source": {2}})},
		{"no array edge_neg", packed("b.npz", map[string][]int64{"edge": two}, map[string][]int64{"edge": {1, 2}})},
		{"target: found shape [1]", packed("d.npz", map[string][]int64{"source": two, "target": {1}, "target_neg": two},
			map[string][]int64{"source": {2}, "target": {1}, "target_neg": {2, 1}})},
		{"a row per pair", packed("e.npz", map[string][]int64{"source": two, "target": two, "target_neg": two},
			map[string][]int64{"source": {2}, "target": {2}, "target_neg": {1, 2}})},
		{"edge_neg: found shape [2]", packed("f.npz", map[string][]int64{"edge": two, "edge_neg": two},
			map[string][]int64{"edge": {1, 2}, "edge_neg": {2}})},
		{"no such file", filepath.Join(tmp, "none.npz")},
		{"no such file", filepath.Join(tmp, "none.csv")},
		{".npz, .npy or .csv", file("c.txt", "1,2,3\n")},
		{"no pairs", file("empty.csv", "\n# nothing\n")},
		{"line 2", file("few.csv", "1,2,3\n4,5\n")},
		{"2 columns", file("two.csv", "4,5\n")},
		{`line 2: found "300"`, file("unknown.csv", "1,2,3\n1,2,300\n")},
		{"found 300", array("unknown.npy", []int64{1, 2, 300}, 1, 3)},
		{"shape [3]", array("flat.npy", []int64{1, 2, 3}, 3)},
		{"whole numbers from 0", array("below.npy", []int64{1, 2, -3}, 1, 3)},
		{"a zip", file("c.npz", "no zip")},
	} {
		out := filepath.Join(tmp, "ranks.npy")
		_, err := predict.Run(t.Context(), predict.Options{Run: s.Output.Dir, Dataset: dir, What: "scores",
			Candidates: c.path, Out: out})
		if !setuptest.IsMistake(err, c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: ranks are written", c.path)
		}
	}
	for want, o := range map[string]predict.Options{
		"--pairs": {What: "scores", Candidates: "c.npz", Pairs: "p.txt"},
		".npy":    {What: "scores", Candidates: "c.npz", Out: "x.csv"},
		"--what":  {What: "embeddings", Candidates: "c.npz"},
	} {
		o.Run, o.Dataset = s.Output.Dir, dir
		if _, err := predict.Run(t.Context(), o); !setuptest.IsMistake(err, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
