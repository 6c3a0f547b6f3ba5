"""What starling export wrote, as a module of PyG's layers: docs/export.md."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
from typing import Any

import numpy as np
import torch
import torch_geometric.nn as pyg
from torch_geometric.utils import add_self_loops, scatter

_TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32}


def weights(path: str) -> dict[str, Any]:
    """The tensors of a safetensors file."""
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    head.pop("__metadata__", None)
    flat = {name: np.frombuffer(data[slice(*of["data_offsets"])], _TYPES[of["dtype"]]) for name, of in head.items()}
    return {name: torch.from_numpy(flat[name].reshape(of["shape"]).copy()) for name, of in head.items()}


def module(folder: str) -> Any:
    """The module of an export, in eval mode."""
    code = os.path.join(folder, "model.py")
    if os.path.exists(code):  # of a typed graph
        spec = importlib.util.spec_from_file_location("starling_export", code)
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made.load()
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        net = Model(json.load(f))
    net.load_state_dict(weights(os.path.join(folder, "model.safetensors")))
    return net.eval()


class WeightedGIN(torch.nn.Module):  # type: ignore[misc]
    """PyG's GINConv takes no edge weights."""

    def __init__(self, nn: Any) -> None:
        super().__init__()
        self.nn, self.eps, self.sum = nn, torch.nn.Parameter(torch.zeros(1)), pyg.SimpleConv(aggr="sum")

    def forward(self, x: Any, edge_index: Any, edge_weight: Any) -> Any:
        return self.nn((1 + self.eps) * x + self.sum(x, edge_index, edge_weight))


def _layer(of: dict[str, Any]) -> Any:
    args = dict(of["args"])
    if "mlp" in of:  # of GIN: the widths of its two linear maps
        a, b, d = of["mlp"]
        args["nn"] = torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU(), torch.nn.Linear(b, d))
    own: dict[str, Any] = {"WeightedGIN": WeightedGIN, "Linear": torch.nn.Linear}
    return (own.get(of["class"]) or getattr(pyg, of["class"]))(**args)


class Model(torch.nn.Module):  # type: ignore[misc]
    """forward gives logits of every vertex, or of a regression numbers in their own units, of a model of links embeddings."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config
        self.convs = torch.nn.ModuleList(map(_layer, config["layers"]))
        self.norms = torch.nn.ModuleList(getattr(torch.nn, n["class"])(**n["args"]) for n in config["norms"])
        self.decoder = torch.nn.ModuleList(torch.nn.Linear(*w) for w in config["decoder"])
        for part in ("encoder", "head"):
            if config[part]:
                self.add_module(part, _layer(config[part]))

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None, edge_attr: Any = None) -> Any:
        c = self.config
        if c.get("row_normalize"):
            x = x / x.abs().sum(1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        if c["self_loops"]:
            edge_index, edge_weight = add_self_loops(edge_index, edge_weight, fill_value=1.0, num_nodes=len(x))
        if c["mean_weights"]:
            total = scatter(edge_weight, edge_index[1], dim_size=len(x), reduce="sum")
            edge_weight = edge_weight / total.where(total != 0, torch.ones(()))[edge_index[1]]
        more = [edge_weight] if c["edge_weights"] else [edge_attr] if c["edge_features"] else []

        def call(conv: Any, x: Any) -> Any:
            return conv(x) if isinstance(conv, torch.nn.Linear) else conv(x, edge_index, *more)

        act = getattr(torch.nn.functional, c["activation"])
        if c["residual"]:
            x = call(self.convs[0], self.encoder(x))
            for conv, norm in zip(self.convs[1:], self.norms):
                x = x + call(conv, act(norm(x)))
            return self._units(self.head(act(self.norms[-1](x))))
        for i, conv in enumerate(self.convs):
            x = call(conv, x)
            if i < len(self.convs) - 1:
                x = act(self.norms[i](x) if self.norms else x)
        return self._units(x)

    def _units(self, y: Any) -> Any:
        s = self.config.get("targets")
        return y * torch.tensor(s["deviation"]) + torch.tensor(s["mean"]) if s else y
