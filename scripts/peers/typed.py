#!/usr/bin/env python3
"""Times full-graph training epochs of PyG's typed models on a typed Starling dataset folder.

    build/peers/pyg/bin/python scripts/peers/typed.py --data DIR --model rgcn --json

The model is ours: a linear map per type with features, a learnt row for every vertex without, then layers over
relations. Forms:
  conv    PyG's layers as they are: RGCNConv over all edges with their types, HeteroConv of SAGEConv or GATConv, HGTConv
  cached  one product per relation with PyG's EdgeIndex, 32-bit ids and its transpose cached (rgcn and hsage)
An epoch is forward, cross-entropy on the training rows, backward and the Adam step. Memory is the peak of the process,
or of the GPU.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import sys
import time

import numpy as np


class Typed:
    """A typed folder: vertices of a type are consecutive."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        meta = json.loads((self.path / "meta.json").read_text())
        schema = meta.get("schema")
        if schema is None:
            sys.exit(f"{path}: this graph has no types; generate one with starling generate typed")
        self.types = [t["name"] for t in schema["types"]]
        counts = [t["count"] for t in schema["types"]]
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.relations = [(r["source"], r["name"], r["target"]) for r in schema["relations"]]
        self.target = next(k for k in range(len(self.types)) if (self.path / f"labels_{k}.npy").exists())
        self.labels = np.load(self.path / f"labels_{self.target}.npy").astype(np.int64)
        self.train = np.load(self.path / f"train_{self.target}.npy").astype(np.int64)
        self.classes = int(self.labels.max()) + 1

    def features(self, k):
        path = self.path / f"features_{k}.npy"
        return np.load(path) if path.exists() else None

    def edges(self):
        """Source, target and relation of every edge."""
        indptr = np.load(self.path / "indptr.npy")
        source = np.load(self.path / "indices.npy").astype(np.int64)
        target = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
        return source, target, np.load(self.path / "relations.npy").astype(np.int64)

    def by_relation(self):
        source, target, relation = self.edges()
        for r, (s, _, t) in enumerate(self.relations):
            at = np.nonzero(relation == r)[0]
            yield source[at] - self.first[s], target[at] - self.first[t]


