"""Training, and what is known before it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._data import Dataset, dataset
from ._errors import Failed
from ._folder import Temporary
from ._help import lists
from ._options import CompareOptions, PartitionOptions, PlanOptions, TrainOptions
from ._process import Child, answer, arguments
from ._run import Run, frame
from ._show import Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack

Epoch = dict[str, Any]
_OF_DATA = ("train", "val", "test", "edge_weight", "edge_attr", "name", "vertices", "src", "dst", "id", "label", "features",
            "weight", "time")


def _dataset(data: Any, x: Any, y: Any, options: dict[str, Any]) -> Dataset:
    """The dataset, of which options may speak too."""
    given = {k: options.pop(k) for k in _OF_DATA if k in options}
    if options.get("task") == "regression" and y is not None:
        given["regression"] = True
    return dataset(data, x, y, **given)


class Stream(Iterator[Epoch]):
    """A run that goes on: its epochs as they are done, with loss and, where measured, train, val and test; then run."""

    def __init__(self, data: Any, x: Any = None, y: Any = None, out: str | os.PathLike[str] | None = None,
                 verbose: bool = False, progress: bool | None = None, **options: Any) -> None:
        self._data = _dataset(data, x, y, options)
        self._room = Temporary() if out is None else None
        self._folder = os.path.join(self._room.path, "model") if self._room else os.fspath(out or "")
        self._report: dict[str, Any] | None = None
        self._run: Run | None = None
        self._stopped = False
        self._bar = Progress(progress)
        self._child = Child(["train", self._data.path, "--out", self._folder, "--events", "/dev/stdout", "--quiet",
                             *arguments(options)], verbose)
        self._lines = self._child.lines()

    def __next__(self) -> Epoch:
        try:
            for line in self._lines:
                event = json.loads(line)
                self._bar.on(event)
                if event["event"] == "epoch":
                    return dict(event)
                if event["event"] == "result":
                    self._report = event["report"]
            self._end()
        except BaseException as e:
            self.__exit__(type(e))
            raise
        raise StopIteration

    def _end(self) -> None:
        if self._run is None:
            self._child.check(interrupted_is_fine=True)
            if self._report is None:
                raise Failed("starling ended without a result", list(self._child.log))
            self._run = Run(self._folder, self._report, self._data, self._room, list(self._child.log))
            self._run.keep_report()
        self.__exit__()

    def stop(self) -> None:
        """Ends training when the epoch under way is done; those that were done meanwhile still come."""
        if not self._stopped:
            self._stopped = True
            self._child.interrupt()

    @property
    def run(self) -> Run:
        """The run; one that still goes on is stopped."""
        if self._run is None:
            self.stop()
            for _ in self:
                pass
        assert self._run is not None
        return self._run

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        self._child.__exit__(kind)
        self._bar.close()

    def __del__(self) -> None:
        if hasattr(self, "_child"):
            self.__exit__()


@lists(TrainOptions)
def stream(data: Any, x: Any = None, y: Any = None, *, out: str | os.PathLike[str] | None = None, verbose: bool = False,
           progress: bool | None = False, **options: Unpack[TrainOptions]) -> Stream:
    """Trains as train does, and yields epochs as they are done: for epoch in starling.stream(data). Its stop() ends
    training, its run is the run."""
    return Stream(data, x, y, out, verbose, progress, **options)


@lists(TrainOptions)
def train(data: Any, x: Any = None, y: Any = None, *, on_epoch: Callable[[Epoch], object] | None = None,
          out: str | os.PathLike[str] | None = None, verbose: bool = False, progress: bool | None = None,
          **options: Unpack[TrainOptions]) -> Run:
    """Trains a model, as starling train does, and returns the run.

    data is a folder, PyG's Data or HeteroData, a DGL graph, a DataFrame of edges beside vertices=, or an edge_index
    beside x, y and what starling.dataset takes. Options are the program's: model="sage", weight_decay=5e-4. on_epoch is
    called with the figures of each epoch; when it returns False, training ends after the epoch that is under way.
    verbose shows the program's log; progress shows a bar (None: on terminals and in notebooks, where tqdm is installed).
    """
    with Stream(data, x, y, out, verbose, progress, **options) as epochs:
        going = on_epoch is not None
        for epoch in epochs:
            if going and on_epoch is not None and on_epoch(epoch) is False:
                going = False
                epochs.stop()
        return epochs.run


@lists(CompareOptions)
def compare(data: Any, x: Any = None, y: Any = None, **options: Unpack[CompareOptions]) -> Any:
    """Trains with each of strategies=, models=, modes=, samplers= or partitioners=, and returns a row for each: seconds,
    bytes, memory and accuracy."""
    given: dict[str, Any] = dict(options)
    on = _dataset(data, x, y, given)
    return frame([_flat(row) for row in answer(["compare", on.path, *arguments(given)])["rows"]])


@lists(PlanOptions)
def plan(data: Any, x: Any = None, y: Any = None, **options: Unpack[PlanOptions]) -> Any:
    """What an epoch would take with every strategy, without training: a row for each, the best first."""
    given: dict[str, Any] = dict(options)
    on = _dataset(data, x, y, given)
    return frame([_flat(row) for row in answer(["plan", on.path, *arguments(given)])["choices"]])


@lists(PartitionOptions)
def partition(data: Any, parts: int, out: str | os.PathLike[str] | None = None, method: str | Sequence[str] = "multilevel",
              **options: Unpack[PartitionOptions]) -> Any:
    """Cuts a graph into parts with one or several methods, and returns a row for each: edge cut, volume, balance. The
    parts of one are written to the folder out, which train takes."""
    on = dataset(data)
    rows = []
    for one in [method] if isinstance(method, str) else method:
        given: dict[str, Any] = {"parts": parts, "method": one, "out": out, **options}
        rows.append(_flat(answer(["partition", on.path, *arguments(given)])))
    return frame(rows)


def _flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    """The numbers and words of an object, those of objects in it under both names."""
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and name not in ("spec", "detail"):
            out.update(_flat(value, before + name + "_"))
        elif value is None or isinstance(value, (bool, int, float, str)):
            out[before + name] = value
    return out
