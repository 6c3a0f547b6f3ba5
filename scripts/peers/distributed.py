#!/usr/bin/env python3
"""DGL's own distributed mini-batch training, on a Starling dataset folder.

    python distributed.py partition --data DIR --parts 2 --out PARTS [--method metis|random]
    python distributed.py train --parts PARTS --hosts 10.77.0.1,10.77.0.2 --rank 0 --batches 40

partition writes DGL's parts. train is one host's share: a server, which it starts, and a trainer; one call per
host, of which each needs a /dev/shm of its own, because DGL shares memory by fixed names. GraphSAGE with the mean,
cross-entropy, Adam, gradients by DistributedDataParallel over gloo. Rank 0 prints one JSON object: batches per
second, each of --batch-size training vertices over all hosts.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

os.environ.setdefault("DGLBACKEND", "pytorch")
warnings.filterwarnings("ignore")

NAME = "starling"


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = p.add_subparsers(dest="what", required=True)
    q = what.add_parser("partition")
    q.add_argument("--data", required=True)
    q.add_argument("--out", required=True)
    q.add_argument("--parts", type=int, default=2)
    q.add_argument("--method", choices=["metis", "random"], default="metis")
    q = what.add_parser("train")
    q.add_argument("--parts", required=True)
    q.add_argument("--hosts", required=True, help="addresses, one per part")
    q.add_argument("--rank", type=int, required=True)
    q.add_argument("--port", type=int, default=30050)
    q.add_argument("--interface", default="eth0", help="what gloo binds to")
    q.add_argument("--fanout", default="15,10,5", help="from the seed vertices on")
    q.add_argument("--batch-size", type=int, default=1024, help="of all hosts together")
    q.add_argument("--layers", type=int, default=3)
    q.add_argument("--hidden", type=int, default=256)
    q.add_argument("--dropout", type=float, default=0.5)
    q.add_argument("--batches", type=int, default=40, help="counted, after five to warm up; an epoch must have as many")
    q.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def partition(args):
    import dgl
    import torch
    import folder
    data = folder.Folder(args.data)
    g = dgl.graph((torch.from_numpy(data.sources()), torch.from_numpy(data.destinations())), num_nodes=data.nodes)
    g.ndata["features"] = torch.from_numpy(data.features())
    g.ndata["labels"] = torch.from_numpy(data.labels)
    mask = torch.zeros(data.nodes, dtype=torch.bool)
    mask[torch.from_numpy(data.splits["train"])] = True
    g.ndata["train_mask"] = mask
    dgl.distributed.partition_graph(g, NAME, args.parts, args.out, part_method=args.method, balance_ntypes=mask,
                                    balance_edges=args.method == "metis")
    (pathlib.Path(args.out) / "classes.json").write_text(json.dumps(data.classes))


def environment(args, role):
    """What DGL reads, as its launcher sets it."""
    hosts = args.hosts.split(",")
    config = pathlib.Path(args.parts) / f"hosts-{args.rank}.txt"
    config.write_text("".join(f"{h} {args.port}\n" for h in hosts))
    return {"DGL_DIST_MODE": "distributed", "DGL_ROLE": role, "DGL_NUM_SAMPLER": "0", "DGL_NUM_SERVER": "1",
            "DGL_NUM_CLIENT": str(len(hosts)), "DGL_CONF_PATH": f"{args.parts}/{NAME}.json",
            "DGL_IP_CONFIG": str(config), "DGL_SERVER_ID": str(args.rank), "DGL_GRAPH_FORMAT": "csc",
            "DGL_KEEP_ALIVE": "0", "OMP_NUM_THREADS": str(args.threads), "MASTER_ADDR": hosts[0],
            "MASTER_PORT": str(args.port + 1), "RANK": str(args.rank), "WORLD_SIZE": str(len(hosts)),
            "GLOO_SOCKET_IFNAME": args.interface, "TP_SOCKET_IFNAME": args.interface}


def train(args):
    role = os.environ.get("DGL_ROLE")
    if role is None:  # both processes of this host
        me = [sys.executable, *sys.argv]
        both = [subprocess.Popen(me, env={**os.environ, **environment(args, r)}) for r in ("server", "client")]
        try:
            sys.exit(both[1].wait())
        finally:
            both[0].terminate()
    import dgl
    import torch
    torch.set_num_threads(args.threads)
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])  # a server ends here
    torch.distributed.init_process_group("gloo")
    seconds = timed(args, dgl, torch)
    if args.rank == 0:
        print(json.dumps({"framework": "dgl", "batches_per_second": args.batches / seconds}), flush=True)
    os._exit(0)  # the server's goodbye may wait


def timed(args, dgl, torch):
    g = dgl.distributed.DistGraph(NAME, part_config=os.environ["DGL_CONF_PATH"])
    seeds = dgl.distributed.node_split(g.ndata["train_mask"], g.get_partition_book(), force_even=True)
    fanouts = [int(f) for f in reversed(args.fanout.split(","))]
    each = args.batch_size // torch.distributed.get_world_size()
    loader = dgl.dataloading.DistNodeDataLoader(g, seeds, dgl.dataloading.NeighborSampler(fanouts), batch_size=each,
                                                shuffle=True, drop_last=True)
    model = torch.nn.parallel.DistributedDataParallel(sage(args, dgl, torch, g.ndata["features"].shape[1]))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    done, start = 0, None
    # One epoch: in a second one the loader waits for ever.
    for inputs, outputs, blocks in loader:
        x, y = g.ndata["features"][inputs], g.ndata["labels"][outputs].long()
        loss = torch.nn.functional.cross_entropy(model(blocks, x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        if done == 5:
            torch.distributed.barrier()
            start = time.perf_counter()
        if done == 5 + args.batches:
            torch.distributed.barrier()
            return time.perf_counter() - start
    sys.exit(f"an epoch has {done} batches, fewer than {5 + args.batches}")


def sage(args, dgl, torch, width):
    classes = json.loads((pathlib.Path(args.parts) / "classes.json").read_text())

    class Sage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            widths = [width] + [args.hidden] * (args.layers - 1) + [classes]
            self.convs = torch.nn.ModuleList(
                dgl.nn.SAGEConv(a, b, "mean") for a, b in zip(widths, widths[1:]))

        def forward(self, blocks, x):
            for i, (conv, block) in enumerate(zip(self.convs, blocks)):
                x = conv(block, x)
                if i + 1 < len(self.convs):
                    x = torch.nn.functional.dropout(torch.relu(x), args.dropout, self.training)
            return x

    return Sage()


if __name__ == "__main__":
    a = arguments()
    partition(a) if a.what == "partition" else train(a)
