"""The models in PyG, in the fastest form its users can reach on a CPU.

How the graph is held ("adjacency") decides PyG's speed:
  csr     torch.sparse_csr_tensor and PyG's layers as they are: edges carry no messages, but the backward
          pass transposes the matrix anew each time. torch_sparse.SparseTensor ends in the same kernels.
  cached  PyG's EdgeIndex with 32-bit ids and its transpose cached, multiplied by weights made once (GCN's
          norm, SAGE's 1/degree). Layers are PyG's with propagate replaced by that one product.
  coo     edge_index: gathers a message per edge and scatters it. The slowest for GCN and SAGE, but GAT
          holds messages per edge in every form, and this one does the least besides.
GCN's normalisation is done once, as GCNConv(cached=True) would; GAT's loops are added once.
"""

import numpy as np
import torch
import torch.nn.functional as F

FASTEST = {"gcn": "cached", "sage": "cached", "gat": "coo"}


def versions():
    import torch_geometric
    return {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}


def form(spec):
    return spec.adjacency or FASTEST[spec.model]


def graph_for(folder, spec):
    """The edges a model needs, loops included, as (source, destination, weight or None)."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import add_self_loops, remove_self_loops
    edges = torch.from_numpy(np.stack([folder.sources(), folder.destinations()]))
    if spec.model == "gcn":
        return gcn_norm(edges, None, folder.nodes, add_self_loops=True)
    if spec.model == "gat":
        edges, _ = remove_self_loops(edges)
    if spec.model == "gat" or spec.aggregator == "gcn":
        edges, _ = add_self_loops(edges, num_nodes=folder.nodes)
    return edges, None


def adjacency(folder, spec):
    from torch_geometric import EdgeIndex
    edges, weight = graph_for(folder, spec)
    n = folder.nodes
    order = torch.from_numpy(np.lexsort((edges[0].numpy(), edges[1].numpy())))
    source, target = edges[0][order], edges[1][order]
    weight = weight[order] if weight is not None else None
    if form(spec) == "coo":
        return torch.stack([source, target]), weight
    pointer = torch.zeros(n + 1, dtype=torch.long)
    torch.cumsum(torch.bincount(target, minlength=n), 0, out=pointer[1:])
    if form(spec) == "csr":
        value = torch.ones(len(source)) if weight is None else weight
        return torch.sparse_csr_tensor(pointer, source, value, size=(n, n)), None
    if weight is None:
        weight = (1 / torch.diff(pointer).clamp(min=1)).float()[target]
    # Rows receive here, so that the forward product walks a CSR matrix.
    edges = torch.stack([target, source]).int()
    return EdgeIndex(edges, sparse_size=(n, n), sort_order="row").fill_cache_(), weight


class Model(torch.nn.Module):
    def __init__(self, folder, spec):
        super().__init__()
        self.spec = spec
        widths = [folder.width] + [spec.hidden] * (spec.layers - 1) + [folder.classes]
        self.convs = torch.nn.ModuleList(
            conv(spec, a, b, last=i == spec.layers - 1) for i, (a, b) in enumerate(zip(widths, widths[1:])))
        self.edges, self.weight = adjacency(folder, spec)
        if form(spec) == "cached":
            for c in self.convs:
                c.propagate = self.product

    def product(self, edges, x, **_):
        return edges.matmul(x[0] if isinstance(x, tuple) else x, input_value=self.weight)

    def forward(self, x):
        spec = self.spec
        x = F.dropout(x, spec.input_dropout, self.training) if spec.input_dropout else x
        extra = (self.weight,) if spec.model == "gcn" and self.weight is not None else ()
        for conv in self.convs[:-1]:
            x = conv(x, self.edges, *extra)
            x = F.elu(x, inplace=True) if spec.model == "gat" else x.relu_()
            x = F.dropout(x, spec.dropout, self.training)
        return self.convs[-1](x, self.edges, *extra)


def conv(spec, width_in, width_out, last):
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv
    if spec.model == "gcn":
        return GCNConv(width_in, width_out, normalize=False, add_self_loops=False)
    if spec.model == "sage":
        # DGL's gcn aggregator is a mean over the neighbours and oneself, without a root term.
        return SAGEConv(width_in, width_out, root_weight=spec.aggregator == "mean")
    if last:
        return GATConv(width_in, width_out, heads=spec.out_heads, concat=False, dropout=spec.attention_dropout,
                       add_self_loops=False)
    return GATConv(width_in, width_out // spec.heads, heads=spec.heads, dropout=spec.attention_dropout,
                   add_self_loops=False)
