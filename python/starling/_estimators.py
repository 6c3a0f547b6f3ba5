"""Models by the rules of scikit-learn: settings in the constructor, fit returns the model."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ._data import as_array
from ._errors import mistake
from ._help import lists
from ._options import TrainOptions
from ._run import Run
from ._train import _OF_DATA, train

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Estimator:
    _more: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, **options: Unpack[TrainOptions]) -> None:
        self._options: dict[str, Any] = dict(options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._options.items())})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags
        kind = getattr(self, "_estimator_type", None)
        return Tags(kind, TargetTags(required=False), classifier_tags=ClassifierTags() if kind else None,
                    input_tags=InputTags(two_d_array=False))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self._options)

    def set_params(self, **options: Any) -> Any:
        wrong = [k for k in options if k not in TrainOptions.__annotations__ and k not in _OF_DATA]
        if wrong:
            raise mistake("set_params", f"{wrong[0]!r}", "options of starling.train")
        self._options.update(options)
        return self

    def _fit(self, data: Any, x: Any, y: Any, more: dict[str, Any]) -> None:
        self.run_: Run = train(data, x, y, **{**self._more, **self._options, **more})

    @property
    def _run(self) -> Run:
        if not hasattr(self, "run_"):
            raise mistake(type(self).__name__, "a model that is not fitted", "fit(data) before")
        return self.run_


@lists(TrainOptions)
class NodeClassifier(_Estimator):
    """Learns a class, or several, or numbers, of every vertex. fit(data), then predict(data)."""

    _estimator_type = "classifier"

    def fit(self, data: Any, x: Any = None, y: Any = None, **more: Any) -> NodeClassifier:
        self._fit(data, x, y, more)
        assert self.run_.data is not None
        meta = self.run_.data.meta
        self.classes_ = np.array(meta["class_names"]) if meta.get("class_names") else np.arange(meta.get("classes") or 0)
        return self

    def predict(self, data: Any = None, x: Any = None, **more: Any) -> Any:
        """The class of every vertex."""
        return self._run.predict(data, x=x, **more) if x is not None else self._run.predict(data, **more)

    def predict_proba(self, data: Any = None, **more: Any) -> Any:
        """The probability of each of classes_, a row per vertex."""
        return self._run.probabilities(data, **more)

    def score(self, data: Any = None, y: Any = None) -> float:
        """The share of labels that are right, of all vertices that have one."""
        if y is None:
            y = getattr(data, "y", None)
        if y is None:
            raise mistake("y", "none", "labels to compare with")
        want = as_array(y).ravel()
        got = as_array(self.predict(data)).ravel()
        known = np.array([v is not None and v == v and v != -1 for v in want])
        return float((got[known] == want[known]).mean())


@lists(TrainOptions)
class LinkPredictor(_Estimator):
    """Learns which pairs of vertices have an edge. fit(data), then predict(pairs)."""

    _more = MappingProxyType({"task": "link"})

    def fit(self, data: Any, x: Any = None, y: Any = None, **more: Any) -> LinkPredictor:
        self._fit(data, x, y, more)
        return self

    def predict(self, pairs: Any, data: Any = None) -> Any:
        """How likely each pair is an edge, from 0 to 1."""
        return self._run.scores(pairs, data)

    def score(self, *_: Any) -> float:
        """The area under the curve of edges that were held out."""
        return float(self._run.metrics["test_auc"])
