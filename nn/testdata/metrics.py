"""Writes metrics.json: scikit-learn's metrics of random predictions. Needs numpy and scikit-learn 1.9.1."""
import json
import sys

import numpy as np
from sklearn import metrics as m

rng = np.random.default_rng(7)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def single(n, shares, digits):
    classes = len(shares)
    y = rng.choice(classes, size=n, p=shares)
    x = np.round(rng.normal(size=(n, classes)) + 1.2 * np.eye(classes)[y], digits)  # ties
    p, said = softmax(x), np.asarray(x).argmax(axis=1)
    out = {"logits": x.tolist(), "labels": y.tolist(), "metrics": {
        "accuracy": m.accuracy_score(y, said), "balanced_accuracy": m.balanced_accuracy_score(y, said),
        "macro_f1": m.f1_score(y, said, average="macro"), "micro_f1": m.f1_score(y, said, average="micro"),
        "mcc": m.matthews_corrcoef(y, said)}}
    if classes == 2:
        out["metrics"]["auc"] = m.roc_auc_score(y, x[:, 1] - x[:, 0])
        out["metrics"]["average_precision"] = m.average_precision_score(y, x[:, 1] - x[:, 0])
    else:
        out["metrics"]["auc"] = m.roc_auc_score(y, p, multi_class="ovr", average="macro")
        out["metrics"]["average_precision"] = m.average_precision_score(np.eye(classes)[y], p, average="macro")
    report = m.precision_recall_fscore_support(y, said, labels=range(classes), zero_division=0)
    out["classes"] = np.array(report).T.tolist()
    out["confusion"] = m.confusion_matrix(y, said, labels=range(classes)).tolist()
    return out


def several(n, classes):
    y = (rng.random((n, classes)) < 0.3).astype(int)
    x = np.round(rng.normal(size=(n, classes)) - 0.7 + 1.4 * y, 1)
    said = (x > 0).astype(int)
    return {"logits": x.tolist(), "marks": y.tolist(), "metrics": {
        "micro_f1": m.f1_score(y, said, average="micro"), "macro_f1": m.f1_score(y, said, average="macro"),
        "auc": m.roc_auc_score(y, x, average="macro"),
        "average_precision": m.average_precision_score(y, x, average="macro")}}


def numbers(n, targets):
    y = np.round(rng.normal(size=(n, targets)), 2)
    x = np.round(y + 0.4 * rng.normal(size=(n, targets)), 2)
    return {"outputs": x.tolist(), "values": y.tolist(), "metrics": {
        "rmse": m.root_mean_squared_error(y, x), "mae": m.mean_absolute_error(y, x),
        "mse": m.mean_squared_error(y, x), "r2": m.r2_score(y, x, multioutput="variance_weighted")}}


json.dump({"single": [single(120, [0.9, 0.1], 1), single(90, [0.5, 0.3, 0.15, 0.05], 2), single(60, [0.2, 0.8], 0)],
           "several": [several(80, 5)], "numbers": [numbers(50, 1), numbers(50, 3)]}, sys.stdout)
print()
