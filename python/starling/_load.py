"""Public datasets, and datasets as objects of other libraries."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ._data import Dataset
from ._errors import mistake
from ._process import arguments, run


def load(name: str | os.PathLike[str], as_: str | None = None, root: str | os.PathLike[str] | None = None,
         **options: Any) -> Any:
    """A dataset by name, downloaded once, or a dataset's folder; starling get --help lists names. as_: None (the
    dataset), numpy (a dictionary of arrays), pyg (Data or HeteroData) or dgl. root is where downloads stay; options are
    those of starling get, as symmetrize=True. Features and what edges have are mapped from the folder, where they are
    float32: what is written to them stays in memory."""
    path = os.fspath(name)
    if not os.path.isdir(path):
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        kind = "-".join([path] + [k for k, v in sorted(options.items()) if v is True])
        path = os.path.join(root or os.path.join(caches, "starling", "datasets"), kind)
        if not os.path.exists(os.path.join(path, "meta.json")):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            run(["get", os.fspath(name), "--out", path, "--quiet", *arguments(options)])
    data = Dataset(path)
    if as_ is None:
        return data
    if as_ not in ("numpy", "pyg", "dgl"):
        raise mistake("as_", repr(as_), "numpy, pyg or dgl")
    arrays = typed_arrays(data) if "schema" in data.meta else flat_arrays(data)
    return arrays if as_ == "numpy" else (_pyg if as_ == "pyg" else _dgl)(arrays)


def _rows(data: Dataset, meta: dict[str, Any], count: int, suffix: str = "", first: int = 0) -> dict[str, Any]:
    """Features, labels and masks of one type."""
    out: dict[str, Any] = {}
    kind = (meta.get("features") or {}).get("kind")
    if kind == "sparse":
        x = np.zeros((count, meta["features"]["dim"]), np.float32)
        row = np.repeat(np.arange(count), np.diff(data.array("features_indptr" + suffix)))
        x[row, data.array("features_indices" + suffix)] = data.array("features_values" + suffix)
        out["x"] = x
    elif kind:
        x = data.array("features" + suffix, "c")
        out["x"] = x if kind == "float32" else (x.astype(np.uint32) << 16).view(np.float32)
    if meta.get("task"):
        y = np.array(data.array("labels" + suffix))
        out["y"] = y.astype(np.int64) if y.dtype == np.int32 else y.astype(np.float32)
    for split in ("train", "val", "test"):
        if os.path.exists(os.path.join(data.path, split + suffix + ".npy")):
            out[split + "_mask"] = mask = np.zeros(count, bool)
            mask[data.array(split + suffix).astype(np.int64) - first] = True
    return out


def flat_arrays(data: Dataset) -> dict[str, Any]:
    """Arrays of a graph of one type, by PyG's names."""
    meta, indptr = data.meta, data.array("indptr")
    target = np.repeat(np.arange(meta["nodes"]), np.diff(indptr))
    out: dict[str, Any] = {"num_nodes": meta["nodes"], "edge_index": np.stack([data.array("indices").astype(np.int64), target])}
    out.update(_rows(data, meta, meta["nodes"]))
    for file, name in (("weights", "edge_weight"), ("edge_features", "edge_attr")):
        if os.path.exists(os.path.join(data.path, file + ".npy")):
            out[name] = data.array(file, "c")
    return out


def typed_arrays(data: Dataset) -> dict[str, Any]:
    """The same of a typed graph: by types, and relations as (source, name, target)."""
    schema, indptr = data.meta["schema"], data.array("indptr")
    types, relation, source = schema["types"], data.array("relations"), data.array("indices").astype(np.int64)
    target = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    out: dict[str, Any] = {"types": {}, "edges": {}}
    for k, t in enumerate(types):
        out["types"][t["name"]] = {"num_nodes": t["count"], **_rows(data, t, t["count"], f"_{k}", t["first"])}
    for r, of in enumerate(schema["relations"]):
        s, t, at = types[of["source"]], types[of["target"]], relation == r
        out["edges"][s["name"], of["name"], t["name"]] = np.stack([source[at] - s["first"], target[at] - t["first"]])
    return out


def _tensors(arrays: dict[str, Any]) -> dict[str, Any]:
    import torch
    return {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in arrays.items()}


def _pyg(arrays: dict[str, Any]) -> Any:
    import torch
    from torch_geometric.data import Data, HeteroData
    if "types" not in arrays:
        return Data(**_tensors(arrays))
    data = HeteroData()
    for name, of in arrays["types"].items():
        data[name].update(_tensors(of))
    for name, edges in arrays["edges"].items():
        data[name].edge_index = torch.from_numpy(edges)
    return data


def _dgl(arrays: dict[str, Any]) -> Any:
    import dgl
    import torch
    names = {"x": "feat", "y": "label"}
    if "types" not in arrays:
        g = dgl.graph(tuple(torch.from_numpy(arrays["edge_index"])), num_nodes=arrays["num_nodes"])
        of = _tensors(arrays)
        g.ndata.update({names.get(k, k): v for k, v in of.items() if k[0] in "xytv"})
        g.edata.update({k[5:]: of[k] for k in ("edge_weight", "edge_attr") if k in of})
        return g
    g = dgl.heterograph({k: tuple(torch.from_numpy(v)) for k, v in arrays["edges"].items()},
                        {k: v["num_nodes"] for k, v in arrays["types"].items()})
    for name, has in arrays["types"].items():
        g.nodes[name].data.update({names.get(k, k): v for k, v in _tensors(has).items() if k != "num_nodes"})
    return g
