"""The model of this folder, made of PyG's layers.

    from model import load
    net = load()
    logits = net(data.x_dict, data.edge_index_dict)   # of the vertices of the type net.target

x has the features of each type that has any, as the dataset's folder has them; edges has the [source, target] of each
relation, by (source type, name, target type), numbered within types.
"""

import json
import pathlib

import torch
import torch_geometric.nn as G
from safetensors.torch import load_file
from torch_geometric.utils import scatter, softmax

HERE = pathlib.Path(__file__).resolve().parent


class SimpleHGN(torch.nn.Module):
    """The layer of Simple-HGN (KDD 2021) without the residual of attention: attention that knows an edge's relation."""

    def __init__(self, in_channels, out_channels, heads, num_relations, relation_width):
        super().__init__()
        self.heads, wide = heads, heads * out_channels
        self.lin = torch.nn.Linear(in_channels, wide, bias=False)
        self.edge_emb = torch.nn.Embedding(num_relations, relation_width)
        self.lin_edge = torch.nn.Linear(relation_width, heads * relation_width, bias=False)
        self.lin_res = torch.nn.Linear(in_channels, wide, bias=False) if in_channels != wide else None
        vector = lambda width: torch.nn.Parameter(torch.empty(1, heads, width))
        self.att_src, self.att_dst, self.att_edge = vector(out_channels), vector(out_channels), vector(relation_width)

    def forward(self, x, index, kind):
        source, target = index
        by_head = lambda rows: rows.view(len(rows), self.heads, -1)
        z = by_head(self.lin(x))
        score = (by_head(self.lin_edge(self.edge_emb.weight)) * self.att_edge).sum(-1)[kind]
        score = score + (z * self.att_src).sum(-1)[source] + (z * self.att_dst).sum(-1)[target]
        share = softmax(torch.nn.functional.leaky_relu(score, 0.05), target, num_nodes=len(x))
        y = scatter(z[source] * share.unsqueeze(-1), target, 0, len(x)).flatten(1)
        return y + (self.lin_res(x) if self.lin_res else x)


class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.types = [t["name"] for t in config["types"]]
        self.relations = [tuple(r) for r in config["relations"]]
        self.number = {name: str(k) for k, name in enumerate(self.types)}
        self.target, self.row_normalize, wide = config["target"], config["row_normalize"], config["hidden"]
        self.act = getattr(torch.nn.functional, config["activation"]) if config["activation"] else torch.nn.Identity()
        self.unit = config.get("unit", False)  # rows of length 1 come out
        each = list(enumerate(config["types"]))
        self.lins = torch.nn.ModuleDict({str(k): torch.nn.Linear(t["in"], wide) for k, t in each if t["in"]})
        learnt = {str(k): torch.nn.Embedding(t["rows"], wide) for k, t in each if not t["in"]}
        self.embeddings = torch.nn.ModuleDict(learnt)
        self.convs = torch.nn.ModuleList(map(self.layer, config["layers"]))
        self.head = torch.nn.Linear(**config["head"]["args"]) if config["head"] else None
        self.targets = config.get("targets")  # of a regression: what they were standardized by

    def layer(self, layer):
        if layer["class"] == "SimpleHGN":
            return SimpleHGN(**layer["args"])
        if layer["class"] == "HGTConv":
            types = list(self.number.values()), [self.numbered(r) for r in self.relations]
            return G.HGTConv(metadata=types, **layer["args"])
        make = lambda: getattr(G, layer["class"])(**layer["args"])
        return G.HeteroConv({r: make() for r in self.relations}, aggr="sum") if layer.get("each") else make()

    def encode(self, x):
        rows = {}
        for k, name in enumerate(self.types):
            if str(k) in self.embeddings:
                rows[name] = self.embeddings[str(k)].weight
                continue
            own = x[name].float()
            if self.row_normalize:
                own = own / own.abs().sum(1, keepdim=True).clamp(min=1e-30)
            rows[name] = self.lins[str(k)](own)
        return rows

    def numbered(self, relation):
        """A relation in an HGTConv, which takes no type with a dot in its name, nor one called items."""
        return self.number[relation[0]], str(self.relations.index(relation)), self.number[relation[2]]

    def by_number(self, conv, x, edges):
        """An HGTConv, whose types and relations are called by their numbers."""
        edges = {self.numbered(r): edges[r] for r in self.relations}
        y = conv({self.number[name]: x[name] for name in self.types}, edges)
        return {name: y[k] for name, k in self.number.items() if k in y}

    def together(self, conv, x, edges):
        """A layer over the vertices of all types, one type after the other."""
        counts = [len(x[name]) for name in self.types]
        first = dict(zip(self.types, torch.tensor([0] + counts).cumsum(0).tolist()))
        index = [edges[s, n, t] + torch.tensor([[first[s]], [first[t]]]) for s, n, t in self.relations]
        kind = torch.cat([torch.full((i.shape[1],), r) for r, i in enumerate(index)])
        y = conv(torch.cat([x[name] for name in self.types]), torch.cat(index, 1), kind)
        return dict(zip(self.types, y.split(counts)))

    def forward(self, x, edges):
        x = self.encode(x)
        for i, conv in enumerate(self.convs):
            if isinstance(conv, (G.HeteroConv, G.HGTConv)):
                y = conv(x, edges) if isinstance(conv, G.HeteroConv) else self.by_number(conv, x, edges)
                wide = next(iter(y.values())).shape[1]
                x = {name: y.get(name, torch.zeros(len(x[name]), wide)) for name in self.types}
            else:
                x = self.together(conv, x, edges)
            if i < len(self.convs) - 1:
                x = {name: self.act(rows) for name, rows in x.items()}
        y = self.head(x[self.target]) if self.head else x[self.target]
        if self.unit:
            y = y / (y.square().sum(1, keepdim=True) + 1e-12).sqrt()
        if self.targets:
            y = y * torch.tensor(self.targets["deviation"]) + torch.tensor(self.targets["mean"])
        return y


def load(folder=HERE):
    folder = pathlib.Path(folder)
    net = Model(json.loads((folder / "config.json").read_text())).eval()
    net.load_state_dict(load_file(folder / "model.safetensors"))
    return net
