"""Trains graph neural networks: the starling program, from Python.

    import starling
    run = starling.train(data, model="sage", workers=4, epochs=100)
    run.metrics, run.history, run.predict(data)

data is PyG's Data or HeteroData, a DGL graph, DataFrames, an edge_index beside x and y, or a folder. Options are those of
starling train --help-all, with _ for -; help(starling.train) lists them.
"""

from ._data import Dataset, dataset
from ._errors import Error, Failed, Mistake
from ._estimators import LinkPredictor, NodeClassifier
from ._load import load
from ._options import CompareOptions, PartitionOptions, PlanOptions, TrainOptions
from ._run import Run, Server
from ._train import Stream, compare, partition, plan, stream, train

__all__ = ["CompareOptions", "Dataset", "Error", "Failed", "LinkPredictor", "Mistake", "NodeClassifier",
           "PartitionOptions", "PlanOptions", "Run", "Server", "Stream", "TrainOptions", "compare", "dataset", "load",
           "partition", "plan", "stream", "train"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version
        return version("starling")
    raise AttributeError(f"module 'starling' has no attribute {name!r}")
