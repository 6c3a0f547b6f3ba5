package serve

import "starling/nn"

// makeLayer is a layer of a library.
type makeLayer func(c *nn.Config, in, out int, last bool) Layer

// layers is what a library has for the model.
func (t *Trained) layers(library string) makeLayer {
	c := &t.Config.Model
	weighted := t.Config.EdgeWeights && weighs(c)
	switch {
	case c.Model == "mlp":
		return func(_ *nn.Config, in, out int, _ bool) Layer { return linear(in, out) }
	case library == "dgl":
		return dglLayer
	case weighted && isSAGE(c):
		return graphConv
	case weighted && c.Model == "gin":
		return weightedGIN
	}
	return pygLayer
}

// addStack adds layers with norms between them.
func (e *Exported) addStack(c *nn.Config, layer makeLayer) {
	for l := range c.Layers {
		in, out, last := c.Hidden, c.Hidden, l == c.Layers-1
		if l == 0 {
			in = c.In
		}
		if last {
			out = c.Out
		}
		e.Layers = append(e.Layers, layer(c, in, out, last))
		if !last && c.Norm != "none" {
			e.Norms = append(e.Norms, norm(c.Norm, out))
		}
	}
}

// addResidual adds what ResGCN+ and ResSAGE+ are made of.
func (e *Exported) addResidual(c *nn.Config, layer makeLayer) {
	encoder, head := linear(c.In, c.Hidden), linear(c.Hidden, c.Out)
	e.Residual, e.Encoder, e.Head = true, &encoder, &head
	for range c.Layers {
		e.Layers = append(e.Layers, layer(c, c.Hidden, c.Hidden, false))
		e.Norms = append(e.Norms, norm(c.Norm, c.Hidden))
	}
}

// residual reports whether the model is one of residual blocks, isSAGE whether its layers are
// GraphSAGE's with a mean, isGCN whether they are GCN's.
func residual(c *nn.Config) bool { return c.Model == "resgcn+" || c.Model == "ressage+" }
func isSAGE(c *nn.Config) bool   { return c.Model == "sage" || c.Model == "ressage+" }
func isGCN(c *nn.Config) bool    { return c.Model == "gcn" || c.Model == "resgcn+" }

func linear(in, out int) Layer {
	return Layer{Class: "Linear", Args: map[string]any{"in_features": in, "out_features": out}}
}

// graphConv is GraphSAGE with weights: PyG's SAGEConv takes none, its GraphConv sums weighted rows.
func graphConv(_ *nn.Config, in, out int, _ bool) Layer {
	return Layer{Class: "GraphConv", Args: map[string]any{"in_channels": in, "out_channels": out, "aggr": "add"}}
}

// weightedGIN is the module of docs/export.md: PyG's GINConv takes no weights.
func weightedGIN(c *nn.Config, in, out int, _ bool) Layer {
	return Layer{Class: "WeightedGIN", Args: map[string]any{}, MLP: []int{in, c.Hidden, out}}
}

// weighs reports whether the model's aggregation uses edge weights.
func weighs(c *nn.Config) bool { return nn.UsesWeights(c.Model, c.EdgeDim) }

// takesWeights reports whether a library has a layer that does so too, with the same result. DGL's
// GraphConv divides by degrees without weights, and its SAGEConv's gcn aggregator counts the vertex
// itself once, whatever the weights are multiplied by.
func takesWeights(library string, c *nn.Config) bool {
	return library == "pyg" || c.Model == "gin" || c.Model == "ressage+" || c.Model == "sage" && c.Aggregator == "mean"
}

func norm(kind string, width int) Layer {
	if kind == "batch" {
		return Layer{Class: "BatchNorm1d", Args: map[string]any{"num_features": width}}
	}
	return Layer{Class: "LayerNorm", Args: map[string]any{"normalized_shape": width}}
}

func pygLayer(c *nn.Config, in, out int, last bool) Layer {
	args := map[string]any{"in_channels": in, "out_channels": out}
	switch c.Model {
	case "gcn", "resgcn+":
		return Layer{Class: "GCNConv", Args: args}
	case "gin":
		if c.EdgeDim > 0 {
			return Layer{Class: "GINEConv", Args: map[string]any{"train_eps": c.TrainEps, "edge_dim": c.EdgeDim},
				MLP: []int{in, c.Hidden, out}}
		}
		return Layer{Class: "GINConv", Args: map[string]any{"train_eps": c.TrainEps}, MLP: []int{in, c.Hidden, out}}
	case "gat", "gatv2":
		if c.EdgeDim > 0 {
			args["edge_dim"] = c.EdgeDim
		}
		heads, width := heads(c, out, last)
		args["heads"], args["out_channels"], args["concat"] = heads, width, !last || heads == 1
		return Layer{Class: map[string]string{"gat": "GATConv", "gatv2": "GATv2Conv"}[c.Model], Args: args}
	case "film":
		return Layer{Class: "FiLMConv", Args: args}
	case "sage-pool":
		args["aggr"], args["project"] = "max", true
		return Layer{Class: "SAGEConv", Args: args}
	}
	if c.Model == "sage" && c.Aggregator == "gcn" {
		args["root_weight"] = false
	}
	return Layer{Class: "SAGEConv", Args: args}
}

func dglLayer(c *nn.Config, in, out int, last bool) Layer {
	args := map[string]any{"in_feats": in, "out_feats": out}
	switch c.Model {
	case "gcn", "resgcn+":
		args["norm"], args["allow_zero_in_degree"] = "both", true
		return Layer{Class: "GraphConv", Args: args}
	case "gin":
		return Layer{Class: "GINConv", Args: map[string]any{"aggregator_type": "sum", "learn_eps": c.TrainEps},
			MLP: []int{in, c.Hidden, out}}
	case "gat", "gatv2":
		heads, width := heads(c, out, last)
		args["num_heads"], args["out_feats"], args["allow_zero_in_degree"] = heads, width, true
		return Layer{Class: map[string]string{"gat": "GATConv", "gatv2": "GATv2Conv"}[c.Model], Args: args}
	case "sage-pool":
		args["aggregator_type"] = "pool"
		return Layer{Class: "SAGEConv", Args: args}
	}
	args["aggregator_type"] = "mean"
	if c.Model == "sage" {
		args["aggregator_type"] = c.Aggregator
	}
	return Layer{Class: "SAGEConv", Args: args}
}

// heads of an attention layer, and how wide each is.
func heads(c *nn.Config, out int, last bool) (n, width int) {
	if last {
		return c.OutHeads, out
	}
	return c.Heads, out / c.Heads
}
