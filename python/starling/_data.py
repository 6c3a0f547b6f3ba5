"""Graphs of Python as datasets of starling."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from . import _folder
from ._errors import Mistake, mistake
from ._folder import Array, Temporary, save, write_json
from ._process import arguments, run


class Dataset:
    """A dataset's folder; arrays that starling wrote for it go with the object."""

    def __init__(self, path: str | os.PathLike[str], temporary: Temporary | None = None, torch: bool = False) -> None:
        self.path = os.fspath(path)
        self._temporary = temporary
        self.torch = torch  # it came as tensors, and predictions are tensors too
        self.rows: Array | None = None  # of a table: the vertex of each of its rows

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"starling.Dataset({self.path!r})"

    def __reduce__(self) -> tuple[type[Dataset], tuple[Any, ...], dict[str, Any]]:
        return Dataset, (self.path, None, self.torch), {"rows": self.rows}  # whoever unpickles it does not own the folder

    @property
    def meta(self) -> dict[str, Any]:
        """What meta.json says: sizes, task, classes, types."""
        import json
        with open(os.path.join(self.path, "meta.json"), encoding="utf-8") as f:
            return dict(json.load(f))

    @property
    def ids(self) -> Array | None:
        """What the vertices were called before import, in their order; None: by their numbers."""
        path = os.path.join(self.path, "ids.txt")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                return np.array(f.read().splitlines())
        return self.array("ids") if os.path.exists(path[:-3] + "npy") else None

    def array(self, name: str, mode: Literal["r", "c"] = "r") -> Array:
        """An array of the folder, mapped: indptr, indices, features, labels, train, val, test … With mode c it may be
        written to, in memory alone."""
        return np.asarray(np.load(os.path.join(self.path, name + ".npy"), mmap_mode=mode))


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any, where: str = "data") -> Array:
    """Any array; a tensor that a GPU has is copied."""
    if is_tensor(value):
        if value.is_meta:
            raise mistake(where, "a tensor without values, on torch's device meta", "one that has them")
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # numpy has no such type: its bits
            return np.asarray(value.view(sys.modules["torch"].int16).numpy().view(np.uint16))
        return np.asarray(value.numpy())
    if type(value).__module__.startswith(("pandas", "polars")):
        value = value.to_numpy()
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def features(x: Any, where: str = "x") -> Any:
    """Features as they are stored: float32, the bits of bfloat16, or scipy's CSR."""
    if is_tensor(x) and x.layout != sys.modules["torch"].strided:
        import scipy.sparse
        x = x.cpu().to_sparse_coo().coalesce()
        x = scipy.sparse.coo_matrix((x.values().numpy(), x.indices().numpy()), shape=x.shape)
    if hasattr(x, "tocsr"):
        x = x.tocsr()
        x.sum_duplicates()
        _check_numbers(x.data, where)
        return x
    half = is_tensor(x) and str(x.dtype) == "torch.bfloat16"
    a = as_array(x, where)
    if a.ndim != 2 or a.shape[1] == 0:
        raise mistake(where, f"shape {a.shape}", "(vertices, features)", "x.reshape(-1, 1) makes a column of numbers"
                      if a.ndim == 1 else "")
    if half:
        return a
    if a.dtype.kind not in "fiub":
        raise mistake(where, f"type {a.dtype}", "numbers", "give words a number or a column each")
    if a.dtype != np.float32:
        a = a.astype(np.float32)
    _check_numbers(a, where)
    return a


def _check_numbers(a: Array, where: str) -> None:
    finite = np.isfinite(a)
    if finite.all():
        return
    at = np.argwhere(~finite)[0]
    raise mistake(where, f"{int((~finite).sum())} values that are NaN or infinite, the first in row {at[0]}"
                  + (f", column {at[1]}" if len(at) > 1 else ""), "numbers",
                  "numpy.nan_to_num replaces them, or leave out these rows")


