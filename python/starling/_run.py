"""A trained model: its figures, and what it predicts."""

from __future__ import annotations

import os
import shutil
from typing import Any

import numpy as np

from ._data import Dataset, dataset
from ._errors import mistake
from ._folder import Array, Temporary
from ._process import answer, run


class Run:
    """What a training run gave, and its model."""

    def __init__(self, folder: str, report: dict[str, Any], data: Dataset | None, temporary: Temporary | None = None,
                 log: list[str] | None = None) -> None:
        self.folder = folder
        self.report = report
        self.data = data
        self.log = log or []
        self._temporary = temporary

    def __repr__(self) -> str:
        figures = ", ".join(f"{k} {v:.4g}" for k, v in self.metrics.items() if isinstance(v, (int, float)))
        return f"<starling.Run: {self.report.get('model')} on {self.report.get('dataset')}: {figures}>"

    @property
    def metrics(self) -> dict[str, Any]:
        """Figures of the best epoch: loss, the metric of each split, and of the test what the report has."""
        r = self.report
        best = r.get("best_epoch") or 0
        out: dict[str, Any] = {"best_epoch": best}
        if r.get("loss"):
            out["loss"] = r["loss"][best]
        out["val_" + str(r.get("metric"))] = r.get("best_val_" + str(r.get("metric")), r.get("best_val_accuracy"))
        out.update({k: v for k, v in r.items() if k.startswith("test_") and isinstance(v, (int, float))})
        for name, v in ((r.get("evaluation") or {}).get("metrics") or {}).items():
            out.setdefault("test_" + name, v)
        return {k: v for k, v in out.items() if v is not None}

    @property
    def history(self) -> Any:
        """A row per epoch: a DataFrame where pandas is installed, else a dictionary of arrays."""
        r = self.report
        n = len(r.get("loss") or [])
        rows: dict[str, Array] = {"epoch": np.arange(n), "loss": np.array(r.get("loss") or [], float)}
        measured = r.get("measured") or []
        for name, values in r.items():
            if isinstance(values, list) and values and name not in ("loss", "measured", "epoch_seconds") \
                    and len(values) == len(measured) and all(isinstance(v, (int, float)) for v in values):
                rows[name] = np.full(n, np.nan)
                rows[name][measured] = values
        rows["seconds"] = np.array((r.get("epoch_seconds") or []) + [np.nan] * n, float)[:n]
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    @property
    def bytes(self) -> dict[str, Any]:
        """Bytes that workers sent: total, planned, by kind and by link."""
        return dict(self.report.get("bytes") or {})

    @property
    def plan(self) -> dict[str, Any]:
        """What was planned before the first epoch: bytes and memory."""
        r = self.report
        return {"bytes": self.bytes.get("planned"), "memory": r.get("memory_planned_bytes"),
                "device_memory": r.get("device_planned_bytes")}

    def _data(self, data: Any, **more: Any) -> Dataset:
        if data is None and self.data is None:
            raise mistake("data", "none", "the graph to predict for", "this run was read from a folder")
        return dataset(self.data if data is None else data, **more)

    def predict(self, data: Any = None, what: str = "labels", **more: Any) -> Any:
        """A row per vertex, in their order: labels (words where labels were words), or with what= probabilities,
        embeddings. Without data, for the graph that it was trained on. Tensors give tensors."""
        on = self._data(data, **more)
        room = Temporary()
        out = os.path.join(room.path, what + ".npy")
        run(["predict", self.folder, on.path, "--what", what, "--out", out, "--quiet"])
        rows: Any = np.load(out)
        names = os.path.join(room.path, what + ".classes.txt")
        if what == "labels" and os.path.exists(names):
            with open(names, encoding="utf-8") as f:
                words = np.array(f.read().splitlines())
            if rows.ndim == 1:
                rows = words[rows]
        if on.torch and rows.dtype.kind in "iuf":
            import torch
            rows = torch.from_numpy(rows.astype(np.int64) if rows.dtype.kind in "iu" else rows)
        return rows

    def probabilities(self, data: Any = None, **more: Any) -> Any:
        """The probability of each class, a row per vertex."""
        return self.predict(data, "probabilities", **more)

    def embeddings(self, data: Any = None, **more: Any) -> Any:
        """The input of the last layer, or of a model of pairs its output, a row per vertex."""
        return self.predict(data, "embeddings", **more)

    def explain(self, vertex: int | str, data: Any = None, method: str = "masks") -> dict[str, Any]:
        """Which edges, neighbours and columns mattered for a vertex: docs/explaining.md."""
        return dict(answer(["explain", self.folder, self._data(data).path, "--vertex", str(vertex), "--method", method]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copies the model to a folder, which starling predict and starling.Run read."""
        if os.path.exists(path):
            raise mistake(os.fspath(path), "that it exists", "a new folder")
        shutil.copytree(self.folder, path)
