package serve

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
)

// Formats are the libraries that export writes for.
var Formats = []string{"pyg", "dgl"}

// Exported is the config.json of an export: enough to build the same model in
// Python, layer by layer.
type Exported struct {
	Format     string  `json:"format"` // starling-export
	Version    int     `json:"version"`
	Library    string  `json:"library"`
	Model      string  `json:"model"`
	Task       string  `json:"task"` // one of nn.Tasks; it says what the outputs are
	Layers     []Layer `json:"layers"`
	Norms      []Layer `json:"norms"` // torch.nn's, after every layer but the last; or none
	Activation string  `json:"activation"`
	// MeanHeads: DGL's attention returns heads apart; hidden layers put them side by
	// side, the last takes their mean.
	MeanHeads    bool `json:"mean_heads"`
	SelfLoops    bool `json:"self_loops"` // to be added to the graph, one at each vertex
	RowNormalize bool `json:"row_normalize"`
	EdgeWeights  bool `json:"edge_weights"` // to be given to every layer
	In           int  `json:"in"`
	Out          int  `json:"out"`
	// Decoder is the widths of the linear maps that score pairs of outputs; none: their
	// dot product does, or the outputs are the result.
	Decoder [][2]int `json:"decoder"`
}

// Layer is a class of the library and what it is built with.
type Layer struct {
	Class string         `json:"class"`
	Args  map[string]any `json:"args"`
	// MLP are the widths of GIN's two linear maps, which are no plain arguments.
	MLP []int `json:"mlp,omitempty"`
}

// Export writes the model into a new folder, under the names and in the layouts of
// a library: config.json and model.safetensors.
func (t *Trained) Export(library, dir string) (*Exported, error) {
	if !slices.Contains(Formats, library) {
		return nil, &graph.InputError{Field: "--format", Found: fmt.Sprintf("%q", library), Want: "one of " + strings.Join(Formats, ", ")}
	}
	e, weights, err := t.translate(library)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, err
	}
	dir = filepath.Clean(dir)
	folder, err := graph.NewFolder(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Abort()
	if err := nn.SaveSafetensors(filepath.Join(folder.Tmp, weightsFile), weights, map[string]string{"format": "pt", "library": library, "model": e.Model}); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder.Tmp, configFile), append(b, '\n'), 0o644); err != nil {
		return nil, err
	}
	return e, folder.Commit()
}

// IsExport reports whether a folder is an earlier export, and so may be replaced.
func IsExport(dir string) bool {
	b, err := readBounded(filepath.Join(dir, configFile))
	var e Exported
	return err == nil && json.Unmarshal(b, &e) == nil && e.Format == "starling-export"
}

