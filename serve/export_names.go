package serve

import (
	"fmt"
	"slices"
	"strings"

	"starling/nn"
)

// renamed is the weights, each as the library has it: rename gets the part of a
// name after "convs.N." and returns another.
func (t *Trained) renamed(c *nn.Config, rename func(c *nn.Config, last bool, w nn.Tensor) nn.Tensor) (out []nn.Tensor) {
	for _, w := range t.Weights {
		w.F64 = false // torch's are single, running statistics too
		w.Name = plainName(c, w.Name)
		prefix, name, ok := layerName(w.Name)
		if ok {
			w.Name = name
			w = rename(c, prefix == fmt.Sprintf("convs.%d.", c.Layers-1), w)
			w.Name = prefix + w.Name
		}
		w.Name = strings.Replace(w.Name, "decoder.lins.", "decoder.", 1)
		out = append(out, w)
	}
	if c.Model == "gin" && !c.TrainEps { // both libraries save the ε that is not trained
		for l := range c.Layers {
			out = append(out, nn.Tensor{Name: fmt.Sprintf("convs.%d.eps", l), Shape: []int{1}, Data: []float64{0}})
		}
	}
	return out
}

// plainName is the name of a weight with layers as convs, and norms in the order of their use.
func plainName(c *nn.Config, name string) string {
	switch {
	case c.Model == "mlp":
		return strings.Replace(name, "lins.", "convs.", 1)
	case !residual(c):
		return name
	}
	for l := range c.Layers {
		if rest, ok := strings.CutPrefix(name, fmt.Sprintf("layers.%d.", l)); ok {
			kind, rest, _ := strings.Cut(rest, ".")
			if kind == "conv" {
				return fmt.Sprintf("convs.%d.%s", l, rest)
			}
			return fmt.Sprintf("norms.%d.%s", (l+c.Layers-1)%c.Layers, rest) // that of layer 0 comes last
		}
	}
	return strings.Replace(strings.Replace(name, "node_encoder.", "encoder.", 1), "lin.", "head.", 1)
}

// layerName splits convs.N.REST.
func layerName(name string) (prefix, rest string, ok bool) {
	layer, ok := strings.CutPrefix(name, "convs.")
	if !ok {
		return "", name, false
	}
	n, rest, ok := strings.Cut(layer, ".")
	return "convs." + n + ".", rest, ok
}

// toPyG: the names are PyG's already, except for the aggregator that it does not have.
func toPyG(c *nn.Config, _ bool, w nn.Tensor) nn.Tensor {
	if c.Model == "sage" && c.Aggregator == "gcn" {
		w.Name = map[string]string{"fc_neigh.weight": "lin_l.weight", "bias": "lin_l.bias"}[w.Name]
	}
	return w
}

// toGraphConv: the map of neighbours is lin_rel there, that of the vertex itself lin_root, which the
// gcn aggregator does not have (see zeroRoots).
func toGraphConv(c *nn.Config, _ bool, w nn.Tensor) nn.Tensor {
	w = toPyG(c, false, w)
	if name, ok := map[string]string{"lin_l.weight": "lin_rel.weight", "lin_l.bias": "lin_rel.bias",
		"lin_r.weight": "lin_root.weight"}[w.Name]; ok {
		w.Name = name
	}
	return w
}

// zeroRoots are the maps of the vertex itself for layers that have none.
func zeroRoots(layers []Layer) (out []nn.Tensor) {
	for l, layer := range layers {
		shape := []int{layer.Args["out_channels"].(int), layer.Args["in_channels"].(int)}
		out = append(out, nn.Tensor{Name: fmt.Sprintf("convs.%d.lin_root.weight", l), Shape: shape,
			Data: make([]float64, shape[0]*shape[1])})
	}
	return out
}

// dglNames are DGL's for PyG's.
var dglNames = map[string]map[string]string{
	"gcn":      {"lin.weight": "weight"},
	"resgcn+":  {"lin.weight": "weight"},
	"sage":     {"lin_l.weight": "fc_neigh.weight", "lin_l.bias": "fc_self.bias", "lin_r.weight": "fc_self.weight"},
	"ressage+": {"lin_l.weight": "fc_neigh.weight", "lin_l.bias": "fc_self.bias", "lin_r.weight": "fc_self.weight"},
	"sage-pool": {"lin.weight": "fc_pool.weight", "lin.bias": "fc_pool.bias", "lin_l.weight": "fc_neigh.weight",
		"lin_l.bias": "fc_self.bias", "lin_r.weight": "fc_self.weight"},
	"gat": {"lin.weight": "fc.weight", "att_src": "attn_l", "att_dst": "attn_r"},
	"gatv2": {"lin_l.weight": "fc_src.weight", "lin_l.bias": "fc_src.bias", "lin_r.weight": "fc_dst.weight",
		"lin_r.bias": "fc_dst.bias", "att": "attn"},
	"gin": {"nn.0.weight": "apply_func.0.weight", "nn.0.bias": "apply_func.0.bias",
		"nn.2.weight": "apply_func.2.weight", "nn.2.bias": "apply_func.2.bias"},
}

func toDGL(c *nn.Config, last bool, w nn.Tensor) nn.Tensor {
	switch {
	case isGCN(c) && w.Name == "lin.weight": // [in, out] there
		w.Data, w.Shape = nn.Transpose(w.Data, w.Shape[0], w.Shape[1]), []int{w.Shape[1], w.Shape[0]}
	case c.Model == "gat" && w.Name == "bias" && last: // added to every head, before their mean
		w.Data, w.Shape = slices.Repeat(w.Data, c.OutHeads), []int{w.Shape[0] * c.OutHeads}
	}
	if name, ok := dglNames[c.Model][w.Name]; ok {
		w.Name = name
	}
	return w
}

// withoutBias moves the bias of DGL's GATv2, which has none after the sum, into its
// linear maps: added at every source and subtracted at every destination, it
// leaves scores unchanged and, as coefficients sum to one, adds itself to the sum.
func withoutBias(weights []nn.Tensor) (out []nn.Tensor) {
	bias := map[string][]float64{}
	for _, w := range weights {
		if prefix, name, ok := layerName(w.Name); ok && name == "bias" {
			bias[prefix] = w.Data
		}
	}
	for _, w := range weights {
		prefix, name, ok := layerName(w.Name)
		sign := map[string]float64{"fc_src.bias": 1, "fc_dst.bias": -1}[name]
		switch {
		case ok && name == "bias":
			continue
		case ok && sign != 0:
			w.Data = slices.Clone(w.Data)
			for i := range w.Data { // one bias for all heads, where their mean is taken
				w.Data[i] += sign * bias[prefix][i%len(bias[prefix])]
			}
		}
		out = append(out, w)
	}
	return out
}