def edges(edge_index: Any, sources: int | None, targets: int | None, where: str = "edge_index") -> tuple[Array, Array]:
    """Sources and targets; None: as many vertices as they name."""
    a = as_array(edge_index, where)
    if a.ndim != 2 or a.shape[0] != 2:
        fix = "transpose it" if a.ndim == 2 and a.shape[1] == 2 else ""
        raise mistake(where, f"shape {a.shape}", "(2, edges): sources above targets", fix)
    if a.dtype.kind not in "iu" and a.size:
        raise mistake(where, f"type {a.dtype}", "whole numbers")
    a = a.astype(np.int64, copy=False)
    for row, bound, name in ((0, sources, "source"), (1, targets, "target")):
        end = 1 << 32 if bound is None else bound
        wrong = np.flatnonzero((a[row] < 0) | (a[row] >= end))
        if len(wrong):
            raise mistake(where, f"{name} {a[row, wrong[0]]} in column {wrong[0]}", f"0 to {end - 1}",
                          "there is a vertex for each row of x" if bound is not None else "")
    return a[0], a[1]


def from_arrays(edge_index: Any, x: Any = None, y: Any = None, *, train: Any = None, val: Any = None, test: Any = None,
                edge_weight: Any = None, edge_attr: Any = None, vertices: int | None = None, name: str = "graph",
                regression: bool = False, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Writes a graph of one type as a dataset's folder."""
    torch = any(map(is_tensor, (edge_index, x, y)))
    feats = None if x is None else features(x)
    count = vertices if vertices is not None else len(y) if feats is None and y is not None else None
    if feats is not None:
        count = int(feats.shape[0])
    source, target = edges(edge_index, count, count)
    if count is None:
        count = int(max(source.max(), target.max())) + 1 if len(source) else 0
    if count < 1:
        raise mistake("graph", "no vertices", "at least one")
    folder, temporary = _room(path)
    weight = None if edge_weight is None else by_edge(edge_weight, len(source), "edge_weight")
    attr = None if edge_attr is None else by_edge(edge_attr, len(source), "edge_attr")
    if attr is not None:
        attr = attr.reshape(len(source), -1)
    meta: dict[str, Any] = {"format": "starling-dataset", "version": 1, "name": clean(name)}
    meta.update(_folder.write_graph(folder, source, target, count, {"weights": weight, "edge_features": attr}))
    if attr is not None:
        meta["edge_dim"] = int(attr.shape[1])
    if feats is not None:
        meta["features"] = _folder.write_features(folder, feats)
    given = {"train": train, "val": val, "test": test}
    if y is not None:
        meta.update(write_targets(folder, y, given, count, "", regression))
    write_json(os.path.join(folder, "meta.json"), meta)
    return Dataset(folder, temporary, torch)


def write_targets(folder: str, y: Any, given: Mapping[str, Any], count: int, suffix: str, regression: bool,
                  where: str = "y", first: int = 0) -> dict[str, Any]:
    """Writes labels and splits of one type of vertices."""
    array = as_array(y, where)
    if len(array) != count:
        raise mistake(where, f"{len(array):,} labels", f"{count:,}, one for each vertex")
    stored, names = _folder.labels(array, where, regression)
    meta = _folder.write_labels(folder, stored, names, suffix)
    if all(v is None for v in given.values()):
        known: Any = stored >= 0
        if stored.ndim == 2:
            known = stored[:, 0] != 255 if stored.dtype == np.uint8 else ~np.isnan(stored).any(1)
        splits = _folder.drawn_splits(np.flatnonzero(known))
    else:
        splits = {n: _folder.split(np.asarray([], np.int64) if v is None else as_array(v), count, n) for n, v in given.items()}
    for n, vertices in splits.items():
        save(folder, n + suffix, (vertices + np.uint32(first)).astype(np.uint32))
    return meta


def by_edge(value: Any, count: int, where: str) -> Array:
    a = as_array(value, where).astype(np.float32, copy=False)
    if len(a) != count:
        raise mistake(where, f"{len(a):,} rows", f"{count:,}, one for each edge")
    _check_numbers(a, where)
    return a


def clean(name: str) -> str:
    return "".join(c if c.isprintable() else " " for c in name) or "graph"


def dataset(data: Any, x: Any = None, y: Any = None, **more: Any) -> Dataset:
    """A dataset of anything that train takes: a folder, arrays, PyG's Data or HeteroData, a DGL graph, DataFrames.

    Beside an edge_index: x, y, train, val, test (masks or lists), edge_weight, edge_attr, vertices (their number), name.
    Beside a DataFrame of edges: vertices (a DataFrame), and the options of starling import table. path= is a new folder
    that stays; else the arrays that are written go with the object.
    """
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        if not os.path.exists(data):
            raise Mistake(f"{os.fspath(data)}: found no such folder, want a dataset; starling.load downloads one, and "
                          "knows demo without a network")
        return Dataset(data)
    kind = type(data).__module__.split(".")[0]
    if kind in ("pandas", "polars"):
        return tables(data, **more)
    if kind == "torch_geometric" and hasattr(data, "edge_types"):
        return typed(*_hetero(data), torch=True, **more)
    if kind == "torch_geometric" and hasattr(data, "edge_index"):
        return _from(lambda name: getattr(data, name, None), data.edge_index, data.num_nodes, x, y, more)
    if kind == "dgl" and hasattr(data, "canonical_etypes"):
        if len(data.ntypes) > 1 or len(data.etypes) > 1:
            return typed(*_heterograph(data), torch=True, **more)
        return _from(lambda name: _of(data.ndata, name) if name in _NAMES else data.edata.get(name[5:]),
                     _stack(data.edges()), data.num_nodes(), x, y, more)
    if isinstance(data, (np.ndarray, list, tuple)) or is_tensor(data):
        return from_arrays(data, x, y, **more)
    raise mistake("data", f"a {type(data).__name__}", "a folder, an edge_index, PyG's Data, a DGL graph or a DataFrame")


# What libraries call features, labels and splits.
_NAMES = {"x": ("feat", "x"), "y": ("label", "y"), "train_mask": ("train_mask",), "val_mask": ("val_mask",),
          "test_mask": ("test_mask",)}


def _of(store: Any, name: str) -> Any:
    return next((store[n] for n in _NAMES[name] if n in store), None)


def _stack(ends: Any) -> Any:
    return np.stack([as_array(e) for e in ends])


def _from(get: Any, edge_index: Any, count: int, x: Any, y: Any, more: dict[str, Any]) -> Dataset:
    if edge_index is None:
        raise mistake("data", "a Data without edge_index", "its edges as edge_index, of shape (2, edges)")
    kept: dict[str, Any] = {"train": get("train_mask"), "val": get("val_mask"), "test": get("test_mask"), "vertices": count,
                            "edge_weight": get("edge_weight"), "edge_attr": get("edge_attr")}
    kept.update({k: v for k, v in more.items() if v is not None})
    made = from_arrays(edge_index, get("x") if x is None else x, get("y") if y is None else y, **kept)
    made.torch = True
    return made


# A type of vertices: its number of them, and what is known of them by the names of PyG.
Type = tuple[int, dict[str, Any]]


def _hetero(data: Any) -> tuple[dict[str, Type], dict[tuple[str, str, str], Any]]:
    types = {t: (int(data[t].num_nodes), {n: data[t][n] for n in _NAMES if n in data[t]}) for t in data.node_types}
    return types, {e: data[e].edge_index for e in data.edge_types}


def _heterograph(g: Any) -> tuple[dict[str, Type], dict[tuple[str, str, str], Any]]:
    types = {t: (int(g.num_nodes(t)), {n: v for n in _NAMES if (v := _of(g.nodes[t].data, n)) is not None}) for t in g.ntypes}
    return types, {e: _stack(g.edges(etype=e)) for e in g.canonical_etypes}


def typed(types: Mapping[str, Type], relations: Mapping[tuple[str, str, str], Any], *, name: str = "graph",
          regression: bool = False, torch: bool = False, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Writes a typed graph as a dataset's folder: types are ranges of ids, edges are by target and relation."""
    names = list(types)
    first = dict(zip(names, np.cumsum([0] + [count for count, _ in types.values()])))
    folder, temporary = _room(path)
    order = sorted(relations, key=lambda r: (names.index(r[2]), names.index(r[0])))
    ends = [edges(relations[r], types[r[0]][0], types[r[2]][0], " ".join(r)) for r in order]
    count = sum(c for c, _ in types.values())
    if count < 1:
        raise mistake("graph", "no vertices", "at least one")
    source = np.concatenate([s + first[r[0]] for r, (s, _) in zip(order, ends)] or [np.zeros(0, np.int64)])
    target = np.concatenate([t + first[r[2]] for r, (_, t) in zip(order, ends)] or [np.zeros(0, np.int64)])
    relation = np.repeat(np.arange(len(order)), [len(s) for s, _ in ends])
    by = np.lexsort((source, relation, target))
    indptr = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=count), out=indptr[1:])
    for file, array in (("indptr", indptr), ("indices", source[by].astype(np.uint32)),
                        ("relations", relation[by].astype(np.uint16))):
        save(folder, file, array)
    schema: dict[str, Any] = {"types": [], "relations": [
        {"source": names.index(r[0]), "name": r[1], "target": names.index(r[2]), "edges": len(s)}
        for r, (s, _) in zip(order, ends)]}
    for k, (t, (size, has)) in enumerate(types.items()):
        meta: dict[str, Any] = {"name": t, "first": int(first[t]), "count": size}
        if has.get("x") is not None:
            feats = features(has["x"], t + ".x")
            if feats.shape[0] != size:
                raise mistake(t + ".x", f"{feats.shape[0]:,} rows", f"{size:,}, one for each vertex")
            meta["features"] = _folder.write_features(folder, feats, f"_{k}")
        if has.get("y") is not None:
            given = {n: has.get(n + "_mask") for n in ("train", "val", "test")}
            meta.update(write_targets(folder, has["y"], given, size, f"_{k}", regression, t + ".y", int(first[t])))
        schema["types"].append(meta)
    write_json(os.path.join(folder, "meta.json"), {"format": "starling-dataset", "version": 2, "name": clean(name),
               "nodes": count, "edges": len(source), "symmetric": False, "schema": schema})
    return Dataset(folder, temporary, torch)


