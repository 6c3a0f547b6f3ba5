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
	"starling/tensor/cpu"
)

// Formats are the libraries that export writes for.
var Formats = []string{"pyg", "dgl"}

// Exported is the config.json of an export: enough to build the same model in
// Python, layer by layer.
type Exported struct {
	Format  string  `json:"format"` // starling-export
	Version int     `json:"version"`
	Library string  `json:"library"`
	Model   string  `json:"model"`
	Task    string  `json:"task"` // one of nn.Tasks; it says what the outputs are
	Layers  []Layer `json:"layers"`
	// Norms are torch.nn's: after every layer but the last, or none. Of residual models the first
	// is before the second layer, and the last before the head.
	Norms      []Layer `json:"norms"`
	Activation string  `json:"activation"` // between layers; empty: none
	// Residual models (ResGCN+, ResSAGE+) have linear maps before the first layer and after the last;
	// every layer but the first adds to its input, and norm and activation come before it.
	Residual bool   `json:"residual"`
	Encoder  *Layer `json:"encoder"`
	Head     *Layer `json:"head"`
	// MeanHeads: DGL's attention returns heads separately; hidden layers concatenate
	// them, the last takes their mean.
	MeanHeads    bool `json:"mean_heads"`
	SelfLoops    bool `json:"self_loops"` // to be added to the graph, one at each vertex
	RowNormalize bool `json:"row_normalize"`
	EdgeWeights  bool `json:"edge_weights"` // to be given to every layer
	// MeanWeights: they are to be divided by their sum over the in-edges of a vertex first, and for
	// DGL multiplied by the number of these edges, by which its layer divides.
	MeanWeights  bool `json:"mean_weights"`
	EdgeFeatures bool `json:"edge_features"` // to be given to every layer, instead of weights
	In           int  `json:"in"`
	Out          int  `json:"out"`
	// ClassNames are what the classes are called; empty: their numbers.
	ClassNames []string `json:"class_names"`
	// Features have the names of the columns and the scale that raw features are to be
	// standardized by: (x - mean) / deviation. None: the model takes them as they are.
	Features *graph.FeatureMeta `json:"features,omitempty"`
	// Targets are what the targets of a regression were standardized by: predictions are outputs · deviation + mean.
	Targets *graph.Scale `json:"targets,omitempty"`
	// Decoder is the widths of the linear maps that score pairs of outputs; none: their
	// dot product does, or the outputs are the result.
	Decoder [][2]int `json:"decoder"`

	// Of a typed model: its types, its relations as source, name and target, the type that it predicts, and the width of
	// encoders. Its code is model.py.
	Types     []ExportedType `json:"types,omitempty"`
	Relations [][3]string    `json:"relations,omitempty"`
	Target    string         `json:"target,omitempty"`
	Hidden    int            `json:"hidden,omitempty"`
	Unit      bool           `json:"unit,omitempty"` // rows of outputs are brought to length 1
}

// Layer is a class of the library and what it is built with.
type Layer struct {
	Class string         `json:"class"`
	Args  map[string]any `json:"args"`
	// MLP are the widths of GIN's two linear maps, which are not plain arguments.
	MLP []int `json:"mlp,omitempty"`
	// Each: one for each relation.
	Each bool `json:"each,omitempty"`
}

// Export writes the model into a new folder, under the names and in the layouts of
// a library: config.json and model.safetensors.
func (t *Trained) Export(library, dir string) (*Exported, error) {
	if !slices.Contains(Formats, library) {
		return nil, &graph.InputError{Field: "--format", Found: fmt.Sprintf("%q", library), Want: "one of " +
			strings.Join(Formats, ", ")}
	}
	e, weights, err := t.translate(library)
	if err != nil {
		return nil, err
	}
	if e.Targets, err = t.targets(); err != nil {
		return nil, err
	}
	weights = slices.DeleteFunc(weights, func(w nn.Tensor) bool { return nn.OfTargets(w.Name) })
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
	if err := nn.SaveSafetensors(filepath.Join(folder.Tmp, weightsFile), weights,
		map[string]string{"format": "pt", "library": library, "model": e.Model}); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder.Tmp, configFile), append(b, '\n'), 0o644); err != nil {
		return nil, err
	}
	if e.Types != nil {
		if err := os.WriteFile(filepath.Join(folder.Tmp, moduleFile), typedModule, 0o644); err != nil {
			return nil, err
		}
	}
	return e, folder.Commit()
}

