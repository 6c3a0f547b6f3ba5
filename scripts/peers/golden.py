#!/usr/bin/env python3
"""Writes the golden values that the nn tests compare with.

    build/peers/pyg/bin/python scripts/peers/golden.py            write nn/testdata/golden_*.json
    build/peers/dgl/bin/python scripts/peers/golden.py --check-dgl   hold the written files against DGL

Every value comes from real PyG and torch in float64. Inputs are rounded to three decimals so
that the files stay small; results carry every digit. nn/testdata/README.md has the schema.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent.parent / "nn" / "testdata"


# ---- inputs -------------------------------------------------------------------------------

def rounded(rng, *shape, scale=1.0):
    """Normal draws with three decimals, never 0 so that no ReLU sits on its kink."""
    a = np.round(rng.normal(0, scale, shape), 3)
    a[a == 0] = 0.001
    return torch.tensor(a, dtype=torch.float64)


def halves(rng, *shape):
    """Draws that single precision holds exactly, as features of edges are kept in it."""
    return torch.tensor(rng.integers(-16, 17, shape) / 8 + 1 / 16, dtype=torch.float64)


def graphs():
    """Name -> (n, src, dst). 'mixed' is directed and has everything: the last three vertices
    are isolated, one has in-edges only, one out-edges only, loops and repeated edges included."""
    rng = np.random.default_rng(7)
    src = list(rng.integers(0, 15, 40)) + [3, 3, 3, 5, 5, 9, 9, 15, 15, 2]
    dst = list(rng.integers(0, 15, 40)) + [3, 4, 4, 5, 5, 8, 8, 0, 0, 16]
    mixed = (20, [int(v) for v in src], [int(v) for v in dst])

    pairs = {tuple(sorted(p)) for p in rng.integers(0, 10, (18, 2)).tolist() if p[0] != p[1]}
    both = sorted(pairs | {(b, a) for a, b in pairs})
    symmetric = (10, [a for a, _ in both], [b for _, b in both])

    return {
        "mixed": mixed,
        "symmetric": symmetric,
        "edgeless": (4, [], []),
        "one vertex, two loops": (1, [0, 0], [0, 0]),
    }


def edge_index(graph):
    _, src, dst = graph
    return torch.tensor([src, dst], dtype=torch.long).reshape(2, -1)


def randomise(module, rng):
    """Replaces every parameter by three-decimal draws, norm scales and running variances near 1."""
    module.double()
    with torch.no_grad():
        for name, p in list(module.named_parameters()) + list(module.named_buffers()):
            if not p.dtype.is_floating_point or (name == "eps" and not p.requires_grad):
                continue  # a GIN that does not learn eps keeps the 0 its users get
            draw = rounded(rng, *p.shape, scale=0.5)
            if "running_var" in name or is_norm_scale(module, name):
                draw = (1 + 0.3 * draw).clamp(min=0.2)
                draw = torch.tensor(np.round(draw.numpy(), 3))
            p.copy_(draw)
    return module


def is_norm_scale(module, name):
    owner, _, leaf = name.rpartition(".")
    kind = type(module.get_submodule(owner)).__name__
    return leaf == "weight" and ("Norm" in kind)


# ---- writing ------------------------------------------------------------------------------

def array(t):
    """A tensor as shape plus flat row-major data; Python prints float64 so that it reads back exactly."""
    t = t.detach()
    return {"shape": list(t.shape), "data": t.reshape(-1).tolist()}


def arrays(named):
    return {name: array(t) for name, t in named}


def buffers(module):
    return [(k, b) for k, b in module.named_buffers() if b.dtype.is_floating_point]


def graph_json(name, graph):
    n, src, dst = graph
    return {"name": name, "n": n, "src": src, "dst": dst}


def save(what, cases):
    versions = {"torch": torch.__version__.split("+")[0]}
    try:
        import torch_geometric
        versions["torch_geometric"] = torch_geometric.__version__
    except ImportError:
        pass
    path = OUT / f"golden_{what}.json"
    lines = ",\n".join(json.dumps(c, separators=(",", ":"), allow_nan=False) for c in cases)
    path.write_text('{"made_with":%s,"cases":[\n%s\n]}\n' % (json.dumps(versions), lines))
    print(f"{path.name}: {len(cases)} cases, {path.stat().st_size / 1024:.0f} KiB")


def layer_case(layer, options, module, rng, width, graph=None, rows=None, edge_dim=None):
    """Runs module forward and backward once and records all that goes in and comes out."""
    randomise(module, rng)
    n = graph[1][0] if graph else rows
    x = rounded(rng, n, width).requires_grad_()
    case = {"layer": layer, "options": options}
    if graph:
        case["graph"] = graph_json(*graph)
    case["x"] = array(x)
    case["params"] = arrays(module.named_parameters())
    if buffers(module):
        case["buffers"] = arrays(buffers(module))
    if edge_dim:
        attr = halves(rng, len(graph[1][1]), edge_dim)
        case["edge_attr"] = array(attr)
        y = module(x, edge_index(graph[1]), attr)
    else:
        y = module(x, edge_index(graph[1])) if graph else module(x)
    dy = rounded(rng, *y.shape)
    (y * dy).sum().backward()
    case.update(dy=array(dy), y=array(y), dx=array(x.grad),
                dparams=arrays((k, p.grad) for k, p in module.named_parameters()))
    after = arrays(buffers(module))
    if after != case.get("buffers", {}):
        case["buffers_after"] = after
    return case


# ---- layers -------------------------------------------------------------------------------

class SAGEGCN(torch.nn.Module):
    """DGL's SAGEConv('gcn'): h_i = W (sum_j x_j + x_i) / (deg_i + 1) + b. PyG has no such
    aggregator, so this is plain torch under DGL's parameter names; --check-dgl holds it to DGL."""

    def __init__(self, width_in, width_out):
        super().__init__()
        self.fc_neigh = torch.nn.Linear(width_in, width_out, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(width_out))

    def forward(self, x, edges):
        src, dst = edges
        total = x.index_add(0, dst, x[src])
        degree = torch.zeros(len(x), dtype=x.dtype).index_add(0, dst, torch.ones(len(dst), dtype=x.dtype))
        return self.fc_neigh(total / (degree + 1)[:, None]) + self.bias


