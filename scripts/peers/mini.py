#!/usr/bin/env python3
"""Times mini-batch sampling and training epochs of PyG or DGL on a Starling dataset folder.

    build/peers/dgl/bin/python scripts/peers/mini.py --framework dgl --data DIR --what sample --json
    build/peers/dgl/bin/python scripts/peers/mini.py --framework dgl --data DIR --what epoch --json

sample: batches a second through the framework's own loader, blocks only, nothing computed.
epoch: sampling, gathering features, forward, cross-entropy, backward, Adam, for GraphSAGE with the mean.
--loader of DGL is dataloader (NeighborSampler) or graphbolt; of PyG NeighborLoader, over whichever of
pyg-lib and torch-sparse is installed. --workers are the loader's worker processes.
"""

import argparse
import json
import os
import statistics
import sys
import time
import warnings

os.environ.setdefault("DGLBACKEND", "pytorch")
warnings.filterwarnings("ignore")

import folder


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--framework", choices=["pyg", "dgl"], required=True)
    p.add_argument("--loader", choices=["dataloader", "graphbolt"], default="dataloader")
    p.add_argument("--data", required=True)
    p.add_argument("--what", choices=["sample", "epoch"], required=True)
    p.add_argument("--fanout", default="15,10,5", help="from the roots on")
    p.add_argument("--batch-size", type=int, default=1024)
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--dropout", type=float, default=0.5)
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batches", type=int, default=60, help="counted, after five to warm up; the epoch's time is what they take times how many it has")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="PyG only: where the model is trained")
    p.add_argument("--features", choices=["card", "host"], default="card", help="with --device cuda: on the GPU, or on the host, where the "
                   "loader gathers them into pinned memory")
    p.add_argument("--json", action="store_true")
    return p.parse_args()


def main():
    args = arguments()
    args.fanouts = [int(f) for f in args.fanout.split(",")]
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    data = folder.Folder(args.data)
    batches = (dgl_batches if args.framework == "dgl" else pyg_batches)(args, data, torch)
    if args.what == "epoch":
        batches = trained(args, data, torch, batches)
    seconds, edges = timed(batches, args.batches)
    per_epoch = -(-len(data.splits["train"]) // args.batch_size)
    result = {"framework": args.framework, "loader": args.loader, "what": args.what, "workers": args.workers,
              "batches_per_second": args.batches / seconds, "edges_per_batch": edges,
              "epoch_seconds": seconds / args.batches * per_epoch}
    print(json.dumps(result) if args.json else result)


def timed(batches, count, warm=5):
    edges = []
    for i, n in enumerate(batches):
        if i == warm - 1:
            start = time.perf_counter()
        if i >= warm:
            edges.append(n[3])
        if i == warm + count - 1:
            return time.perf_counter() - start, statistics.mean(edges)
    sys.exit(f"the loader ended before {warm + count} batches")


def forever(loader):
    while True:
        yield from loader


def dgl_batches(args, data, torch):
    """Yields (inputs, roots, blocks, edges)."""
    import dgl
    indptr, indices = torch.from_numpy(data.indptr), torch.from_numpy(data.sources()).long()
    roots = torch.from_numpy(data.splits["train"])
    if args.loader == "graphbolt":
        import dgl.graphbolt as gb
        make = getattr(gb, "fused_csc_sampling_graph", None) or gb.from_fused_csc
        pipe = gb.ItemSampler(gb.ItemSet(roots, names="seed_nodes"), batch_size=args.batch_size, shuffle=True)
        pipe = pipe.sample_neighbor(make(indptr, indices), args.fanouts)
        for batch in forever(gb.DataLoader(pipe, num_workers=args.workers)):
            blocks = batch.blocks if args.what == "epoch" else []
            yield batch.input_nodes, batch.seed_nodes, blocks, sum(s.sampled_csc.indices.numel() for s in batch.sampled_subgraphs)
        return
    graph = dgl.graph(("csc", (indptr, indices, [])), num_nodes=data.nodes)
    sampler = dgl.dataloading.NeighborSampler(args.fanouts[::-1])  # DGL lists the first layer first
    loader = dgl.dataloading.DataLoader(graph, roots, sampler, batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
    for inputs, outputs, blocks in forever(loader):
        yield inputs, outputs, blocks, sum(b.num_edges() for b in blocks)


def pyg_batches(args, data, torch):
    import numpy as np
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    target = np.repeat(np.arange(data.nodes), np.diff(data.indptr))
    edges = torch.from_numpy(np.stack([data.sources().astype(np.int64), target]))
    graph = Data(edge_index=edges, num_nodes=data.nodes)
    if gathered(args):
        graph.x = torch.from_numpy(data.features())
    loader = NeighborLoader(graph, num_neighbors=args.fanouts, batch_size=args.batch_size, shuffle=True, is_sorted=True,
                            input_nodes=torch.from_numpy(data.splits["train"]), num_workers=args.workers,
                            pin_memory=args.device == "cuda", persistent_workers=args.workers > 0)
    for batch in forever(loader):
        yield batch.n_id, batch.input_id, batch, batch.edge_index.shape[1]


def gathered(args):
    """Whether the loader brings the features of a batch."""
    return args.framework == "pyg" and args.what == "epoch" and args.device == "cuda" and args.features == "host"


def trained(args, data, torch, batches):
    import numpy as np
    import torch.nn.functional as F
    x, labels = torch.from_numpy(data.features()), torch.from_numpy(data.labels)
    widths = [data.width] + [args.hidden] * (len(args.fanouts) - 1) + [data.classes]
    if args.framework == "dgl":
        from dgl.nn import SAGEConv
        convs = [SAGEConv(a, b, "mean") for a, b in zip(widths, widths[1:])]
    else:
        from torch_geometric.nn import SAGEConv
        convs = [SAGEConv(a, b) for a, b in zip(widths, widths[1:])]
    net = torch.nn.ModuleList(convs).to(args.device)
    labels = labels.to(args.device)
    x = None if gathered(args) else x.to(args.device)
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for inputs, outputs, blocks, edges in batches:
        if args.device == "cuda":
            blocks = blocks.cuda(non_blocking=True)
            inputs = blocks.n_id
        h = blocks.x if gathered(args) else x[inputs]
        for l, conv in enumerate(net):
            h = conv(blocks[l], h) if args.framework == "dgl" else pyg_layer(conv, h, blocks, l, len(net))
            if l < len(net) - 1:
                h = F.dropout(h.relu_(), args.dropout)
        if args.framework == "dgl":
            loss = F.cross_entropy(h, labels[outputs])
        else:
            loss = F.cross_entropy(h[:blocks.batch_size], labels[blocks.n_id[:blocks.batch_size]])
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        yield inputs, outputs, blocks, edges


def pyg_layer(conv, h, batch, layer, layers):
    """With PyG's own trimming of what later layers do not need."""
    from torch_geometric.utils import trim_to_layer
    if not hasattr(batch, "trimmed"):
        batch.trimmed = batch.edge_index
    if getattr(batch, "num_sampled_nodes", None) is not None:
        h, batch.trimmed, _ = trim_to_layer(layer, batch.num_sampled_nodes, batch.num_sampled_edges, h, batch.trimmed)
    return conv(h, batch.trimmed)


if __name__ == "__main__":
    main()
