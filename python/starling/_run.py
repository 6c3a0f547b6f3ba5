"""A trained model: its figures, and what it predicts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._data import Dataset, as_array, dataset
from ._errors import Failed, mistake
from ._folder import Temporary, write_json
from ._process import Child, answer, arguments, run


def frame(rows: list[dict[str, Any]]) -> Any:
    """Rows as a DataFrame where pandas is installed, else as a dictionary of arrays."""
    names = list(dict.fromkeys(n for row in rows for n in row))
    columns = {n: [row.get(n) for row in rows] for n in names}
    try:
        import pandas
    except ImportError:
        return {n: np.array(values) for n, values in columns.items()}
    return pandas.DataFrame(columns)


class Run:
    """What a training run gave, and its model."""

    def __init__(self, folder: str, report: dict[str, Any], data: Dataset | None = None, temporary: Temporary | None = None,
                 log: Sequence[str] = ()) -> None:
        self.folder = folder
        self.report = report
        self.data = data
        self.log = list(log)
        self._temporary = temporary

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Run:
        """A run that save, out= or starling train --out has written."""
        path = os.path.join(folder, "report.json")
        if not os.path.exists(os.path.join(folder, "config.json")):
            raise mistake(os.fspath(folder), "no config.json in it", "a folder that a run was saved to")
        if not os.path.exists(path):
            return cls(os.fspath(folder), {})
        with open(path, encoding="utf-8") as f:
            return cls(os.fspath(folder), json.load(f))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        files = {}
        for room, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(room, name)
                with open(path, "rb") as f:
                    files[os.path.relpath(path, self.folder)] = f.read()
        return _unpickled, (files, self.report, self.data, self.log)

    def keep_report(self) -> None:
        write_json(os.path.join(self.folder, "report.json"), self.report)

    def __repr__(self) -> str:
        figures = ", ".join(f"{k} {v:.4g}" for k, v in self.metrics.items())
        return f"<starling.Run: {self.report.get('model')} on {self.report.get('dataset')}: {figures}>"

    def _repr_html_(self) -> str:
        import html
        shown = list(self.metrics.items())[:4]
        report = os.path.join(self.folder, "report.json")
        return (f"<div><b>{html.escape(str(self.report.get('model')))}</b> on {html.escape(str(self.report.get('dataset')))}: "
                + ", ".join(f"{html.escape(k.replace('_', ' '))} {v:.4g}" for k, v in shown) + "</div>"
                + (run(["charts", report]) if os.path.exists(report) else ""))

    @property
    def metrics(self) -> dict[str, float]:
        """Figures of the best epoch: its loss, the metric that epochs are compared by, and others of the test."""
        r, best = self.report, self.report.get("best_epoch")
        metric = str(r.get("metric"))
        out: dict[str, Any] = {"val_" + metric: r.get("best_val_accuracy"), "test_" + metric: r.get("test_accuracy")}
        out.update({"test_" + k: v for k, v in ((r.get("evaluation") or {}).get("metrics") or {}).items()})
        out.update({"test_" + k: r.get(k) for k in ("auc", "mrr") if k in r})
        out.update({f"test_hits@{k}": v for k, v in (r.get("hits") or {}).items()})
        if best is not None and len(r.get("loss") or ()) > best:
            out.update(loss=r["loss"][best], best_epoch=best)
        return {k: v for k, v in out.items() if v is not None}

    @property
    def history(self) -> Any:
        """A row per epoch, as a DataFrame where pandas is installed, else a dictionary of arrays."""
        r = self.report
        n = len(r.get("loss") or ())
        out: dict[str, Any] = {"epoch": np.arange(n), "loss": np.array(r.get("loss") or (), float)}
        for split, name in (("train", "train_accuracy"), ("val", "val_accuracy"), ("test", "test_accuracies")):
            values = r.get(name)
            if values and any(v is not None for v in values):
                out[f"{split}_{r.get('metric')}"] = column = np.full(n, np.nan)
                column[r["measured"]] = np.array(values, float)
        out["seconds"] = np.array(list(r.get("epoch_seconds") or ()) + [np.nan] * n, float)[:n]
        try:
            import pandas
        except ImportError:
            return out
        return pandas.DataFrame(out)

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
            raise mistake("data", "none", "the graph to predict for", "a saved run has no graph with it")
        if type(data).__module__.startswith(("pandas", "polars")):
            more.setdefault("like", self.folder)
        return dataset(self.data if data is None else data, **more)

    def predict(self, data: Any = None, what: str = "labels", type: str | None = None, **more: Any) -> Any:
        """A row per vertex, in their order: labels, as words where labels were words, or with what= probabilities or
        embeddings. Without data, for the graph that it was trained on; tensors give tensors. Of DataFrames, a row per
        row of vertices, else per vertex of data.ids."""
        on = self._data(data, **more)
        rows, words = self._predict(on, what, ["--type=" + type] if type else [])
        if on.rows is not None:
            rows = rows[on.rows]
        if words is not None and rows.ndim == 1:
            return words[rows]
        if on.torch:
            import torch
            return torch.from_numpy(rows.astype(np.int64) if rows.dtype.kind in "iu" else rows)
        return rows

    def _predict(self, on: Dataset, what: str, flags: list[str]) -> tuple[Any, Any]:
        """What the program writes, and the names of classes."""
        room = Temporary()
        out = os.path.join(room.path, "out.npy")
        run(["predict", self.folder, on.path, "--what", what, "--out", out, "--quiet", *flags])
        names = os.path.join(room.path, "out.classes.txt")
        if what != "labels" or not os.path.exists(names):
            return np.load(out), None
        with open(names, encoding="utf-8") as f:
            return np.load(out), np.array(f.read().splitlines())

    def probabilities(self, data: Any = None, **more: Any) -> Any:
        """The probability of each class, a row per vertex."""
        return self.predict(data, "probabilities", **more)

    def embeddings(self, data: Any = None, **more: Any) -> Any:
        """The input of the last layer, or of a model of pairs its output, a row per vertex. type= is of a typed graph."""
        return self.predict(data, "embeddings", **more)

    def scores(self, pairs: Any, data: Any = None, relation: str | None = None) -> Any:
        """How likely each pair is an edge, from 0 to 1, of a model of links; pairs are (2, n) or (n, 2) vertices."""
        on = self._data(data)
        ends = as_array(pairs)
        if ends.ndim != 2 or 2 not in ends.shape:
            raise mistake("pairs", f"shape {ends.shape}", "(2, pairs): sources above targets")
        ends = ends.T if ends.shape[0] == 2 else ends
        ids = on.ids
        room = Temporary()
        file = os.path.join(room.path, "pairs.csv")
        with open(file, "w", encoding="utf-8") as f:
            for a, b in ends.tolist():
                f.write(f'"{a}","{b}"\n' if ids is None or isinstance(a, str) else f'"{ids[a]}","{ids[b]}"\n')
        rows, _ = self._predict(on, "scores", ["--pairs=" + file, *(["--relation=" + relation] if relation else [])])
        return rows

    def explain(self, vertex: int | str, data: Any = None, method: str = "masks") -> dict[str, Any]:
        """Which edges, neighbours and columns mattered for a vertex, by number or by its name before import."""
        on = self._data(data)
        ids = on.ids
        name = str(vertex) if isinstance(vertex, str) or ids is None else str(ids[vertex])
        args = ["explain", self.folder, on.path, "--vertex", name, "--method", method]
        return dict(answer(args)["explanations"][0])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copies the model and its report to a new folder, for Run.load and starling predict."""
        if os.path.exists(path):
            raise mistake(os.fspath(path), "that it exists", "a new folder")
        try:
            shutil.copytree(self.folder, path)
        except OSError as e:
            shutil.rmtree(path, ignore_errors=True)
            raise Failed(f"{os.fspath(path)}: {e}") from e

    def to_pyg(self) -> Any:
        """The model as a torch module of PyG's layers: net(x, edge_index) gives logits, of a typed graph
        net(x_dict, edge_index_dict)."""
        from ._pyg import module
        room = Temporary()
        folder = os.path.join(room.path, "export")
        run(["export", self.folder, "--format", "pyg", "--out", folder])
        return module(folder)

    def serve(self, data: Any = None, port: int = 0, **options: Any) -> Server:
        """Starts an HTTP server of predictions: docs/serving.md. Port 0: any."""
        return Server(self._data(data), self.folder, port, options)