def gcn(rng):
    from torch_geometric.nn import GCNConv
    for g in graphs().items():
        yield layer_case("GCNConv", {"bias": True}, GCNConv(6, 4), rng, 6, g)
    mixed = ("mixed", graphs()["mixed"])
    # Wider out than in, so that aggregating before the transform is the cheaper order.
    yield layer_case("GCNConv", {"bias": False}, GCNConv(3, 7, bias=False), rng, 3, mixed)


def sage(rng):
    from torch_geometric.nn import SAGEConv
    for g in graphs().items():
        yield layer_case("SAGEConv", {"aggr": "mean", "bias": True, "root_weight": True},
                         SAGEConv(6, 4), rng, 6, g)
    mixed = ("mixed", graphs()["mixed"])
    yield layer_case("SAGEConv", {"aggr": "mean", "bias": True, "root_weight": True},
                     SAGEConv(3, 7), rng, 3, mixed)
    yield layer_case("SAGEConv", {"aggr": "mean", "bias": False, "root_weight": False},
                     SAGEConv(6, 4, bias=False, root_weight=False), rng, 6, mixed)
    for g in graphs().items():
        yield layer_case("SAGEConv", {"aggr": "gcn", "bias": True}, SAGEGCN(6, 4), rng, 6, g)
    yield layer_case("SAGEConv", {"aggr": "gcn", "bias": True}, SAGEGCN(3, 7), rng, 3, mixed)


def gat(rng):
    from torch_geometric.nn import GATConv

    def case(g, heads, concat, bias, channels=3):
        options = {"heads": heads, "concat": concat, "bias": bias, "negative_slope": 0.2}
        module = GATConv(5, channels, heads=heads, concat=concat, bias=bias, negative_slope=0.2)
        return layer_case("GATConv", options, module, rng, 5, g)

    mixed = ("mixed", graphs()["mixed"])
    for heads in (1, 2, 4):
        for concat in (True, False):
            for bias in (True, False):
                yield case(mixed, heads, concat, bias)
    for name, graph in graphs().items():
        if name != "mixed":
            yield case((name, graph), 2, True, True)


def gin(rng):
    from torch_geometric.nn import GINConv
    from torch.nn import Linear, ReLU, Sequential
    for g in graphs().items():
        for eps, trained in ((0.0, False), (0.25, True)):
            conv = GINConv(Sequential(Linear(5, 6), ReLU(), Linear(6, 4)), eps=eps, train_eps=trained)
            options = {"train_eps": trained, "hidden": 6}
            yield layer_case("GINConv", options, conv, rng, 5, g)


