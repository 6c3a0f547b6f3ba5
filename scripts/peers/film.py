#!/usr/bin/env python3
"""Turns the film (Actor) graph from its Geom-GCN text files into a Starling dataset folder.

    scripts/peers/film.py --out build/peers/data/film

Reads geom/film_out1_graph_edges.txt and geom/film_out1_node_feature_label.txt below $STARLING_DATA (or
../shared/data beside the repository). As PyG's Actor does: edges stay directed (src -> dst), repeats are
dropped, loops are kept; a vertex's features are ones in the columns it lists. The split is 48/32/20
random with seed 0. Needs numpy only.
"""

import argparse
import os
import pathlib
import sys

import numpy as np

import folder

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def lines(path):
    if not path.exists():
        sys.exit(f"{path}: missing; set STARLING_DATA to the folder that holds geom/")
    for line in path.read_text().splitlines()[1:]:
        if line:
            yield line.split("\t")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, metavar="DIR")
    p.add_argument("--seed", type=int, default=0, help="of the split")
    p.add_argument("--symmetric", action="store_true", help="add the reverse of every edge")
    args = p.parse_args()
    data = pathlib.Path(os.environ.get("STARLING_DATA", ROOT.parent / "shared" / "data")) / "geom"

    rows = {int(v): (sorted({int(c) for c in cols.split(",")}), int(label))
            for v, cols, label in lines(data / "film_out1_node_feature_label.txt")}
    nodes = len(rows)
    if sorted(rows) != list(range(nodes)):
        sys.exit(f"{data}: vertex ids are not 0..{nodes - 1}")
    columns = [rows[v][0] for v in range(nodes)]
    labels = np.array([rows[v][1] for v in range(nodes)], np.int32)
    features_indptr = np.cumsum([0] + [len(c) for c in columns], dtype=np.int64)
    features_indices = np.concatenate(columns).astype(np.uint32)

    edges = np.array([(int(a), int(b)) for a, b in lines(data / "film_out1_graph_edges.txt")], np.int64)
    source, target = edges.T
    if args.symmetric:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    indptr, indices = folder.in_edges(nodes, source, target)

    arrays = {"indptr": indptr, "indices": indices, "labels": labels, "features_indptr": features_indptr,
              "features_indices": features_indices, "features_values": np.ones(len(features_indices), np.float32),
              **folder.random_split(nodes, (0.48, 0.32), args.seed)}
    notes = [f"split 48/32/20 at random, seed {args.seed}"]
    folder.write(args.out, "film", "geom text files", notes, arrays, "sparse", int(features_indices.max()) + 1,
                 int(labels.max()) + 1)
    print(f"{args.out}: {nodes} vertices, {len(indices)} edges, {int(features_indices.max()) + 1} features, "
          f"{int(labels.max()) + 1} classes")


if __name__ == "__main__":
    main()
