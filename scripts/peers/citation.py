#!/usr/bin/env python3
"""Draws a graph like those of citation benchmarks and writes it as a Starling dataset folder.

    scripts/peers/citation.py --like cora --seed 1 --out build/peers/data/citation-cora

Features are bags of words, ones in about as many columns as a paper of that benchmark has words: a share of them is
drawn from the words of the paper's class, the rest from all words by Zipf's law; there are fewer different words than
in the benchmark. A paper cites earlier ones, those of its class more often and the cited more often, and edges go both
ways. The split is the benchmarks': 20 vertices per class to train on, 500 to validate, 1,000 to test. The same seed
gives the same graph. Needs numpy only.
"""

import argparse

import numpy as np

import folder

# Vertices, citations per paper, classes, columns, words per paper, share of words and of citations of the own class.
SHAPES = {
    "cora": (2700, 2, 7, 700, 18, 0.26, 0.81),
    "citeseer": (3000, 1.4, 6, 1000, 32, 0.14, 0.74),
    "pubmed": (3000, 2.2, 3, 500, 50, 0.10, 0.80),
}


def bags(rng, labels, classes, columns, words, own):
    """Columns of every vertex: each class prefers a random quarter of them."""
    zipf = 1 / np.arange(10, columns + 10)
    common = rng.permutation(zipf / zipf.sum())
    topics = [np.where(rng.random(columns) < 0.25, common, 0) for _ in range(classes)]
    mixed = [own * t / t.sum() + (1 - own) * common for t in topics]
    return [np.unique(rng.choice(columns, max(1, rng.poisson(words)), p=mixed[c])) for c in labels]


def citations(rng, labels, per_paper, own):
    """Pairs of papers; who was cited before is drawn as often again."""
    classes = labels.max() + 1
    everyone, by_class = [0], [[v for v in [0] if labels[v] == c] for c in range(classes)]
    pairs = []
    for v in range(1, len(labels)):
        for _ in range(max(1, rng.poisson(per_paper))):
            urn = by_class[labels[v]] if rng.random() < own else everyone
            if urn:
                to = urn[rng.integers(len(urn))]
                pairs.append((v, to))
                everyone.append(to)
                by_class[labels[to]].append(to)
        everyone.append(v)
        by_class[labels[v]].append(v)
    return np.array(pairs, np.int64)


def split(rng, labels):
    order = rng.permutation(len(labels))
    train = np.concatenate([order[labels[order] == c][:20] for c in range(labels.max() + 1)])
    rest = order[~np.isin(order, train)]
    return {k: np.sort(v).astype(np.uint32) for k, v in (("train", train), ("val", rest[:500]), ("test", rest[500:1500]))}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, metavar="DIR")
    p.add_argument("--like", choices=SHAPES, default="cora")
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    nodes, per_paper, classes, columns, words, own_words, own = SHAPES[args.like]
    rng = np.random.default_rng(args.seed)
    labels = rng.choice(classes, nodes, p=rng.dirichlet(np.full(classes, 8))).astype(np.int32)
    rows = bags(rng, labels, classes, columns, words, own_words)
    source, target = citations(rng, labels, per_paper, own).T
    indptr, indices = folder.in_edges(nodes, np.concatenate([source, target]), np.concatenate([target, source]))
    columns_of = np.concatenate(rows).astype(np.uint32)
    arrays = {"indptr": indptr, "indices": indices, "labels": labels,
              "features_indptr": np.cumsum([0] + [len(r) for r in rows], dtype=np.int64), "features_indices": columns_of,
              "features_values": np.ones(len(columns_of), np.float32), **split(rng, labels)}
    folder.write(args.out, f"{args.like}-like", "scripts/peers/citation.py", [f"drawn with seed {args.seed}"], arrays,
                 "sparse", columns, classes)
    print(f"{args.out}: {nodes} vertices, {len(indices)} edges, {columns} features, {classes} classes")


if __name__ == "__main__":
    main()
