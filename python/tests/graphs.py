"""Graphs for the tests."""

import numpy as np


def blocks(vertices=300, classes=3, width=8, edges=1500, seed=0):
    """Edges mostly inside classes, features around a class's unit vector: edge_index, x, y."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, classes, vertices)
    pairs = rng.randint(0, vertices, (2, edges * 3))
    pairs = pairs[:, (y[pairs[0]] == y[pairs[1]]) & (pairs[0] != pairs[1])][:, :edges]
    x = (rng.randn(vertices, width) * 0.5 + np.eye(classes, width)[y]).astype(np.float32)
    return np.concatenate([pairs, pairs[::-1]], 1), x, y