def sagepool(rng):
    from torch_geometric.nn import SAGEConv
    for width, out in ((6, 4), (3, 7)):
        for g in graphs().items():
            yield layer_case("SAGEConv", {"aggr": "max", "project": True},
                             SAGEConv(width, out, aggr="max", project=True), rng, width, g)


def gatv2(rng):
    from torch_geometric.nn import GATv2Conv
    for g in graphs().items():
        for heads, concat in ((1, True), (2, True), (3, False)):
            options = {"heads": heads, "concat": concat, "negative_slope": 0.2}
            yield layer_case("GATv2Conv", options, GATv2Conv(5, 3, heads=heads, concat=concat), rng, 5, g)
    yield layer_case("GATv2Conv", {"heads": 2, "concat": True, "negative_slope": 0.2},
                     GATv2Conv(5, 9, heads=2), rng, 5, ("mixed", graphs()["mixed"]))


def film(rng):
    from torch_geometric.nn import FiLMConv
    for width, out in ((6, 4), (3, 9)):
        for g in graphs().items():
            yield layer_case("FiLMConv", {}, FiLMConv(width, out), rng, width, g)


def edges(rng):
    """Layers that look at features of edges; 'edge_attr' goes in too, a row an edge of the graph."""
    from torch_geometric.nn import GATConv, GATv2Conv, GINEConv
    from torch.nn import Linear, ReLU, Sequential
    for name, graph in graphs().items():
        if not graph[1]:
            continue  # no edge, no features
        for kind in (GATConv, GATv2Conv):
            for heads, concat in ((2, True), (3, False)):
                options = {"heads": heads, "concat": concat, "negative_slope": 0.2}
                yield layer_case(kind.__name__, options, kind(5, 3, heads=heads, concat=concat, edge_dim=4), rng, 5,
                                 (name, graph), edge_dim=4)
        for eps, trained in ((0.0, False), (0.25, True)):
            conv = GINEConv(Sequential(Linear(5, 6), ReLU(), Linear(6, 4)), eps=eps, train_eps=trained, edge_dim=3)
            yield layer_case("GINEConv", {"train_eps": trained, "hidden": 6}, conv, rng, 5, (name, graph), edge_dim=3)


def norm(rng):
    from torch.nn import BatchNorm1d, LayerNorm
    for rows in (2, 17):
        yield layer_case("BatchNorm1d", {"training": True, "eps": 1e-5, "momentum": 0.1},
                         BatchNorm1d(5), rng, 5, rows=rows)
    yield layer_case("BatchNorm1d", {"training": False, "eps": 1e-5, "momentum": 0.1},
                     BatchNorm1d(5).eval(), rng, 5, rows=9)
    for rows in (1, 17):
        yield layer_case("LayerNorm", {"eps": 1e-5}, LayerNorm(5), rng, 5, rows=rows)


def res(rng):
    """x + conv(relu(norm(x))): the pre-activation block of DeeperGCN."""
    from torch_geometric.nn import DeepGCNLayer, GCNConv, SAGEConv
    from torch.nn import BatchNorm1d, LayerNorm, ReLU
    for conv in (GCNConv, SAGEConv):
        for norm_kind in (LayerNorm, BatchNorm1d):
            for name, graph in graphs().items():
                if norm_kind is BatchNorm1d and graph[0] < 2:
                    continue  # torch refuses to normalise a batch of one
                block = DeepGCNLayer(conv(5, 5), norm_kind(5), ReLU(), block="res+", dropout=0.0)
                options = {"block": "res+", "conv": conv.__name__, "norm": norm_kind.__name__}
                yield layer_case("DeepGCNLayer", options, block, rng, 5, (name, graph))


def mlp(rng):
    from torch_geometric.nn import MLP
    for kind in (None, "batch_norm"):
        for widths in ([5, 4], [5, 6, 4], [5, 6, 6, 4]):
            if kind and len(widths) == 2:
                continue
            yield layer_case("MLP", {"widths": widths, "norm": kind, "act": "relu"},
                             MLP(widths, norm=kind, dropout=0.0), rng, 5, rows=9)


# ---- layers of typed graphs ----------------------------------------------------------------