// exports are the models that a library has layers for.
var exports = map[string][]string{
	"pyg": {"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "film"},
	"dgl": {"gcn", "sage", "sage-pool", "gat", "gatv2", "gin"},
}

// translate is the model in a library's terms.
func (t *Trained) translate(library string) (*Exported, []nn.Tensor, error) {
	c := &t.Config.Model
	if !slices.Contains(exports[library], c.Model) {
		return nil, nil, &graph.InputError{File: t.Dir, Field: "model", Found: c.Model, Want: "one of " + strings.Join(exports[library], ", ") + ", which " + library + " has layers for",
			Fix: "the weights are in " + filepath.Join(t.Dir, weightsFile) + ", under the names PyG's classes would have"}
	}
	if c.EdgeDim > 0 && library == "dgl" {
		return nil, nil, &graph.InputError{File: t.Dir, Field: "model", Found: c.Model + " with features of edges", Want: "a model without, or --format pyg", Fix: "DGL's layers have no place for them"}
	}
	if t.Config.EdgeWeights && weighs(c) && !takesWeights(library, c) {
		return nil, nil, &graph.InputError{File: t.Dir, Field: "model", Found: c.Model + " trained on edges with weights", Want: "a model that looks at none, gcn for pyg, or gin for dgl",
			Fix: library + "'s layers of this kind take no weights, or count them otherwise"}
	}
	e := &Exported{Format: "starling-export", Version: 1, Library: library, Model: c.Model, Task: t.taskOr(nn.TaskClassify), Norms: []Layer{}, Activation: "relu", In: c.In, Out: c.Out, RowNormalize: t.Config.RowNormalize,
		EdgeWeights: t.Config.EdgeWeights && weighs(c), Decoder: [][2]int{}}
	if c.Decoder == "mlp" {
		e.Decoder = append(e.Decoder, [2]int{c.Out, c.Out}, [2]int{c.Out, 1})
	}
	if c.Attends() {
		e.Activation = "elu"
	}
	for l := range c.Layers {
		in, out, last := c.Hidden, c.Hidden, l == c.Layers-1
		if l == 0 {
			in = c.In
		}
		if last {
			out = c.Out
		}
		layer := pygLayer
		if library == "dgl" {
			layer = dglLayer
		}
		e.Layers = append(e.Layers, layer(c, in, out, last))
		if !last && c.Norm != "none" {
			e.Norms = append(e.Norms, norm(c.Norm, out))
		}
	}
	gcnMean := c.Model == "sage" && c.Aggregator == "gcn"
	if library == "dgl" {
		e.MeanHeads, e.SelfLoops = c.Attends(), c.Model == "gcn" || c.Attends()
		weights := t.renamed(c, toDGL)
		if c.Model == "gatv2" {
			weights = withoutBias(weights)
		}
		return e, weights, nil
	}
	e.SelfLoops = gcnMean // PyG's mean has no vertex of its own
	return e, t.renamed(c, toPyG), nil
}

// weighs reports whether the model's sums look at weights of edges.
func weighs(c *nn.Config) bool {
	return c.Model == "gcn" || c.Model == "sage" || c.Model == "gin" && c.EdgeDim == 0
}

// takesWeights reports whether a library's layer does so too, with the same result:
// PyG's SAGEConv and GINConv take none, DGL's SAGEConv divides by the number of edges and
// its GraphConv by degrees without weights.
func takesWeights(library string, c *nn.Config) bool {
	return library == "pyg" && c.Model == "gcn" || library == "dgl" && c.Model == "gin"
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
	case "gcn":
		return Layer{Class: "GCNConv", Args: args}
	case "gin":
		if c.EdgeDim > 0 {
			return Layer{Class: "GINEConv", Args: map[string]any{"train_eps": c.TrainEps, "edge_dim": c.EdgeDim}, MLP: []int{in, c.Hidden, out}}
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
	if c.Aggregator == "gcn" {
		args["root_weight"] = false
	}
	return Layer{Class: "SAGEConv", Args: args}
}

func dglLayer(c *nn.Config, in, out int, last bool) Layer {
	args := map[string]any{"in_feats": in, "out_feats": out}
	switch c.Model {
	case "gcn":
		args["norm"], args["allow_zero_in_degree"] = "both", true
		return Layer{Class: "GraphConv", Args: args}
	case "gin":
		return Layer{Class: "GINConv", Args: map[string]any{"aggregator_type": "sum", "learn_eps": c.TrainEps}, MLP: []int{in, c.Hidden, out}}
	case "gat", "gatv2":
		heads, width := heads(c, out, last)
		args["num_heads"], args["out_feats"], args["allow_zero_in_degree"] = heads, width, true
		return Layer{Class: map[string]string{"gat": "GATConv", "gatv2": "GATv2Conv"}[c.Model], Args: args}
	case "sage-pool":
		args["aggregator_type"] = "pool"
		return Layer{Class: "SAGEConv", Args: args}
	}
	args["aggregator_type"] = c.Aggregator
	return Layer{Class: "SAGEConv", Args: args}
}

// heads of an attention layer, and how wide each is.
func heads(c *nn.Config, out int, last bool) (n, width int) {
	if last {
		return c.OutHeads, out
	}
	return c.Heads, out / c.Heads
}

// renamed is the weights, each as the library has it: rename is told the part of a
// name behind "convs.N." and returns another.
func (t *Trained) renamed(c *nn.Config, rename func(c *nn.Config, last bool, w nn.Tensor) nn.Tensor) (out []nn.Tensor) {
	for _, w := range t.Weights {
		w.F64 = false // torch's are single, running statistics too
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

// layerName cuts convs.N.REST in two.
func layerName(name string) (prefix, rest string, ok bool) {
	layer, ok := strings.CutPrefix(name, "convs.")
	if !ok {
		return "", name, false
	}
	n, rest, ok := strings.Cut(layer, ".")
	return "convs." + n + ".", rest, ok
}

// toPyG: our names are PyG's, but for the aggregator it has no name of.
func toPyG(c *nn.Config, _ bool, w nn.Tensor) nn.Tensor {
	if c.Model == "sage" && c.Aggregator == "gcn" {
		w.Name = map[string]string{"fc_neigh.weight": "lin_l.weight", "bias": "lin_l.bias"}[w.Name]
	}
	return w
}

// dglNames are DGL's for PyG's.
var dglNames = map[string]map[string]string{
	"gcn":       {"lin.weight": "weight"},
	"sage":      {"lin_l.weight": "fc_neigh.weight", "lin_l.bias": "fc_self.bias", "lin_r.weight": "fc_self.weight"},
	"sage-pool": {"lin.weight": "fc_pool.weight", "lin.bias": "fc_pool.bias", "lin_l.weight": "fc_neigh.weight", "lin_l.bias": "fc_self.bias", "lin_r.weight": "fc_self.weight"},
	"gat":       {"lin.weight": "fc.weight", "att_src": "attn_l", "att_dst": "attn_r"},
	"gatv2":     {"lin_l.weight": "fc_src.weight", "lin_l.bias": "fc_src.bias", "lin_r.weight": "fc_dst.weight", "lin_r.bias": "fc_dst.bias", "att": "attn"},
	"gin":       {"nn.0.weight": "apply_func.0.weight", "nn.0.bias": "apply_func.0.bias", "nn.2.weight": "apply_func.2.weight", "nn.2.bias": "apply_func.2.bias"},
}

func toDGL(c *nn.Config, last bool, w nn.Tensor) nn.Tensor {
	switch {
	case c.Model == "gcn" && w.Name == "lin.weight": // [in, out] there
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
// linear maps: added to what every source says and taken from every destination it
// leaves scores as they are and, coefficients adding up to one, moves the sum by itself.
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