def tables(edges: Any, vertices: Any = None, *, path: str | os.PathLike[str] | None = None, **options: Any) -> Dataset:
    """A dataset of a DataFrame of edges, and perhaps one of vertices, of pandas or polars, as starling import table makes
    it: options say what the columns are (src=, dst=, id=, label=, features=), and like=run does as for that run."""
    folder, temporary = _room(path, make=False)
    tmp = Temporary()
    files = []
    for name, frame in (("edges", edges), ("vertices", vertices)):
        if frame is None:
            continue
        file = os.path.join(tmp.path, name + ".csv")
        if hasattr(frame, "write_csv"):
            frame.write_csv(file)
        else:
            frame.to_csv(file, index=False)
        files += [file] if name == "edges" else ["--vertices", file]
    like = options.pop("like", None)
    options["like"] = getattr(like, "folder", like)
    run(["import", "table", *files, "--out", folder, "--quiet", *arguments(options)])
    made = Dataset(folder, temporary)
    if vertices is not None:
        made.rows = _rows_of(made, vertices, options.get("id"))
    return made


def _rows_of(made: Dataset, vertices: Any, column: str | None) -> Array | None:
    """The vertex of each row of the table."""
    ids = made.ids
    if ids is None:
        return None
    known = set(map(str, ids))
    names = [column] if column else [c for c in vertices.columns if known == set(map(str, vertices[c]))]
    at = {str(v): i for i, v in enumerate(ids)}
    try:
        return np.array([at[str(v)] for v in vertices[names[0]]])
    except (KeyError, IndexError):
        return None


def _room(path: str | os.PathLike[str] | None, make: bool = True) -> tuple[str, Temporary | None]:
    """The folder for a new dataset."""
    temporary = Temporary() if path is None else None
    folder = os.path.join(temporary.path, "data") if temporary else os.fspath(path or "")
    if os.path.exists(os.path.join(folder, "meta.json")):
        raise mistake(folder, "a dataset", "a new folder")
    if make:
        os.makedirs(folder, exist_ok=True)
    return folder, temporary
