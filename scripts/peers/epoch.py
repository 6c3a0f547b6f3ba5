#!/usr/bin/env python3
"""Times full-graph training epochs of PyG or DGL on a Starling dataset folder.

    build/peers/pyg/bin/python scripts/peers/epoch.py --framework pyg --data DIR --model gcn --json

An epoch is forward, cross-entropy on the training rows, backward and the Adam step; evaluation is
not in it. Processor time is of all threads; where it is far below seconds times threads, other
programs were in the way and the seconds mean little. The first --warmup epochs are run but not counted. Peak memory is that of this whole
process up to the last training epoch, so run each measurement in its own process;
rss_before_data_bytes says how much of it the framework takes before it has seen any data.
"""

import json
import resource
import statistics
import time
import warnings

import spec


def peak_rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def current_rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def main():
    p = spec.parser(__doc__)
    p.add_argument("--epochs", type=int, default=4, help="counted ones")
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    spec.prepare(args)
    warnings.filterwarnings("ignore")
    framework, data = spec.load(args)
    import torch
    import torch.nn.functional as F
    before = current_rss()
    torch.manual_seed(args.seed)
    net = framework.Model(data, args)
    x, labels, splits = spec.tensors(data, args)
    train, train_labels = splits["train"], labels[splits["train"]]
    adam = torch.optim.Adam(net.parameters(), lr=args.lr)

    seconds, cpu, losses = [], [], []
    for epoch in range(args.warmup + args.epochs):
        start, cpu_start = time.perf_counter(), time.process_time()
        adam.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x)[train], train_labels)
        loss.backward()
        adam.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    peak = peak_rss()

    net.eval()
    with torch.no_grad():
        logits = net(x)
    result = {
        "framework": args.framework, "versions": framework.versions(), "data": data.path.name,
        "vertices": data.nodes, "edges": data.edges, "model": args.model, "layers": args.layers,
        "hidden": args.hidden, "heads": args.heads if args.model == "gat" else None,
        "adjacency": framework.form(args),
        "allocator": args.allocator, "threads": args.threads,
        "median_epoch_seconds": statistics.median(seconds[args.warmup:]),
        "median_cpu_seconds": statistics.median(cpu[args.warmup:]),
        "epoch_seconds": seconds[args.warmup:], "warmup_seconds": seconds[:args.warmup], "loss": losses,
        "peak_rss_bytes": peak, "rss_before_data_bytes": before,
    }
    for name in ("train", "val", "test"):
        result[name + "_accuracy"] = spec.accuracy(logits, labels, splits[name])
    if args.json:
        print(json.dumps(result))
        return
    print(f"{args.framework} {args.model} on {result['data']}: {result['median_epoch_seconds']:.3f} s an epoch "
          f"(min {min(seconds[args.warmup:]):.3f}, processor time {result['median_cpu_seconds']:.3f}), peak {peak / 2**30:.2f} GiB, loss {losses[0]:.4f} -> {losses[-1]:.4f}, "
          f"test accuracy {result['test_accuracy']:.4f}, adjacency {result['adjacency']}, {args.threads} threads")


if __name__ == "__main__":
    main()
