"""The models in DGL. Its kernels are fused: no form of them holds messages per edge and feature.

The graph has 32-bit ids and all its sparse formats made beforehand, as DGL's own speed advice goes.
"""

import os

os.environ.setdefault("DGLBACKEND", "pytorch")  # otherwise the first import writes a file to the home folder

import torch
import torch.nn.functional as F

import dgl


def versions():
    return {"torch": torch.__version__, "dgl": dgl.__version__}


def form(_):
    return "dgl"


def graph_for(folder, spec):
    source, target = torch.from_numpy(folder.sources()).int(), torch.from_numpy(folder.destinations()).int()
    graph = dgl.graph((source, target), num_nodes=folder.nodes)
    if spec.model != "sage":  # SAGE's gcn aggregator adds oneself inside the layer
        graph = dgl.add_self_loop(dgl.remove_self_loop(graph))
    return graph


class Model(torch.nn.Module):
    def __init__(self, folder, spec):
        super().__init__()
        self.spec = spec
        widths = [folder.width] + [spec.hidden] * (spec.layers - 1) + [folder.classes]
        self.convs = torch.nn.ModuleList(
            conv(spec, a, b, last=i == spec.layers - 1) for i, (a, b) in enumerate(zip(widths, widths[1:])))
        self.graph = graph_for(folder, spec)
        self.graph.create_formats_()

    def forward(self, x):
        spec = self.spec
        x = F.dropout(x, spec.input_dropout, self.training) if spec.input_dropout else x
        for conv in self.convs[:-1]:
            x = conv(self.graph, x).flatten(1)
            x = F.elu(x, inplace=True) if spec.model == "gat" else x.relu_()
            x = F.dropout(x, spec.dropout, self.training)
        x = self.convs[-1](self.graph, x)
        return x.mean(1) if spec.model == "gat" else x


def conv(spec, width_in, width_out, last):
    from dgl.nn import GATConv, GraphConv, SAGEConv
    if spec.model == "gcn":
        return GraphConv(width_in, width_out, norm="both", allow_zero_in_degree=True)
    if spec.model == "sage":
        return SAGEConv(width_in, width_out, spec.aggregator)
    if last:
        return GATConv(width_in, width_out, spec.out_heads, attn_drop=spec.attention_dropout)
    return GATConv(width_in, width_out // spec.heads, spec.heads, attn_drop=spec.attention_dropout)
