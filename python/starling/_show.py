"""What a terminal or a notebook shows."""

from __future__ import annotations

import functools
import html
import sys
from collections.abc import Mapping, Sequence
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


def chart(history: Mapping[str, Sequence[float]], metric: str) -> str:
    """Curves of the loss and of the metric, as SVG."""
    drawn = [_curve("loss", [("", history["loss"], "#3b6ea5")])]
    of = [(split, history[name], color) for split, name, color in (
        ("train", f"train_{metric}", "#a0a0a0"), ("val", f"val_{metric}", "#c8553d"), ("test", f"test_{metric}", "#588157"))
        if name in history]
    if of:
        drawn.append(_curve(metric.replace("_", " "), of))
    return f'<div style="display:flex;flex-wrap:wrap">{"".join(drawn)}</div>'


def _curve(title: str, lines: list[tuple[str, Sequence[float], str]]) -> str:
    points = [v for _, values, _ in lines for v in values if v == v]
    if not points:
        return ""
    low, high, n = min(points), max(points), max(len(values) for _, values, _ in lines)
    right, down = 224 / max(n - 1, 1), 96 / ((high - low) or 1)
    parts = [f'<svg width="290" height="136" viewBox="0 0 290 136" role="img" aria-label="{html.escape(title)} over epochs" '
             'style="background:#fff;font:11px sans-serif" xmlns="http://www.w3.org/2000/svg">',
             '<path d="M46 18V114H270" fill="none" stroke="#bbb"/>',
             f'<text x="46" y="12" fill="#333">{html.escape(title)}</text>',
             f'<text x="42" y="24" text-anchor="end" fill="#666">{high:.3g}</text>',
             f'<text x="42" y="114" text-anchor="end" fill="#666">{low:.3g}</text>',
             f'<text x="46" y="128" fill="#666">1</text><text x="270" y="128" text-anchor="end" fill="#666">epoch {n}</text>']
    end = 270
    for name, values, color in reversed(lines):
        path = " ".join(f"{46 + right * i:.1f},{114 - down * (v - low):.1f}" for i, v in enumerate(values) if v == v)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        if name:
            parts.append(f'<text x="{end}" y="12" text-anchor="end" fill="{color}">{name}</text>')
            end -= 7 * len(name) + 6
    return "".join([*parts, "</svg>"])
