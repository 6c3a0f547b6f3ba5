"""The loss and the metric of a folder's labels, in torch: what train.py trains and compares by."""

import sys


def of(data):
    """The task of a dataset folder."""
    kinds = {"single-label": Classify, "multi-label": MultiLabel, "regression": Regression}
    kind = data.meta["task"]
    if kind not in kinds:
        sys.exit(f"{data.path}: task {kind!r} in meta.json; the peer scripts know {', '.join(kinds)}")
    return kinds[kind]()


class Classify:
    metric = "accuracy"

    def labels(self, array):
        import torch
        return torch.from_numpy(array.astype("int64"))

    def loss(self, logits, labels):
        import torch.nn.functional as F
        return F.cross_entropy(logits, labels)

    def measure(self, logits, labels):
        return (logits.argmax(1) == labels).float().mean().item()


class MultiLabel:
    metric = "micro_f1"

    def labels(self, array):
        import torch
        return torch.from_numpy((array == 1).astype("float32"))

    def loss(self, logits, labels):
        import torch.nn.functional as F
        return F.binary_cross_entropy_with_logits(logits, labels)

    def measure(self, logits, labels):
        said, known = logits > 0, labels > 0.5
        return (2 * (said & known).sum() / (said.sum() + known.sum()).clamp(min=1)).item()


class Regression:
    metric = "r2"

    def labels(self, array):
        import torch
        return torch.from_numpy(array.astype("float32"))

    def loss(self, logits, labels):
        import torch.nn.functional as F
        return F.mse_loss(logits, labels)

    def measure(self, logits, labels):
        y = labels.double()
        return (1 - ((y - logits) ** 2).sum() / ((y - y.mean(0)) ** 2).sum()).item()
