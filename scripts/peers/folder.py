"""Reads and writes Starling dataset folders with numpy alone.

A folder holds meta.json and .npy arrays: indptr (int64) and indices (uint32), where the in-edges
of v come from indices[indptr[v]:indptr[v+1]]; features (float32, or bfloat16 as uint16) or
features_indptr, features_indices and features_values for sparse rows; labels (int32, -1 = none; or uint8
marks or float32 numbers, a row a vertex);
train, val and test (uint32, ascending vertex ids).
"""

import json
import pathlib
import sys

import numpy as np


class Folder:
    """One dataset. The edges and features are read when asked for, so that nothing is held twice."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not (self.path / "meta.json").exists():
            sys.exit(f"{self.path}: no meta.json; expected a Starling dataset folder, as starling generate or import makes")
        if (self.path / "weights.npy").exists():
            sys.exit(f"{self.path}: has weights.npy; the peer scripts compare unweighted graphs only")
        self.meta = json.loads((self.path / "meta.json").read_text())
        self.indptr = self._load("indptr")
        self.labels = self._load("labels")
        if self.labels.dtype == np.int32:  # what torch takes for classes
            self.labels = self.labels.astype(np.int64)
        self.nodes, self.edges = len(self.indptr) - 1, int(self.indptr[-1])
        self.classes, self.width = self.meta["classes"], self.meta["features"]["dim"]
        self.splits = {name: self._load(name).astype(np.int64) for name in ("train", "val", "test")}

    def _load(self, name):
        path = self.path / f"{name}.npy"
        if not path.exists():
            sys.exit(f"{path}: missing; full-graph training needs it")
        return np.load(path)

    def sources(self):
        """Source of every edge as int64, grouped by destination."""
        return self._load("indices").astype(np.int64)

    def destinations(self):
        return np.repeat(np.arange(self.nodes, dtype=np.int64), np.diff(self.indptr))

    def features(self):
        """Features as a dense float32 array."""
        kind = self.meta["features"]["kind"]
        if kind == "sparse":
            dense = np.zeros((self.nodes, self.width), np.float32)
            indptr, columns = self._load("features_indptr"), self._load("features_indices")
            rows = np.repeat(np.arange(self.nodes), np.diff(indptr))
            np.add.at(dense, (rows, columns), self._load("features_values"))
            return dense
        x = self._load("features")
        if kind == "bfloat16":  # the upper half of a float32
            x = (x.astype(np.uint32) << 16).view(np.float32)
        return x


def row_normalize(x):
    """Rows divided by their sum, as Kipf's GCN prepares citation data; zero rows stay zero."""
    total = x.sum(axis=1, keepdims=True)
    return x / np.where(total == 0, 1, total)


def in_edges(nodes, source, target):
    """indptr and indices of the edges source -> target, each list ascending, repeats dropped."""
    keys = np.unique(target.astype(np.int64) * nodes + source)
    indptr = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(keys // nodes, minlength=nodes), out=indptr[1:])
    return indptr, (keys % nodes).astype(np.uint32)


def random_split(nodes, fractions, seed):
    """Train, val and test ids: fractions of the vertices in random order, test takes the rest."""
    order = np.random.default_rng(seed).permutation(nodes)
    train, val = (int(nodes * f) for f in fractions)
    parts = np.split(order, [train, train + val])
    return {k: np.sort(p).astype(np.uint32) for k, p in zip(("train", "val", "test"), parts)}


def write(path, name, source, notes, arrays, kind, dim, classes):
    """Writes a folder. Checksums are left out, which the format allows."""
    path = pathlib.Path(path)
    if path.exists():
        sys.exit(f"{path}: exists; remove it or give another --out")
    path.mkdir(parents=True)
    for key, a in arrays.items():
        np.save(path / f"{key}.npy", a)
    indptr, indices = arrays["indptr"], arrays["indices"].astype(np.int64)
    nodes = len(indptr) - 1
    target = np.repeat(np.arange(nodes), np.diff(indptr))
    symmetric = np.array_equal(np.unique(target * nodes + indices), np.unique(indices * nodes + target))
    meta = {"format": "starling-dataset", "version": 1, "name": name, "nodes": nodes, "edges": int(indptr[-1]),
            "symmetric": bool(symmetric), "features": {"kind": kind, "dim": dim}, "task": "single-label",
            "classes": classes, "source": source, "notes": notes}
    (path / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
