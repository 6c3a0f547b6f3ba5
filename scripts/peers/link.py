#!/usr/bin/env python3
"""Trains PyG for link prediction on a Starling dataset folder, with the edges that a Starling run held out.

    build/peers/pyg/bin/python scripts/peers/link.py --data DIR --run RUN --model gcn --decoder dot \\
        --layers 2 --hidden 64 --epochs 100 --seed 0

RUN is the folder that `starling train DIR --task link --out RUN` wrote: val_edges.npy, val_negatives.npy,
test_edges.npy and test_negatives.npy. Messages pass over the other edges alone. Each step is over the whole
graph and all training edges, each against one vertex drawn uniformly in place of one of its ends, not linked
with the other. Prints one JSON object: the area under the curve of the test edges against their negatives, at the
epoch with the best one of the validation edges.
"""

import argparse
import json
import pathlib
import warnings

import numpy as np

from folder import Folder


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--run", required=True)
    p.add_argument("--model", choices=["gcn", "sage"], default="gcn")
    p.add_argument("--decoder", choices=["dot", "mlp"], default="dot")
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--dropout", type=float, default=0.0)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--eval-every", type=int, default=1)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    warnings.filterwarnings("ignore")
    print(json.dumps(train(args)))


def undirected(u, v, nodes):
    """Each pair as one number, whichever way round it is."""
    return np.minimum(u, v) * nodes + np.maximum(u, v)


def held_out(run):
    names = ("val_edges", "val_negatives", "test_edges", "test_negatives")
    return {k: np.load(pathlib.Path(run) / f"{k}.npy") for k in names}


def train(args):
    import torch
    torch.manual_seed(args.seed)
    data, held = Folder(args.data), held_out(args.run)
    n = data.nodes
    source, target = data.sources(), data.destinations()
    keys = undirected(source, target, n)
    out = np.concatenate([undirected(e[:, 0], e[:, 1], n) for e in (held["val_edges"], held["test_edges"])])
    kept = ~np.isin(keys, out)
    edges = torch.from_numpy(np.stack([source[kept], target[kept]]))
    pairs = np.unique(keys[kept & (source != target)])
    positive = torch.from_numpy(np.stack([pairs // n, pairs % n]))
    linked = torch.from_numpy(np.unique(np.concatenate([pairs, np.arange(n) * (n + 1)])))
    x = torch.from_numpy(np.ascontiguousarray(data.features()))
    net = Net(data.width, args)
    adam = torch.optim.Adam(net.parameters(), lr=args.lr)
    fixed = {k: torch.from_numpy(e.T.copy()) for k, e in held.items()}
    best = {"val": -1.0}
    for epoch in range(args.epochs):
        net.train()
        adam.zero_grad()
        loss = net.loss(net(x, edges), positive, negatives(positive, linked, n))
        loss.backward()
        adam.step()
        if (epoch + 1) % args.eval_every:
            continue
        net.eval()
        with torch.no_grad():
            z = net(x, edges)
            val, test = (auc(net.score(z, fixed[f"{k}_edges"]), net.score(z, fixed[f"{k}_negatives"])) for k in ("val", "test"))
        if val > best["val"]:
            best = {"val": val, "auc": test, "epoch": epoch}
    return {"auc": best["auc"], "best_val": best["val"], "best_epoch": best["epoch"], "loss": loss.item(), "pairs": len(pairs)}


def negatives(positive, linked, n):
    """For every pair one end stays and the other is drawn anew, until it is no neighbour."""
    import torch
    turn = torch.rand(positive.shape[1]) < 0.5
    kept = torch.where(turn, positive[0], positive[1])
    other = torch.randint(n, kept.shape)
    for _ in range(16):
        key = torch.minimum(kept, other) * n + torch.maximum(kept, other)
        at = torch.searchsorted(linked, key).clamp(max=len(linked) - 1)
        bad = linked[at] == key
        if not bad.any():
            break
        other[bad] = torch.randint(n, (int(bad.sum()),))
    return torch.stack([kept, other])


def auc(positive, negative):
    """The chance that a positive scores higher than a negative, ties counting half."""
    import torch
    negative = torch.sort(negative).values
    below = torch.searchsorted(negative, positive)
    upto = torch.searchsorted(negative, positive, right=True)
    return float((below + upto).double().mean() / 2 / len(negative))


def Net(width, args):
    import torch
    import torch.nn.functional as F
    from torch_geometric.nn import GCNConv, SAGEConv

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layer = GCNConv if args.model == "gcn" else SAGEConv
            widths = [width] + [args.hidden] * args.layers
            self.convs = torch.nn.ModuleList(layer(a, b) for a, b in zip(widths, widths[1:]))
            self.decoder = None
            if args.decoder == "mlp":
                self.decoder = torch.nn.Sequential(torch.nn.Linear(args.hidden, args.hidden), torch.nn.ReLU(), torch.nn.Linear(args.hidden, 1))

        def forward(self, x, edges):
            for conv in self.convs[:-1]:
                x = F.dropout(conv(x, edges).relu(), args.dropout, self.training)
            return self.convs[-1](x, edges)

        def score(self, z, pairs):
            product = z[pairs[0]] * z[pairs[1]]
            return product.sum(1) if self.decoder is None else self.decoder(product)[:, 0]

        def loss(self, z, positive, negative):
            scores = torch.cat([self.score(z, positive), self.score(z, negative)])
            target = torch.zeros_like(scores)
            target[:positive.shape[1]] = 1
            return F.binary_cross_entropy_with_logits(scores, target)

    return Net()


if __name__ == "__main__":
    main()
