#!/usr/bin/env python3
"""Times mini-batch training of DGL's typed models on a typed Starling dataset folder.

    build/peers/dgl/bin/python scripts/peers/typed_mini.py --data DIR --model rgcn --json

The model is ours: a linear map per type with features, a learnt row for every vertex without (an Embedding with sparse
gradients and SparseAdam, which is DGL's advice), then layers over relations: means of neighbours times a weight per
relation and the vertex's own row (rgcn: once, hsage: per relation), or attention per relation (rgat). Batches come from
DGL's DataLoader with NeighborSampler; all of a batch's time counts: drawing, gathering rows, forward, backward, Adam.
"""

import argparse
import json
import os
import pathlib
import resource
import sys
import time
import warnings

os.environ.setdefault("DGLBACKEND", "pytorch")
warnings.filterwarnings("ignore")

import typed


def loader(args, data):
    """Yields (inputs, seeds, blocks), for ever."""
    import dgl
    import torch
    names = data.types
    kinds = [(names[s], n, names[t]) for s, n, t in data.relations]
    edges = {k: (torch.from_numpy(s), torch.from_numpy(t)) for k, (s, t) in zip(kinds, data.by_relation())}
    counts = {n: int(data.first[k + 1] - data.first[k]) for k, n in enumerate(names)}
    graph = dgl.heterograph(edges, num_nodes_dict=counts).formats("csc")
    fanouts = [int(f) for f in args.fanout.split(",")]
    sampler = dgl.dataloading.NeighborSampler(fanouts[::-1])  # DGL lists the first layer first
    seeds = {names[data.target]: torch.from_numpy(data.train)}
    batches = dgl.dataloading.DataLoader(graph, seeds, sampler, batch_size=args.batch_size, shuffle=True,
                                         num_workers=args.workers)
    while True:
        yield from batches


def build(args, data):
    import torch
    import torch.nn.functional as F
    from dgl.nn import GATConv, GraphConv, HeteroGraphConv, SAGEConv
    names = data.types
    relations = [n for _, n, _ in data.relations]
    layers = len(args.fanout.split(","))
    widths = [args.hidden] * layers + [args.hidden if args.model == "rgat" else data.classes]

    def conv(a, b):
        if args.model == "rgcn":
            return GraphConv(a, b, norm="right", bias=False, allow_zero_in_degree=True)
        if args.model == "hsage":
            return SAGEConv(a, b, "mean")
        return GATConv(a, b // args.heads, args.heads, allow_zero_in_degree=True)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x, self.lins, self.rows = {}, torch.nn.ModuleDict(), torch.nn.ModuleDict()
            for k, name in enumerate(names):
                f = data.features(k)
                if f is None:
                    self.rows[name] = torch.nn.Embedding(int(data.first[k + 1] - data.first[k]), args.hidden, sparse=True)
                else:
                    self.x[name] = torch.from_numpy(f)
                    self.lins[name] = torch.nn.Linear(f.shape[1], args.hidden)
            pairs = list(zip(widths, widths[1:]))
            self.convs = torch.nn.ModuleList(
                HeteroGraphConv({r: conv(a, b) for r in relations}, aggregate="sum") for a, b in pairs)
            self.own = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in pairs) if args.model == "rgcn" else None
            self.last = torch.nn.Linear(args.hidden, data.classes) if args.model == "rgat" else None

        def forward(self, blocks):
            ids = blocks[0].srcdata["_ID"]
            x = {k: self.rows[k](v) if k in self.rows else self.lins[k](self.x[k][v]) for k, v in ids.items() if len(v)}
            act = F.elu if args.model == "rgat" else F.relu
            for i, (block, layer) in enumerate(zip(blocks, self.convs)):
                y = layer(block, x)
                if args.model == "rgat":
                    y = {k: v.flatten(1) for k, v in y.items()}
                if self.own is not None:
                    for k, v in x.items():
                        rows = block.num_dst_nodes(k)
                        if rows:
                            own = self.own[i](v[:rows])
                            y[k] = y[k] + own if k in y else own
                x = y
                if i < layers - 1:
                    x = {k: F.dropout(act(v), args.dropout, self.training) for k, v in x.items()}
            y = x[names[data.target]]
            return self.last(y) if self.last else y

    torch.manual_seed(args.seed)
    return Net()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, metavar="DIR", help="a typed Starling dataset folder")
    p.add_argument("--model", choices=["rgcn", "rgat", "hsage"], default="rgcn")
    p.add_argument("--fanout", default="15,10", help="of every relation, from the seed vertices on")
    p.add_argument("--batch-size", type=int, default=1024)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--heads", type=int, default=4, help="of rgat")
    p.add_argument("--dropout", type=float, default=0.5)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--batches", type=int, default=20, help="counted, after three to warm up")
    p.add_argument("--workers", type=int, default=0, help="processes of the loader")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    args = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    data = typed.Typed(args.data)
    # A script of this folder is named as one of torch's own modules.
    sys.path[:] = [d for d in sys.path if pathlib.Path(d or ".").resolve() != pathlib.Path(__file__).resolve().parent]
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(args.threads)
    net, labels = build(args, data), torch.from_numpy(data.labels)
    dense = [w for n, w in net.named_parameters() if not n.startswith("rows.")]
    rows = [w for n, w in net.named_parameters() if n.startswith("rows.")]
    steps = [torch.optim.Adam(dense, lr=args.lr)] + ([torch.optim.SparseAdam(rows, lr=args.lr)] if rows else [])
    warm, losses, edges, start = 3, [], 0, 0.0
    for i, (_, seeds, blocks) in zip(range(warm + args.batches), loader(args, data)):
        if i == warm:
            start, edges = time.perf_counter(), 0
        for s in steps:
            s.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(blocks), labels[seeds[data.types[data.target]]])
        loss.backward()
        for s in steps:
            s.step()
        losses.append(loss.item())
        edges += sum(b.num_edges() for b in blocks)
    seconds = time.perf_counter() - start
    result = {"model": args.model, "batches_per_second": args.batches / seconds, "edges_per_batch": edges / args.batches,
              "loss": losses, "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
              "torch": torch.__version__}
    print(json.dumps(result) if args.json else f"dgl {args.model}: {result['batches_per_second']:.2f} batches/s, "
          f"peak {result['peak_bytes'] / 2**30:.2f} GiB, loss {losses[0]:.4f} -> {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
