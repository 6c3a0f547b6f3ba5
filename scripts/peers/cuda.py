#!/usr/bin/env python3
"""Times full-graph training epochs of PyG on a GPU, on a Starling dataset folder.

    python3 scripts/peers/cuda.py --data DIR --model gcn --json

As epoch.py, which is for processors: forward, cross-entropy on the training rows, backward and the Adam
step. The graph is put in order on the GPU. Forms of the adjacency are defined in pyg_models.py; the memory
is what torch's allocator had at most after the data was there.
"""

import json
import statistics
import sys
import time
import warnings

import pyg_models
import spec

warnings.filterwarnings("ignore")


def adjacency(folder, args):
    """pyg_models.adjacency, on the GPU."""
    import torch
    from torch_geometric import EdgeIndex
    n = folder.nodes
    source = torch.from_numpy(folder.sources()).cuda()
    target = torch.repeat_interleave(torch.arange(n, device="cuda"), torch.from_numpy(folder.indptr).cuda().diff())
    if args.model == "gat":
        keep = source != target
        source, target = source[keep], target[keep]
    if args.model in ("gcn", "gat"):
        own = torch.arange(n, device="cuda")
        source, target = torch.cat([source, own]), torch.cat([target, own])
        order = torch.argsort(target * n + source)
        source, target = source[order], target[order]
    count = torch.bincount(target, minlength=n)
    weight = None
    if args.model == "gcn":
        inverse = count.float().pow(-0.5)
        weight = inverse[source] * inverse[target]
    form = pyg_models.form(args)
    if form == "coo":
        return torch.stack([source, target]), weight
    if form == "csr":
        pointer = torch.zeros(n + 1, dtype=torch.long, device="cuda")
        torch.cumsum(count, 0, out=pointer[1:])
        value = torch.ones(len(source), device="cuda") if weight is None else weight
        return torch.sparse_csr_tensor(pointer, source, value, size=(n, n)), None
    if weight is None:
        weight = (1 / count.clamp(min=1)).float()[target]
    return EdgeIndex(torch.stack([target, source]).int(), sparse_size=(n, n), sort_order="row").fill_cache_(), weight


def main():
    p = spec.parser(__doc__)
    p.add_argument("--epochs", type=int, default=10, help="counted ones")
    p.add_argument("--warmup", type=int, default=3)
    args = p.parse_args()
    args.framework = "pyg"
    spec.prepare(args)
    framework, data = spec.load(args)
    import torch
    import torch.nn.functional as F
    pyg_models.adjacency = adjacency
    torch.manual_seed(0)
    try:
        net = pyg_models.Model(data, args).cuda()
        x, labels, splits = spec.tensors(data, args)
        x, labels, train = x.cuda(), labels.cuda(), splits["train"].cuda()
        known = labels[train]
        adam = torch.optim.Adam(net.parameters(), lr=args.lr, fused=True)
        torch.cuda.reset_peak_memory_stats()
        seconds, losses = [], []
        for _ in range(args.warmup + args.epochs):
            torch.cuda.synchronize()
            start = time.perf_counter()
            adam.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(x)[train], known)
            loss.backward()
            adam.step()
            losses.append(loss.item())
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
    except torch.OutOfMemoryError:
        print(json.dumps({"model": args.model, "data": data.path.name, "failed": "out of memory"}))
        return
    result = {"framework": "pyg", "versions": framework.versions(), "data": data.path.name, "model": args.model,
              "adjacency": pyg_models.form(args), "median_epoch_seconds": statistics.median(seconds[args.warmup:]),
              "epoch_seconds": seconds, "loss": losses, "peak_bytes": torch.cuda.max_memory_allocated()}
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
