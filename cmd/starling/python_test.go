package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pyg is a Python that has PyG: $STARLING_PYG, or $STARLING_PYTHON. Where it has none the test is skipped.
func pyg(t *testing.T) string {
	t.Helper()
	python := cmp.Or(os.Getenv("STARLING_PYG"), os.Getenv("STARLING_PYTHON"), "python3")
	if out, err := exec.Command(python, "-W", "ignore", "-c",
		"import torch_geometric, safetensors").CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("%s has no PyG, so this is not checked here; name one that has in STARLING_PYG: %v, %s", python, err,
			lines[len(lines)-1])
	}
	return python
}

// TestExportsInPyG runs the code of docs/export.md with every model, and compares.
func TestExportsInPyG(t *testing.T) {
	t.Parallel()
	c := exec.Command("python3", filepath.Join("..", "..", "scripts", "peers", "export-check"), "pyg")
	c.Env = append(os.Environ(), "STARLING_PYG="+pyg(t), "STARLING="+binary)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFoldersInPyG runs the loader of docs/data.md on dense, bfloat16 and sparse features and trains PyG's GCN on
// what it gives.
func TestFoldersInPyG(t *testing.T) {
	t.Parallel()
	python := pyg(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "data.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## From Python")
	code := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(section)
	if code == nil {
		t.Fatal("docs/data.md has no code")
	}
	dir := t.TempDir()
	works(t, dir, "get", "demo", "--out", "sparse", "--quiet")
	for kind, more := range map[string][]string{"dense": nil, "half": {"--bf16"}} {
		works(t, dir, append([]string{"generate", "sbm", "--nodes", "400", "--edges", "4000", "--features", "16",
			"--classes", "4", "--seed", "3",
			"--out", kind, "--quiet"}, more...)...)
	}
	check := `
import sys, torch_geometric.nn as G
from torch_geometric.data import Data
for folder in ("sparse", "dense", "half"):
    x, edge_index, y = load(folder)
    d = Data(x=x, edge_index=edge_index, y=y)
    assert d.validate() and not d.is_directed() and x.dtype == torch.float32 and len(x) == len(y), d
    torch.manual_seed(1)
    net = G.GCN(x.shape[1], 32, 2, int(y.max()) + 1)
    optimizer, train = torch.optim.Adam(net.parameters(), 0.01), np.load(folder + "/train.npy").astype(np.int64)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x, edge_index)[train], y[train]).backward()
        optimizer.step()
    test = np.load(folder + "/test.npy").astype(np.int64)
    right = (net(x, edge_index)[test].argmax(1) == y[test]).float().mean().item()
    assert right > 0.6, (folder, right)
a, b = load("dense")[0], load("half")[0]
assert (a - b).abs().max() < 0.05 and (a - b).abs().max() > 0
`
	c := exec.Command(python, "-W", "ignore", "-c", strings.Replace(code[1], `x, edge_index, y = load("graph")`, "", 1)+check)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestEdgeFeaturesFromPython runs the code of docs/data.md that adds features to edges, and trains on them.
func TestEdgeFeaturesFromPython(t *testing.T) {
	t.Parallel()
	python := cmp.Or(os.Getenv("STARLING_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skipf("%s has no numpy, so this is not checked here: %v", python, err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "data.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "edge_features.npy")
	code := regexp.MustCompile("(?s)```python\n(.*?edge_features.npy.*?)```").FindStringSubmatch(string(page)[len(page)-len(section):])
	if code == nil {
		t.Fatal("docs/data.md has no code for edge features")
	}
	dir := t.TempDir()
	works(t, dir, "generate", "sbm", "--nodes", "200", "--edges", "1000", "--features", "4", "--classes", "2", "--out",
		"data",
		"--quiet")
	before := `
import numpy as np
p, my_sources = np.load("data/indptr.npy"), np.load("data/indices.npy").tolist()
my_targets = np.repeat(np.arange(len(p) - 1), np.diff(p)).tolist()
my_rows = [[s, t, 1] for s, t in zip(my_sources, my_targets)]
`
	c := exec.Command(python, "-c", before+code[1])
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	works(t, dir, "train", "data", "--model", "gat", "--edge-features", "--epochs", "2", "--hidden", "8", "--quiet")
}
