"""Flags and set-up that epoch.py and train.py share."""

import argparse
import importlib
import os
import sys


def parser(doc):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--framework", choices=["pyg", "dgl"], default="pyg")
    p.add_argument("--data", required=True, metavar="DIR", help="a Starling dataset folder")
    p.add_argument("--model", choices=["gcn", "sage", "gat"], default="gcn")
    p.add_argument("--aggregator", choices=["mean", "gcn"], default="mean", help="of sage")
    p.add_argument("--layers", type=int, default=3)
    p.add_argument("--hidden", type=int, default=0, help="width between layers, all heads together (256; gat 128)")
    p.add_argument("--heads", type=int, default=4, help="of gat's hidden layers, concatenated")
    p.add_argument("--out-heads", type=int, default=1, help="of gat's last layer, averaged")
    p.add_argument("--dropout", type=float, default=0.5, help="after each hidden activation")
    p.add_argument("--input-dropout", type=float, default=0.0, help="on the features")
    p.add_argument("--attention-dropout", type=float, default=0.0, help="on gat's edge weights")
    p.add_argument("--lr", type=float, default=0.01, help="of Adam")
    p.add_argument("--row-normalize", action="store_true", help="divide each feature row by its sum")
    p.add_argument("--adjacency", choices=["csr", "cached", "coo"],
                   help="PyG only: how the graph is held (see pyg_models.py); the fastest by default")
    p.add_argument("--allocator", choices=["huge", "plain"], default="huge",
                   help="huge asks glibc for huge pages, which speeds the peers up; plain is what they get untouched")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return p


def prepare(args):
    """Fills defaults and sets what must be set before torch is loaded; may start the program anew."""
    args.hidden = args.hidden or (128 if args.model == "gat" else 256)
    if args.model == "gat" and args.hidden % args.heads:
        sys.exit(f"--hidden {args.hidden} is not a multiple of --heads {args.heads}; it counts all heads together")
    if args.model == "gat" and args.adjacency == "cached":
        sys.exit("--adjacency cached multiplies by fixed weights, which gat has not; use coo or csr")
    want = {"OMP_NUM_THREADS": str(args.threads), "MKL_NUM_THREADS": str(args.threads)}
    if args.allocator == "huge":
        want["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"  # read by the loader, hence the fresh start
    if any(os.environ.get(k) != v for k, v in want.items()):
        os.environ.update(want)
        os.execv(sys.executable, [sys.executable] + sys.argv)


def load(args):
    """The framework's module, the folder, and features, labels and splits as tensors."""
    try:
        framework = importlib.import_module(args.framework + "_models")
    except ImportError as e:
        sys.exit(f"--framework {args.framework}: {e}; run scripts/peers/setup {args.framework}, "
                 f"then start this with build/peers/{args.framework}/bin/python")
    import torch
    import folder
    torch.set_num_threads(args.threads)
    return framework, folder.Folder(args.data)


def tensors(data, args):
    import torch
    import folder
    x = data.features()
    if args.row_normalize:
        x = folder.row_normalize(x)
    splits = {k: torch.from_numpy(v) for k, v in data.splits.items()}
    return torch.from_numpy(x), torch.from_numpy(data.labels), splits


def accuracy(logits, labels, rows):
    return (logits[rows].argmax(1) == labels[rows]).float().mean().item()
