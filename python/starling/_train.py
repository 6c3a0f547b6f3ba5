"""Training."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from ._data import dataset
from ._errors import Failed
from ._folder import Temporary
from ._process import Child, arguments
from ._run import Run

Epoch = dict[str, Any]


def train(data: Any, x: Any = None, y: Any = None, *, on_epoch: Callable[[Epoch], object] | None = None,
          out: str | os.PathLike[str] | None = None, verbose: bool = False, **options: Any) -> Run:
    """Trains a model, as starling train does, and returns the run.

    data is a folder, PyG's Data, or an edge_index beside x and y. options are the program's: model="sage",
    weight_decay=5e-4. on_epoch is called with each epoch's figures; what is False ends training as soon as the
    epoch under way is done.
    """
    given = {k: options.pop(k) for k in ("train", "val", "test", "edge_weight", "edge_attr", "name") if k in options}
    on = dataset(data, x, y, **given)
    room = Temporary() if out is None else None
    folder = os.path.join(room.path, "model") if room else os.fspath(out or "")
    args = ["train", on.path, "--out", folder, "--events", "/dev/stdout", "--quiet", *arguments(options)]
    report, stopped = None, on_epoch is None
    with Child(args, verbose) as child:
        for line in child.lines():
            event = json.loads(line)
            if event["event"] == "epoch" and on_epoch is not None and not stopped:
                if on_epoch(event) is False:
                    stopped = True
                    child.interrupt()
            elif event["event"] == "result":
                report = event["report"]
        child.check(interrupted_is_fine=True)
    if report is None:
        raise Failed("starling ended without a result", list(child.log))
    return Run(folder, report, on, room, list(child.log))
