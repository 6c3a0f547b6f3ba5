"""Graphs of Python as datasets of starling."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _folder
from ._errors import Mistake, mistake
from ._folder import Array, Temporary, save, write_json


class Dataset:
    """A dataset's folder; arrays that starling wrote for it go with the object."""

    def __init__(self, path: str | os.PathLike[str], temporary: Temporary | None = None, torch: bool = False) -> None:
        self.path = os.fspath(path)
        self._temporary = temporary
        self.torch = torch  # it came as tensors, and predictions are tensors too

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"starling.Dataset({self.path!r})"

    @property
    def meta(self) -> dict[str, Any]:
        """What meta.json says: sizes, task, classes, types."""
        import json
        with open(os.path.join(self.path, "meta.json"), encoding="utf-8") as f:
            return dict(json.load(f))

    def array(self, name: str) -> Array:
        """An array of the folder, mapped: indptr, indices, features, labels, train, val, test …"""
        return np.asarray(np.load(os.path.join(self.path, name + ".npy"), mmap_mode="r"))


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> Array:
    """Any array; a tensor that a GPU has is copied."""
    if is_tensor(value):
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
    a = as_array(x)
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
    a = as_array(edge_index)
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
    temporary = None if path is not None else Temporary()
    folder = os.path.join(temporary.path, "data") if temporary else os.fspath(path or "")
    os.makedirs(folder, exist_ok=True)
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
                  where: str = "y") -> dict[str, Any]:
    """Writes labels and splits of one type of vertices."""
    array = as_array(y)
    if len(array) != count:
        raise mistake(where, f"{len(array):,} labels", f"{count:,}, one for each vertex")
    stored, names = _folder.labels(array, where, regression)
    meta = _folder.write_labels(folder, stored, names, suffix)
    if all(v is None for v in given.values()):
        bad = np.isnan(stored).any(1) if stored.dtype == np.float32 else (stored.reshape(count, -1)[:, 0].astype(int) % 256 == 255)
        splits = _folder.drawn_splits(np.flatnonzero(~bad))
    else:
        splits = {n: _folder.split(np.asarray([], np.int64) if v is None else as_array(v), count, n) for n, v in given.items()}
    for n, vertices in splits.items():
        save(folder, n + suffix, vertices)
    return meta


def by_edge(value: Any, count: int, where: str) -> Array:
    a = as_array(value).astype(np.float32, copy=False)
    if len(a) != count:
        raise mistake(where, f"{len(a):,} rows", f"{count:,}, one for each edge")
    _check_numbers(a, where)
    return a


def clean(name: str) -> str:
    return "".join(c if c.isprintable() else " " for c in name) or "graph"


def dataset(data: Any, x: Any = None, y: Any = None, **more: Any) -> Dataset:
    """A dataset of anything that train takes: a folder, arrays, PyG's Data or HeteroData, a DGL graph, DataFrames."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        if not os.path.exists(data):
            raise Mistake(f"{os.fspath(data)}: found no such folder, want a dataset; starling.load downloads one, and "
                          "knows demo without a network")
        return Dataset(data)
    kind = type(data).__module__.split(".")[0]
    if kind == "torch_geometric" and hasattr(data, "edge_index") and not hasattr(data, "edge_types"):
        return from_pyg(data, x, y, **more)
    if isinstance(data, np.ndarray) or is_tensor(data) or isinstance(data, (list, tuple)):
        return from_arrays(data, x, y, **more)
    raise mistake("data", f"a {type(data).__name__}", "a folder, an edge_index, PyG's Data, a DGL graph or a DataFrame")


def from_pyg(data: Any, x: Any = None, y: Any = None, **more: Any) -> Dataset:
    get = lambda name: getattr(data, name, None)  # noqa: E731
    if get("edge_index") is None:
        raise mistake("data", "a Data without edge_index", "its edges as edge_index, of shape (2, edges)")
    kept: dict[str, Any] = {"train": get("train_mask"), "val": get("val_mask"), "test": get("test_mask"),
                            "edge_weight": get("edge_weight"), "edge_attr": get("edge_attr"), "vertices": data.num_nodes}
    kept.update({k: v for k, v in more.items() if v is not None})
    made = from_arrays(data.edge_index, get("x") if x is None else x, get("y") if y is None else y, **kept)
    made.torch = True
    return made