TYPES = [("author", 4), ("paper", 6), ("a venue <=", 2), ("reader", 3)]
# By target, source and name. Nothing leads to "reader"; two relations have the same ends; one has no edge.
RELATIONS = [(1, "written_by", 0), (0, "writes", 1), (1, "cites", 1), (1, "extends", 1), (3, "reads", 1),
             (1, "shown at", 2), (2, "held", 2)]


def typed_edges(rng):
    """For each relation its edges, within the types; vertex 0 of each type has no in-edge."""
    out = []
    for source, name, target in RELATIONS:
        n = 0 if name == "held" else int(rng.integers(3, 9))
        out.append((rng.integers(0, TYPES[source][1], n), rng.integers(1, TYPES[target][1], n)))
    return out


def typed_case(layer, options, module, rng, width):
    """As layer_case; x, y and their gradients are of all types, one below the other."""
    randomise(module, rng)
    edges = typed_edges(rng)
    counts = [n for _, n in TYPES]
    first = np.concatenate([[0], np.cumsum(counts)])
    x = rounded(rng, sum(counts), width).requires_grad_()
    case = {"layer": layer, "options": options, "types": [{"name": k, "count": n} for k, n in TYPES],
            "relations": [{"source": s, "name": k, "target": t} for s, k, t in RELATIONS],
            "src": [(first[s] + e[0]).tolist() for (s, _, _), e in zip(RELATIONS, edges)],
            "dst": [(first[t] + e[1]).tolist() for (_, _, t), e in zip(RELATIONS, edges)],
            "x": array(x), "params": arrays(module.named_parameters())}
    if layer in ("RGCNConv", "SimpleHGN", "UnitRows"):
        src, dst = np.concatenate(case["src"]), np.concatenate(case["dst"])
        kind = np.concatenate([[r] * len(e[0]) for r, e in enumerate(edges)])
        y = module(x, torch.tensor(np.array([src, dst]), dtype=torch.long), torch.tensor(kind, dtype=torch.long))
    else:
        names = [k for k, _ in TYPES]
        by_type = {k: x[first[i]:first[i + 1]] for i, k in enumerate(names)}
        by_kind = {(names[s], k, names[t]): torch.tensor(np.array(e), dtype=torch.long)
                   for (s, k, t), e in zip(RELATIONS, edges)}
        out = module(by_type, by_kind)
        wide = next(iter(out.values())).shape[1]
        y = torch.cat([out.get(k, torch.zeros(n, wide, dtype=x.dtype)) for k, n in TYPES])
    dy = rounded(rng, *y.shape)
    (y * dy).sum().backward()
    case.update(dy=array(dy), y=array(y), dx=array(x.grad),
                dparams=arrays((k, p.grad if p.grad is not None else torch.zeros_like(p))
                               for k, p in module.named_parameters()))
    return case


