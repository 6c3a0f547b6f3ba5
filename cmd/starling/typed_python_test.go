package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// typedPython is the code of docs/typed-graphs.md: the loader, then HeteroData, DGL's graph and the model.
func typedPython(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/typed-graphs.md")
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	for _, m := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		code = append(code, m[1])
	}
	if len(code) != 4 {
		t.Fatalf("%d pieces of Python", len(code))
	}
	return code
}

// python runs code in a folder; without the modules that it needs the test is skipped.
func python(t *testing.T, dir, program, modules, code string) {
	t.Helper()
	if out, err := exec.Command(program, "-W", "ignore", "-c", "import "+modules).CombinedOutput(); err != nil {
		t.Skipf("%s has no %s, so this is not checked here: %v, %.80s", program, modules, err, out)
	}
	c := exec.Command(program, "-W", "ignore", "-c", code)
	c.Dir = dir
	c.Env = append(os.Environ(), "DGLBACKEND=pytorch", "OMP_NUM_THREADS=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

const checkTyped = `
assert [t["name"] for t in types] == ["paper", "author", "field"] and sum(e.shape[1] for e in edges.values()) == 19200
writes, back = edges["author", "writes", "paper"], edges["paper", "rev_writes", "author"]
order = lambda e: e[:, np.lexsort(e)]
assert (order(writes) == order(back[::-1])).all() and writes[0].max() < 600 and writes[1].max() < 800
assert rows(0)["x"].shape == (800, 64) and rows(0)["x"].dtype == np.float32 and len(rows(0)["y"]) == 800
parts = np.concatenate([split(0, s) for s in ("train", "val", "test")])
assert sorted(parts) == list(range(800))
`

// TestTypedFoldersInNumpy runs the loader of the page with numpy alone.
func TestTypedFoldersInNumpy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	typedGraph(t, dir)
	python(t, dir, cmp.Or(os.Getenv("STARLING_PYTHON"), "python3"), "numpy",
		typedPython(t)[0]+"\ntypes, edges, rows, split = load('graph')"+checkTyped)
}

// TestTypedFoldersInDGL makes DGL's heterograph.
func TestTypedFoldersInDGL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	typedGraph(t, dir)
	code := typedPython(t)
	check := checkTyped + `
assert graph.num_nodes("paper") == 800 and graph.num_edges("writes") == 2400
assert graph.nodes["paper"].data["x"].shape == (800, 64)
`
	python(t, dir, cmp.Or(os.Getenv("STARLING_DGL"), "python3"), "dgl",
		code[0]+strings.ReplaceAll(code[2], `"shop"`, `"graph"`)+check)
}

// TestTypedExportsInPyG: HeteroData of the page and an export's own code, in PyG's layers, give the probabilities that
// predict writes.
func TestTypedExportsInPyG(t *testing.T) {
	t.Parallel()
	program, dir := pyg(t), t.TempDir()
	typedGraph(t, dir)
	code := typedPython(t)
	all := strings.ReplaceAll(code[0]+code[1]+checkTyped+`
assert data.validate() and data["paper"].y.shape == (800,)
worst = 0
`, `"shop"`, `"graph"`)
	for _, m := range []string{"rgcn", "rgcn --bases 3", "rgcn --blocks 4", "hsage --row-normalize", "rgat --heads 4",
		"hgt --heads 4", "simplehgn --heads 4", "simplehgn --heads 2 --layers 1"} {
		name := strings.ReplaceAll(m, " ", "")
		works(t, dir, append(strings.Fields("train graph --layers 2 --hidden 16 --epochs 4 --quiet --out "+name+" --model"),
			strings.Fields(m)...)...)
		works(t, dir, "predict", name, "graph", "--what", "probabilities", "--out", name+".npy")
		works(t, dir, "export", name, "--format", "pyg", "--out", name+"-pyg")
		all += strings.ReplaceAll(code[3], "shop", name) + `
worst = max(worst, np.abs(torch.softmax(logits, 1).detach().numpy() - np.load("` + name + `.npy")).max())
assert worst < 1e-5, ("` + name + `", worst)
del sys.modules["model"]
`
	}
	oddNames(t, dir)
	works(t, dir, strings.Fields("train odd --model hgt --heads 2 --hidden 8 --epochs 2 --quiet --out hgt-odd")...)
	works(t, dir, "predict", "hgt-odd", "odd", "--what", "probabilities", "--out", "hgt-odd.npy")
	works(t, dir, "export", "hgt-odd", "--format", "pyg", "--out", "hgt-odd-pyg")
	all += strings.ReplaceAll(code[0]+code[1], `"shop"`, `"odd"`) + strings.ReplaceAll(code[3], "shop", "hgt-odd") + `
assert np.abs(torch.softmax(logits, 1).detach().numpy() - np.load("hgt-odd.npy")).max() < 1e-5
`
	python(t, dir, program, "torch_geometric", all+"print(worst)")
	refuses(t, dir, []string{"--format: found dgl, for a typed model", "want pyg"}, "export", "rgcn", "--format", "dgl",
		"--out", "dgl")
}

// oddNames is a typed graph whose names PyG's dictionaries of modules have to change.
func oddNames(t *testing.T, dir string) {
	t.Helper()
	items, edges := "id,a,b,class\n", "item,of\n"
	for i := range 40 {
		items += fmt.Sprintf("%d,%d,%d,%d\n", i, i%7, i%5, i%3)
		edges += fmt.Sprintf("%d,%d\n", i, i%6)
	}
	for name, text := range map[string]string{"items.csv": items, "edges.csv": edges, "odd.yaml": `
nodes:
  items: {files: items.csv, id: id, features: [a, b], label: class}
  v1.0: {count: 6}
edges:
  - {type: [items, "<= of.a", v1.0], files: edges.csv, src: item, dst: of, reverse: keys}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	works(t, dir, "import", "schema", "odd.yaml", "--out", "odd")
}
