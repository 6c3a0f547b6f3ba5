"""What a terminal or a notebook shows."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import Any


def notebook() -> bool:
    """Tells if this is a kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Progress:
    """A bar of tqdm: on terminals and in notebooks where it is installed (None), never, or always."""

    def __init__(self, wanted: bool | None) -> None:
        self._bar: Any = None
        self._make: Any = None
        if wanted or (wanted is None and (sys.stderr.isatty() or notebook())):
            import warnings
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that ipywidgets would draw a nicer one
                    from tqdm.auto import tqdm
            except ImportError:
                return
            # notebooks show stderr as if it were an error
            self._make = functools.partial(tqdm, file=sys.stdout) if notebook() else tqdm

    def on(self, event: Mapping[str, Any]) -> None:
        """Follows the events of a run."""
        if event["event"] == "started" and self._make is not None and self._bar is None:
            self._bar = self._make(total=event["epochs"], initial=event["first_epoch"], unit="epoch",
                                   desc=f"{event['model']} on {event['dataset']}")
        elif event["event"] == "epoch" and self._bar is not None:
            figures = {"loss": f"{event['loss']:.4f}"} if event["loss"] is not None else {}
            if event.get("measured") and event.get("val") is not None:
                figures["val"] = f"{event['val']:.4f}"
            self._bar.set_postfix(figures, refresh=False)
            self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