def _unpickled(files: dict[str, bytes], report: dict[str, Any], data: Dataset | None, log: list[str]) -> Run:
    """A run with the files of its model in a folder of its own; its data, where that still is there."""
    room = Temporary()
    folder = os.path.join(room.path, "model")
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)
    return Run(folder, report, data if data is not None and os.path.exists(data.path) else None, room, log)


class Server:
    """starling serve, until close, or the end of Python."""

    def __init__(self, data: Dataset, folder: str, port: int, options: dict[str, Any]) -> None:
        self._child = Child(["serve", folder, data.path, "--listen", f"127.0.0.1:{port}", *arguments(options)])
        self._data = data
        words = next(self._child.lines(), "").split()
        if not words or not words[-1].startswith("http"):
            self._child.check()
            raise Failed("starling serve ended", list(self._child.log))
        self.url = words[-1]

    def ask(self, path: str, **body: Any) -> Any:
        """One request: server.ask("predict", vertices=[0, 1])."""
        import urllib.error
        import urllib.request
        request = urllib.request.Request(f"{self.url}/{path.lstrip('/')}", json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as e:
            with e:
                raise Failed(f"{path}: {e.read().decode(errors='replace').strip()}") from None

    def close(self) -> None:
        self._child.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_child"):
            self._child.kill()
