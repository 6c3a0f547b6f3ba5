"""Trains graph neural networks: the starling program, from Python.

    import starling
    run = starling.train(data, model="sage", workers=4, epochs=100)
    run.metrics, run.history, run.predict(data)
"""

from ._data import Dataset, dataset
from ._errors import Error, Failed, Mistake
from ._run import Run
from ._train import train

__all__ = ["Dataset", "Error", "Failed", "Mistake", "Run", "dataset", "train"]