// targets are what the model's targets were standardized by; nil: nothing.
func (t *Trained) targets() (*graph.Scale, error) {
	dev := cpu.New(1)
	defer dev.Close()
	m, err := t.Model(dev)
	if err != nil {
		return nil, err
	}
	return m.TargetScale(dev), nil
}

// IsExport reports whether a folder is an earlier export, and so may be replaced.
func IsExport(dir string) bool {
	b, err := readBounded(filepath.Join(dir, configFile))
	var e Exported
	return err == nil && json.Unmarshal(b, &e) == nil && e.Format == "starling-export"
}

// exports are the models that a library has layers for.
var exports = map[string][]string{
	"pyg": {"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "film", "resgcn+", "ressage+", "mlp"},
	"dgl": {"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "resgcn+", "ressage+", "mlp"},
}

// exportable refuses models that a library has no layers for.
func (t *Trained) exportable(library string) error {
	c := &t.Config.Model
	bad := func(found, want, fix string) error {
		return &graph.InputError{File: t.Dir, Field: "model", Found: found, Want: want, Fix: fix}
	}
	switch {
	case !slices.Contains(exports[library], c.Model):
		return bad(c.Model, "one of "+strings.Join(exports[library], ", ")+", which "+library+" has layers for",
			"the weights are in "+filepath.Join(t.Dir, weightsFile)+", under the names PyG's classes would have")
	case c.Decoupled:
		return bad(c.Model+" trained decoupled", "a model that is not",
			"the weights are in "+filepath.Join(t.Dir, weightsFile)+": linear layers, then sums over neighbours")
	case c.EdgeDim > 0 && library == "dgl":
		return bad(c.Model+" with features of edges", "a model without, or --format pyg",
			"DGL's layers have no place for them")
	case t.Embeddings != nil:
		return &graph.InputError{File: t.Dir, Field: "--learn-embeddings", Found: "a model with embeddings of vertices",
			Want: "one without, for the layers of a library", Fix: "read " + embeddingTable + " and the weights from " +
				weightsFile + ", which PyTorch reads as it is"}
	case t.Config.EdgeWeights && weighs(c) && !takesWeights(library, c):
		return bad(c.Model+" trained on edges with weights", "another model, or --format pyg",
			library+"'s layers of this kind take no weights, or count them otherwise")
	}
	return nil
}

// translate is the model in a library's terms.
func (t *Trained) translate(library string) (*Exported, []nn.Tensor, error) {
	if t.Config.Model.Typed != nil {
		if err := t.exportableTyped(library); err != nil {
			return nil, nil, err
		}
		e, weights := t.translateTyped()
		return e, weights, nil
	}
	if err := t.exportable(library); err != nil {
		return nil, nil, err
	}
	c := &t.Config.Model
	e := &Exported{Format: "starling-export", Version: 1, Library: library, Model: c.Model,
		Task: t.taskOr(nn.TaskClassify), Norms: []Layer{}, Activation: "relu", In: c.In, Out: c.Out,
		RowNormalize: t.Config.RowNormalize,
		EdgeWeights:  t.Config.EdgeWeights && weighs(c), Decoder: [][2]int{}, ClassNames: slices.Clone(t.Config.ClassNames), Features: t.Config.Features}
	if e.ClassNames == nil {
		e.ClassNames = []string{}
	}
	if c.Decoder == "mlp" {
		e.Decoder = append(e.Decoder, [2]int{c.Out, c.Out}, [2]int{c.Out, 1})
	}
	if c.Attends() {
		e.Activation = "elu"
	}
	e.EdgeFeatures = c.EdgeDim > 0
	e.MeanWeights = e.EdgeWeights && isSAGE(c)
	layer := t.layers(library)
	if residual(c) {
		e.addResidual(c, layer)
	} else {
		e.addStack(c, layer)
	}
	gcnMean := c.Model == "sage" && c.Aggregator == "gcn"
	if library == "dgl" {
		e.MeanHeads, e.SelfLoops = c.Attends(), c.Model == "gcn" || c.Model == "resgcn+" || c.Attends()
		weights := t.renamed(c, toDGL)
		if c.Model == "gatv2" {
			weights = withoutBias(weights)
		}
		return e, weights, nil
	}
	e.SelfLoops = gcnMean // PyG's mean has no vertex of its own
	if e.MeanWeights {
		weights := t.renamed(c, toGraphConv)
		if gcnMean {
			weights = append(weights, zeroRoots(e.Layers)...)
		}
		return e, weights, nil
	}
	return e, t.renamed(c, toPyG), nil
}