def build(args, data):
    import torch
    import torch.nn.functional as F
    from torch_geometric import EdgeIndex
    from torch_geometric.nn import GATConv, HeteroConv, HGTConv, RGCNConv, SAGEConv

    device = torch.device(args.device)
    names, kinds = data.types, [(data.types[s], n, data.types[t]) for s, n, t in data.relations]

    def edge_lists():
        return {k: torch.from_numpy(np.stack(e)).to(device) for k, e in zip(kinds, data.by_relation())}

    def cached():
        out = {}
        for k, (s, _, t), (source, target) in zip(kinds, data.relations, data.by_relation()):
            order = np.argsort(target, kind="stable")
            rows, cols = data.first[t + 1] - data.first[t], data.first[s + 1] - data.first[s]
            index = torch.from_numpy(np.stack([target[order], source[order]])).int().to(device)
            e = EdgeIndex(index, sparse_size=(int(rows), int(cols)), sort_order="row").fill_cache_()
            degree = torch.from_numpy(np.bincount(target, minlength=rows)).clamp(min=1).to(device)
            out[k] = e, (1 / degree).float()[index[0].long()]
        return out

    class Cached(torch.nn.Module):
        """Sum over relations of mean · W_r, and the vertex's own row: rgcn's for all types, hsage's by relation."""

        def __init__(self, wide, out, graph):
            super().__init__()
            self.graph = graph
            self.lin = torch.nn.ModuleDict({"__".join(k): torch.nn.Linear(wide, out, bias=False) for k in kinds})
            own = ["all"] if args.model == "rgcn" else ["__".join(k) for k in kinds]
            self.root = torch.nn.ModuleDict({k: torch.nn.Linear(wide, out) for k in own})

        def forward(self, x):
            y = {k: self.root["all"](v) for k, v in x.items()} if args.model == "rgcn" else {}
            for k in kinds:
                edges, weight = self.graph[k]
                h = self.lin["__".join(k)](edges.matmul(x[k[0]], input_value=weight))
                if args.model != "rgcn":
                    h = h + self.root["__".join(k)](x[k[2]])
                y[k[2]] = y[k[2]] + h if k[2] in y else h
            return y

    class All(torch.nn.Module):
        """RGCNConv over the vertices of all types."""

        def __init__(self, wide, out, edges, kind):
            super().__init__()
            self.conv, self.edges, self.kind = RGCNConv(wide, out, len(kinds)), edges, kind

        def forward(self, x):
            y = self.conv(torch.cat([x[k] for k in names]), self.edges, self.kind)
            return dict(zip(names, y.split([len(x[k]) for k in names])))

    class Hetero(torch.nn.Module):
        def __init__(self, conv, edges):
            super().__init__()
            self.conv, self.edges = HeteroConv({k: conv() for k in kinds}, aggr="sum"), edges

        def forward(self, x):
            return self.conv(x, self.edges)

    class Transformer(torch.nn.Module):
        def __init__(self, edges):
            super().__init__()
            self.conv, self.edges = HGTConv(args.hidden, args.hidden, (names, kinds), args.heads), edges

        def forward(self, x):
            return self.conv(x, self.edges)

    def layers():
        widths = [args.hidden] * args.layers + [data.classes]
        if args.model == "hgt":
            edges = edge_lists()
            return [Transformer(edges) for _ in range(args.layers)]
        if args.model == "rgat":
            edges = edge_lists()
            gat = lambda: GATConv(args.hidden, args.hidden // args.heads, heads=args.heads, add_self_loops=False)
            return [Hetero(gat, edges) for _ in range(args.layers)]
        if args.form == "cached":
            graph = cached()
            return [Cached(a, b, graph) for a, b in zip(widths, widths[1:])]
        if args.model == "hsage":
            edges = edge_lists()
            return [Hetero(lambda a=a, b=b: SAGEConv(a, b), edges) for a, b in zip(widths, widths[1:])]
        source, target, kind = (torch.from_numpy(a).to(device) for a in data.edges())
        edges = torch.stack([source, target])
        return [All(a, b, edges, kind) for a, b in zip(widths, widths[1:])]

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x, self.lins, self.learnt = {}, torch.nn.ModuleDict(), torch.nn.ParameterDict()
            for k, name in enumerate(names):
                f = data.features(k)
                if f is None:
                    rows = int(data.first[k + 1] - data.first[k])
                    self.learnt[name] = torch.nn.Parameter(torch.empty(rows, args.hidden).uniform_(-0.1, 0.1))
                else:
                    self.x[name] = torch.from_numpy(f).to(device)
                    self.lins[name] = torch.nn.Linear(f.shape[1], args.hidden)
            self.convs = torch.nn.ModuleList(layers())
            self.lin = torch.nn.Linear(args.hidden, data.classes) if args.model in ("rgat", "hgt") else None

        def forward(self):
            x = {k: self.lins[k](self.x[k]) if k in self.x else self.learnt[k] for k in names}
            act = {"rgat": F.elu, "hgt": torch.nn.Identity()}.get(args.model, F.relu)
            for i, conv in enumerate(self.convs):
                x = conv(x)
                if i < args.layers - 1:
                    x = {k: F.dropout(act(v), args.dropout, self.training) for k, v in x.items()}
            y = x[names[data.target]]
            return self.lin(y) if self.lin else y

    torch.manual_seed(args.seed)
    return Net().to(device)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, metavar="DIR", help="a typed Starling dataset folder")
    p.add_argument("--model", choices=["rgcn", "rgat", "hsage", "hgt"], default="rgcn")
    p.add_argument("--form", choices=["conv", "cached"], default="cached", help="rgat and hgt have conv alone")
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--heads", type=int, default=4, help="of rgat and hgt")
    p.add_argument("--dropout", type=float, default=0.5)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--epochs", type=int, default=3, help="counted ones, after one to warm up")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    args = p.parse_args()
    want = {"OMP_NUM_THREADS": str(args.threads), "MKL_NUM_THREADS": str(args.threads),
            "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # read by the loader, hence the fresh start
    if any(os.environ.get(k) != v for k, v in want.items()):
        os.environ.update(want)
        os.execv(sys.executable, [sys.executable] + sys.argv)
    data = Typed(args.data)
    # A script of this folder is named as one of torch's own modules.
    sys.path[:] = [d for d in sys.path if pathlib.Path(d or ".").resolve() != pathlib.Path(__file__).resolve().parent]
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(args.threads)
    net = build(args, data)
    labels, rows = (torch.from_numpy(a).to(args.device) for a in (data.labels[data.train], data.train))
    adam = torch.optim.Adam(net.parameters(), lr=args.lr)
    seconds, losses = [], []
    for _ in range(1 + args.epochs):
        start = time.perf_counter()
        adam.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net()[rows], labels)
        loss.backward()
        adam.step()
        losses.append(loss.item())  # waits for the GPU too
        seconds.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated() if args.device == "cuda" else \
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result = {"model": args.model, "form": args.form, "median_epoch_seconds": statistics.median(seconds[1:]),
              "epoch_seconds": seconds[1:], "loss": losses, "peak_bytes": peak, "torch": torch.__version__}
    if args.json:
        print(json.dumps(result))
        return
    print(f"pyg {args.model} ({args.form}): {result['median_epoch_seconds']:.3f} s an epoch, "
          f"peak {peak / 2**30:.2f} GiB, loss {losses[0]:.4f} -> {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
