#!/usr/bin/env python3
"""Trains PyG or DGL to convergence on a Starling dataset folder, over several seeds.

    build/peers/pyg/bin/python scripts/peers/train.py --data DIR --model gcn --layers 2 --hidden 16 \\
        --input-dropout .5 --weight-decay 5e-4 --decay-first-only --row-normalize --epochs 200 --seeds 10

Prints one JSON object: mean and standard deviation of the metric on the test vertices at the epoch with
the best on the validation vertices (the first of equals), and at the last epoch. The metric is that of the
labels: accuracy, micro-averaged F1, or R². For comparing those, not times.
"""

import json
import statistics
import sys
import warnings

import spec
import tasks


def main():
    p = spec.parser(__doc__)
    p.add_argument("--weight-decay", type=float, default=0.0, help="L2, as in torch.optim.Adam")
    p.add_argument("--decay-first-only", action="store_true", help="weight decay on the first layer alone")
    p.add_argument("--epochs", type=int, default=200)
    p.add_argument("--patience", type=int, default=0, help="stop after this many epochs without a better validation accuracy")
    p.add_argument("--seeds", type=int, default=5, help="runs with seeds 0..N-1")
    args = p.parse_args()
    spec.prepare(args)
    warnings.filterwarnings("ignore")
    framework, data = spec.load(args)
    import torch
    x, _, splits = spec.tensors(data, args)
    task = tasks.of(data)
    labels = task.labels(data.labels)
    runs = []
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        runs.append(train(framework.Model(data, args), args, task, x, labels, splits))
        if not args.json:
            print(f"seed {seed}: {runs[-1]}", file=sys.stderr)
    print(json.dumps(summary(framework, data, args, task, runs)))


def train(net, args, task, x, labels, splits):
    import torch
    rows, adam = splits["train"], optimiser(net, args)
    best = {"val": float("-inf")}
    for epoch in range(args.epochs):
        net.train()
        adam.zero_grad()
        loss = task.loss(net(x)[rows], labels[rows])
        loss.backward()
        adam.step()
        net.eval()
        with torch.no_grad():
            logits = net(x)
        val, test = (task.measure(logits[splits[k]], labels[splits[k]]) for k in ("val", "test"))
        if val > best["val"]:
            best = {"val": val, "test": test, "epoch": epoch}
        elif args.patience and epoch - best["epoch"] >= args.patience:
            break
    return {"best_val": best["val"], "test_at_best": best["test"], "best_epoch": best["epoch"],
            "test_final": test, "val_final": val, "loss_final": loss.item(), "epochs": epoch + 1}


def optimiser(net, args):
    import torch
    first, rest = list(net.convs[0].parameters()), [q for c in net.convs[1:] for q in c.parameters()]
    return torch.optim.Adam([
        {"params": first, "weight_decay": args.weight_decay},
        {"params": rest, "weight_decay": 0.0 if args.decay_first_only else args.weight_decay},
    ], lr=args.lr)


def summary(framework, data, args, task, runs):
    result = {"framework": args.framework, "versions": framework.versions(), "data": data.path.name, "metric": task.metric,
              "settings": {k: v for k, v in vars(args).items() if k not in ("data", "json", "framework")}}
    for key in ("test_at_best", "test_final"):
        values = [r[key] for r in runs]
        result[key] = {"mean": statistics.mean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}
    result["runs"] = runs
    return result


if __name__ == "__main__":
    main()