class SimpleHGN(torch.nn.Module):
    """The layer of Simple-HGN (Lv et al., KDD 2021, eqs. 8, 11 and 14), edge by edge, as the paper has it; beta is 0."""

    def __init__(self, width, out, heads, edge=5):
        super().__init__()
        self.heads = heads
        self.lin = torch.nn.Linear(width, out, bias=False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out // heads))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out // heads))
        self.edge_emb = torch.nn.Embedding(len(RELATIONS), edge)
        self.lin_edge = torch.nn.Linear(edge, heads * edge, bias=False)
        self.att_edge = torch.nn.Parameter(torch.empty(1, heads, edge))
        self.lin_res = torch.nn.Linear(width, out, bias=False) if width != out else None

    def forward(self, x, edge_index, kind):
        z = self.lin(x).view(len(x), self.heads, -1)
        r = self.lin_edge(self.edge_emb.weight).view(len(RELATIONS), self.heads, -1)
        rows = []
        for i in range(len(x)):
            edges = (edge_index[1] == i).nonzero().flatten().tolist()
            total = torch.zeros_like(z[i])
            if edges:
                score = torch.stack([torch.nn.functional.leaky_relu(
                    ((self.att_src * z[edge_index[0, e]]).sum(-1) + (self.att_dst * z[i]).sum(-1)
                     + (self.att_edge * r[kind[e]]).sum(-1)), 0.05) for e in edges])
                alpha = score.softmax(0)
                for a, e in zip(alpha, edges):
                    total = total + a.view(self.heads, 1) * z[edge_index[0, e]]
            rows.append(total.flatten())
        return torch.stack(rows) + (x if self.lin_res is None else self.lin_res(x))


class UnitRows(torch.nn.Module):
    def forward(self, x, edge_index, kind):
        return x / torch.sqrt((x * x).sum(1, keepdim=True) + 1e-12)


def typed(rng):
    from torch_geometric.nn import GATConv, HeteroConv, HGTConv, RGCNConv, SAGEConv

    def hetero(conv):
        return HeteroConv({(TYPES[s][0], k, TYPES[t][0]): conv() for s, k, t in RELATIONS}, aggr="sum")

    for width, out in ((6, 4), (4, 8), (2, 8)):
        yield typed_case("RGCNConv", {}, RGCNConv(width, out, len(RELATIONS)), rng, width)
        yield typed_case("RGCNConv", {"bases": 3}, RGCNConv(width, out, len(RELATIONS), num_bases=3), rng, width)
        yield typed_case("RGCNConv", {"blocks": 2}, RGCNConv(width, out, len(RELATIONS), num_blocks=2), rng, width)
        yield typed_case("SAGEConv", {}, hetero(lambda: SAGEConv(width, out)), rng, width)
        for heads in (1, 2):
            yield typed_case("GATConv", {"heads": heads},
                             hetero(lambda: GATConv(width, out // heads, heads=heads, add_self_loops=False)), rng, width)
    metadata = [k for k, _ in TYPES], [(TYPES[s][0], k, TYPES[t][0]) for s, k, t in RELATIONS]
    for width, out, heads in ((6, 4, 1), (4, 8, 2), (8, 8, 4), (6, 6, 1)):
        yield typed_case("HGTConv", {"heads": heads}, HGTConv(width, out, metadata, heads), rng, width)
        yield typed_case("SimpleHGN", {"heads": heads}, SimpleHGN(width, out, heads), rng, width)
    yield typed_case("UnitRows", {}, UnitRows(), rng, 5)


# ---- losses, whole models, optimisers, schedules -------------------------------------------

def loss(rng):
    """Mean over the listed rows only; dx is zero elsewhere. Label -1 marks an unlabelled row."""
    for scale in (1.0, 40.0):  # the second overflows a softmax that does not subtract the maximum
        for rows in ([0, 2, 3, 7, 10], [4], list(range(11))):
            x = rounded(rng, 11, 5, scale=scale).requires_grad_()
            labels = torch.tensor(rng.integers(0, 5, 11))
            if len(rows) < 11:
                labels[[1, 9]] = -1
            y = torch.nn.functional.cross_entropy(x[rows], labels[rows])
            y.backward()
            yield {"loss": "cross_entropy", "x": array(x), "labels": labels.tolist(), "rows": rows,
                   "y": y.item(), "dx": array(x.grad)}
            x = rounded(rng, 11, 4, scale=scale).requires_grad_()
            targets = torch.tensor(rng.integers(0, 2, (11, 4)), dtype=torch.float64)
            y = torch.nn.functional.binary_cross_entropy_with_logits(x[rows], targets[rows])
            y.backward()
            yield {"loss": "bce_with_logits", "x": array(x), "targets": array(targets), "rows": rows,
                   "y": y.item(), "dx": array(x.grad)}


class Stack(torch.nn.Module):
    """Convolutions with an activation between them, no dropout; names are PyG's convs.N.*"""

    def __init__(self, convs, act):
        super().__init__()
        self.convs, self.act = torch.nn.ModuleList(convs), act

    def forward(self, x, edges):
        for conv in self.convs[:-1]:
            x = self.act(conv(x, edges))
        return self.convs[-1](x, edges)


def stacks():
    from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv
    from torch.nn import Linear, ReLU, Sequential
    from torch.nn.functional import elu, relu

    def gin_conv(a, b):
        return GINConv(Sequential(Linear(a, 6), ReLU(), Linear(6, b)), train_eps=True)

    yield "GCN", {"act": "relu"}, Stack([GCNConv(5, 6), GCNConv(6, 6), GCNConv(6, 3)], relu)
    yield "SAGE", {"act": "relu", "aggr": "mean"}, Stack([SAGEConv(5, 6), SAGEConv(6, 6), SAGEConv(6, 3)], relu)
    yield "SAGE", {"act": "relu", "aggr": "gcn"}, Stack([SAGEGCN(5, 6), SAGEGCN(6, 6), SAGEGCN(6, 3)], relu)
    yield ("GAT", {"act": "elu", "heads": 2, "out_heads": 1, "negative_slope": 0.2},
           Stack([GATConv(5, 3, heads=2), GATConv(6, 3, heads=2), GATConv(6, 3, heads=1, concat=False)], elu))
    yield ("GAT", {"act": "elu", "heads": 2, "out_heads": 4, "negative_slope": 0.2},
           Stack([GATConv(5, 3, heads=2), GATConv(6, 3, heads=4, concat=False)], elu))
    yield "GIN", {"act": "relu", "train_eps": True, "hidden": 6}, Stack([gin_conv(5, 6), gin_conv(6, 3)], relu)


def model(rng):
    """Logits, loss and gradients of a whole model, then the losses of ten full-graph Adam steps."""
    graph = graphs()["mixed"]
    n, edges = graph[0], edge_index(graph)
    rows = [0, 1, 3, 4, 6, 8, 11, 16, 18, 19]
    for name, options, net in stacks():
        randomise(net, rng)
        x = rounded(rng, n, 5)
        labels = torch.tensor(rng.integers(0, 3, n))
        case = {"model": name, "options": options, "graph": graph_json("mixed", graph), "x": array(x),
                "labels": labels.tolist(), "rows": rows, "params": arrays(net.named_parameters()),
                "optimizer": {"name": "Adam", "lr": 0.01, "weight_decay": 5e-4}}
        optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
        losses = []
        for step in range(10):
            optimiser.zero_grad()
            y = net(x, edges)
            value = torch.nn.functional.cross_entropy(y[rows], labels[rows])
            value.backward()
            if step == 0:
                case["y"] = array(y)
                case["dparams"] = arrays((k, p.grad) for k, p in net.named_parameters())
            losses.append(value.item())
            optimiser.step()
        case.update(losses=losses, params_after=arrays(net.named_parameters()))
        yield case


def optim(rng):
    """Five steps from one start along one fixed sequence of gradients."""
    kinds = {"Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW, "SGD": torch.optim.SGD}
    settings = [
        ("Adam", {"lr": 0.01}), ("Adam", {"lr": 0.01, "weight_decay": 0.05}),
        ("Adam", {"lr": 0.003, "betas": [0.8, 0.95], "eps": 1e-6}),
        ("AdamW", {"lr": 0.01, "weight_decay": 0.0}), ("AdamW", {"lr": 0.01, "weight_decay": 0.05}),
        ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05}),
    ]
    for name, options in settings:
        p = rounded(rng, 3, 4).requires_grad_()
        optimiser = kinds[name]([p], **options)
        case = {"optimizer": name, "options": options, "param": array(p), "grads": [], "params_after": []}
        for step in range(5):
            p.grad = rounded(rng, 3, 4)
            if step == 3:
                p.grad[0] = 0  # a row that got no gradient still moves by momentum and decay
            case["grads"].append(array(p.grad))
            optimiser.step()
            case["params_after"].append(array(p))
        yield case


def schedule(_):
    """lr[e] is the rate in force during epoch e, from 0."""
    from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR
    settings = [
        (StepLR, {"step_size": 3, "gamma": 0.5}, 10), (StepLR, {"step_size": 1, "gamma": 0.9}, 6),
        (CosineAnnealingLR, {"T_max": 10, "eta_min": 0.0}, 11),
        (CosineAnnealingLR, {"T_max": 7, "eta_min": 0.001}, 8),
    ]
    for kind, options, epochs in settings:
        optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        scheduler = kind(optimiser, **options)
        rates = []
        for _ in range(epochs):
            rates.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            scheduler.step()
        yield {"schedule": kind.__name__, "options": options, "base_lr": 0.1, "lr": rates}


WRITERS = [gcn, sage, gat, gin, norm, res, mlp, loss, model, optim, schedule, sagepool, gatv2, film, edges,
           typed]


# ---- holding the files against DGL -----------------------------------------------------------

def tensor(a):
    return torch.tensor(a["data"], dtype=torch.float64).reshape(a["shape"])


def dgl_layer(case):
    """The DGL layer for a recorded case with the recorded weights, or None where DGL has no twin."""
    import dgl
    from dgl.nn import GATConv, GATv2Conv, GINConv, GraphConv, SAGEConv
    p = {k: tensor(v) for k, v in case["params"].items()}
    n, g = case["graph"]["n"], case["graph"]
    graph = dgl.graph((g["src"], g["dst"]), num_nodes=n)
    kind, opt, width = case["layer"], case["options"], case["x"]["shape"][1]
    looped = dgl.add_self_loop(dgl.remove_self_loop(graph))
    if kind == "GCNConv":
        # DGL divides by the root of the out-degree of the source; PyG uses the in-degree of both
        # ends, so the two agree only on symmetric graphs.
        if sorted(zip(g["src"], g["dst"])) != sorted(zip(g["dst"], g["src"])):
            return None
        conv = GraphConv(width, case["y"]["shape"][1], bias=opt["bias"])
        state = {"weight": p["lin.weight"].T}
        if opt["bias"]:
            state["bias"] = p["bias"]
        return looped, conv, state
    if kind == "SAGEConv" and opt["aggr"] == "gcn":
        return graph, SAGEConv(width, case["y"]["shape"][1], "gcn"), p
    if kind == "SAGEConv" and opt["aggr"] == "max":
        if not g["src"]:
            return None  # of a graph without edges DGL's maximum is not zero
        return graph, SAGEConv(width, case["y"]["shape"][1], "pool"), {
            "fc_pool.weight": p["lin.weight"], "fc_pool.bias": p["lin.bias"], "fc_neigh.weight": p["lin_l.weight"],
            "fc_self.weight": p["lin_r.weight"], "fc_self.bias": p["lin_l.bias"]}
    if kind == "GATv2Conv" and opt["concat"]:
        # DGL has no bias after the sum: one added to every source and taken from every destination is the same.
        conv = GATv2Conv(width, p["att"].shape[2], opt["heads"], negative_slope=0.2)
        return looped, conv, {
            "fc_src.weight": p["lin_l.weight"], "fc_src.bias": p["lin_l.bias"] + p["bias"],
            "fc_dst.weight": p["lin_r.weight"], "fc_dst.bias": p["lin_r.bias"] - p["bias"], "attn": p["att"]}
    if kind == "SAGEConv" and opt["root_weight"]:
        return graph, SAGEConv(width, case["y"]["shape"][1], "mean"), {
            "fc_neigh.weight": p["lin_l.weight"], "fc_self.weight": p["lin_r.weight"], "fc_self.bias": p["lin_l.bias"]}
    if kind == "GATConv" and opt["concat"]:
        conv = GATConv(width, p["att_src"].shape[2], opt["heads"], negative_slope=0.2, bias=opt["bias"])
        state = {"fc.weight": p["lin.weight"], "attn_l": p["att_src"], "attn_r": p["att_dst"]}
        if opt["bias"]:
            state["bias"] = p["bias"]
        return looped, conv, state
    return None


def check_dgl():
    worst, checked = 0.0, 0
    for what in ("gcn", "sage", "gat", "sagepool", "gatv2"):
        for case in json.loads((OUT / f"golden_{what}.json").read_text())["cases"]:
            twin = dgl_layer(case)
            if twin is None:
                continue
            graph, conv, state = twin
            conv.double()
            missing = conv.load_state_dict(state, strict=False)
            if missing.missing_keys or missing.unexpected_keys:
                sys.exit(f"golden.py: {case['layer']} {case['options']}: DGL names differ: {missing}")
            x = tensor(case["x"]).requires_grad_()
            y = conv(graph, x).reshape(case["y"]["shape"])
            (y * tensor(case["dy"])).sum().backward()
            off = max((y - tensor(case["y"])).abs().max().item(), (x.grad - tensor(case["dx"])).abs().max().item())
            worst, checked = max(worst, off), checked + 1
            if not off < 1e-9:
                sys.exit(f"golden.py: {case['layer']} {case['options']} on {case['graph']['name']}: "
                         f"differs from DGL by {off:.3g}")
    print(f"{checked} cases agree with DGL, largest difference {worst:.2g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check-dgl", action="store_true", help="compare the written files with DGL instead of writing")
    if parser.parse_args().check_dgl:
        return check_dgl()
    OUT.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for seed, writer in enumerate(WRITERS):
        save(writer.__name__, list(writer(np.random.default_rng(100 + seed))))


if __name__ == "__main__":
    main()
