package main

import (
	"cmp"
	"os"
	"testing"
)

// writesDGL writes a CSVDataset, loads it with DGL, and writes what DGL has in its chunked format.
const writesDGL = `
import os, json, numpy as np, pandas, yaml, torch, dgl
r = np.random.default_rng(7)
os.makedirs("csv")
papers, authors = r.permutation(500)[:300], r.permutation(90)
lists = lambda x: [", ".join(map(str, row)) for row in x]
split = r.integers(0, 4, 300)
pandas.DataFrame({"node_id": papers, "label": r.integers(0, 5, 300), "train_mask": split == 0, "val_mask": split == 1,
    "test_mask": split == 2, "feat": lists(r.standard_normal((300, 4)).astype(np.float32))}).to_csv("csv/papers.csv", index=False)
pandas.DataFrame({"node_id": authors, "age": r.integers(20, 60, 90)}).to_csv("csv/authors.csv")
def pairs(name, src, dst, n):
    pandas.DataFrame({"src_id": r.choice(src, n), "dst_id": r.choice(dst, n)}).to_csv(name, index=False)
pairs("csv/writes.csv", authors, papers, 700)
pairs("csv/cites.csv", papers, papers, 500)
yaml.safe_dump({"dataset_name": "mag", "node_data": [{"file_name": "papers.csv", "ntype": "paper"},
    {"file_name": "authors.csv", "ntype": "author"}], "edge_data": [
    {"file_name": "writes.csv", "etype": ["author", "writes", "paper"]},
    {"file_name": "cites.csv", "etype": ["paper", "cites", "paper"]}]}, open("csv/meta.yaml", "w"))
g = dgl.data.CSVDataset("csv")[0]
os.makedirs("chunks")
cut = lambda n: [n // 3 + (i < n % 3) for i in range(3)]
meta = {"graph_name": "mag", "node_type": g.ntypes, "num_nodes_per_chunk": [cut(g.num_nodes(t)) for t in g.ntypes],
    "edge_type": [":".join(t) for t in g.canonical_etypes], "num_edges_per_chunk": [cut(g.num_edges(t)) for t in g.canonical_etypes],
    "edges": {}, "node_data": {}, "edge_data": {}}
def chunks(name, x, write):
    files = ["%s-%d" % (name, i) for i in range(3)]
    for f, part in zip(files, np.split(x, np.cumsum(cut(len(x)))[:2])):
        write("chunks/" + f, part)
    return files
for t in g.canonical_etypes:
    files = chunks(t[1], torch.stack(g.edges(etype=t), 1).numpy(), lambda f, x: np.savetxt(f, x, "%d"))
    meta["edges"][":".join(t)] = {"format": {"name": "csv", "delimiter": " "}, "data": files}
for t in g.ntypes:
    meta["node_data"][t] = {k: {"format": {"name": "numpy"}, "data": chunks(t + k, x.numpy(), lambda f, x: np.save(open(f, "wb"), x))}
        for k, x in g.nodes[t].data.items() if k != "Unnamed: 0"}
json.dump(meta, open("chunks/metadata.json", "w"))
`

// readsDGL compares the datasets with what DGL reads of the CSVDataset.
const readsDGL = `
import dgl
g = dgl.data.CSVDataset("csv")[0]
for folder in "from-csv", "from-chunks":
    types, edges, rows, split = load(folder)
    place = {}
    for k, t in enumerate(types):
        name = f"{folder}/ids_{k}.npy"
        try:
            ids = np.load(name)
        except FileNotFoundError:
            ids = np.arange(t["count"])
        place[t["name"]] = np.argsort(np.argsort(ids)) # DGL's number of each row
        at, data = place[t["name"]], g.nodes[t["name"]].data
        assert (rows(k)["x"] == data.get("feat", data.get("age")).numpy().reshape(len(ids), -1)[at]).all()
        if t["name"] == "paper":
            assert (rows(k)["y"] == data["label"].numpy()[at]).all()
            for s in "train", "val", "test":
                assert set(at[split(k, s)]) == set(np.flatnonzero(data[s + "_mask"].numpy()))
    assert len(edges) == 2
    for (a, r, b), e in edges.items():
        mine = np.stack([place[a][e[0]], place[b][e[1]]])
        theirs = np.stack([x.numpy() for x in g.edges(etype=(a, r, b))])
        assert (mine[:, np.lexsort(mine)] == theirs[:, np.lexsort(theirs)]).all(), (folder, r)
`

// TestFilesOfDGL: a CSVDataset and a chunked graph are read as DGL's own loader reads the first.
func TestFilesOfDGL(t *testing.T) {
	t.Parallel()
	dir, program := t.TempDir(), cmp.Or(os.Getenv("STARLING_DGL"), "python3")
	python(t, dir, program, "dgl", writesDGL)
	works(t, dir, "import", "schema", "csv", "--out", "from-csv", "--quiet")
	works(t, dir, "import", "schema", "chunks", "--out", "from-chunks", "--quiet")
	python(t, dir, program, "dgl", typedPython(t)[0]+readsDGL)
}
