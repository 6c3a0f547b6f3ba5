package serve

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
)

// typedModule is model.py of an export: it builds the model in PyG and loads its weights.
//
//go:embed export_typed.py
var typedModule []byte

// moduleFile is the code in an export of a typed model.
const moduleFile = "model.py"

// ExportedType is a type of vertices of an exported model.
type ExportedType struct {
	Name string `json:"name"`
	In   int    `json:"in"`              // width of its features; 0: its rows are learnt
	Rows int    `json:"rows,omitempty"`  // learnt ones
	Of   any    `json:"scale,omitempty"` // what raw features are to be standardized by
}

// typedLayers are the layers that PyG has for typed models, and SimpleHGN, which model.py has. One of "Each" is for each
// relation, in a HeteroConv that sums; HGTConv takes rows and edges by type; others take all vertices together, with the
// relation of each edge.
var typedLayers = map[string]func(c *nn.Config, in, out int, last bool) Layer{
	"rgcn": func(c *nn.Config, in, out int, _ bool) Layer {
		args := map[string]any{"in_channels": in, "out_channels": out, "num_relations": len(c.Typed.Relations)}
		if c.Typed.Bases > 0 {
			args["num_bases"] = c.Typed.Bases
		}
		if c.Typed.Blocks > 0 {
			args["num_blocks"] = c.Typed.Blocks
		}
		return Layer{Class: "RGCNConv", Args: args}
	},
	"hsage": func(_ *nn.Config, in, out int, _ bool) Layer {
		return Layer{Class: "SAGEConv", Each: true, Args: map[string]any{"in_channels": in, "out_channels": out}}
	},
	"rgat": func(c *nn.Config, in, out int, _ bool) Layer {
		return Layer{Class: "GATConv", Each: true, Args: map[string]any{"in_channels": in, "out_channels": out / c.Heads,
			"heads": c.Heads, "add_self_loops": false}}
	},
	"hgt": func(c *nn.Config, in, out int, _ bool) Layer {
		return Layer{Class: "HGTConv", Args: map[string]any{"in_channels": in, "out_channels": out, "heads": c.Heads}}
	},
	"simplehgn": func(c *nn.Config, in, out int, last bool) Layer {
		heads := c.Heads
		if last {
			heads = 1
		}
		return Layer{Class: "SimpleHGN", Args: map[string]any{"in_channels": in, "out_channels": out / heads,
			"heads": heads, "num_relations": len(c.Typed.Relations), "relation_width": nn.RelationWidth}}
	},
}

// exportableTyped refuses models and libraries without layers for them.
func (t *Trained) exportableTyped(library string) error {
	c := &t.Config.Model
	bad := func(field, found, want string) error {
		return &graph.InputError{File: t.Dir, Field: field, Found: found, Want: want,
			Fix: "the weights are in " + weightsFile + ", which PyTorch reads as it is"}
	}
	switch {
	case library != "pyg":
		return bad("--format", library+", for a typed model", "pyg")
	case typedLayers[c.Model] == nil:
		return bad("model", c.Model, "one that "+library+" has layers for")
	case t.ofPairs():
		return bad("model", "a typed model of pairs", "one that predicts vertices")
	}
	return nil
}

// translateTyped is a typed model in PyG's terms. Its names are PyG's already, but for types, which are numbered.
func (t *Trained) translateTyped() (*Exported, []nn.Tensor) {
	c := &t.Config.Model
	e := &Exported{Format: "starling-export", Version: 1, Library: "pyg", Model: c.Model, Task: t.taskOr(nn.TaskClassify),
		Norms: []Layer{}, Activation: "relu", Out: c.Out, RowNormalize: t.Config.RowNormalize, Decoder: [][2]int{},
		ClassNames: append([]string{}, t.Config.ClassNames...), Target: t.Config.Target, Hidden: c.Hidden}
	switch {
	case c.Model == "hgt":
		e.Activation = "" // the layer has one inside
	case c.Attends() || c.Model == "simplehgn":
		e.Activation = "elu"
	}
	e.Unit = c.Model == "simplehgn"
	for l := range c.Layers {
		out, last := c.Hidden, l == c.Layers-1
		if last && !c.EndsLinear() {
			out = c.Out
		}
		e.Layers = append(e.Layers, typedLayers[c.Model](c, c.Hidden, out, last))
	}
	if c.EndsLinear() {
		head := linear(c.Hidden, c.Out)
		e.Head = &head
	}
	var weights []nn.Tensor
	for k, typ := range c.Typed.Types {
		x := ExportedType{Name: typ.Name, In: typ.In}
		if rows := t.Learnt[typ.Name]; rows != nil {
			x.Rows = rows.Shape[0]
			table := *rows
			table.Name, table.F64 = fmt.Sprintf("embeddings.%d.weight", k), false
			weights = append(weights, table)
		} else if f := t.Config.TypeFeatures[k]; f.Scale != nil {
			x.Of = f.Scale
		}
		e.Types = append(e.Types, x)
	}
	for _, r := range c.Typed.Relations {
		e.Relations = append(e.Relations, [3]string{c.Typed.Types[r.Source].Name, r.Name, c.Typed.Types[r.Target].Name})
	}
	for _, w := range t.Weights {
		w.Name, w.F64 = typedName(c.Typed, w.Name), false
		weights = append(weights, w)
	}
	return e, weights
}

// typedName is the name of a weight in the module of model.py.
func typedName(c *nn.TypedConfig, name string) string {
	if of, ok := strings.CutPrefix(name, "node_encoder.lins."); ok {
		at := strings.LastIndexByte(of, '.')
		k := slices.IndexFunc(c.Types, func(t nn.TypeConfig) bool { return t.Name == of[:at] })
		return fmt.Sprintf("lins.%d%s", k, of[at:])
	}
	if of, ok := strings.CutPrefix(name, "lin."); ok {
		return "head." + of
	}
	from, to := strings.IndexByte(name, '<'), strings.LastIndexByte(name, '>')
	if from < 0 || to < from {
		return numberedName(c, name)
	}
	return name[:from] + strings.ReplaceAll(name[from:to], ".", "#") + name[to:] // PyG's, since modules are named by dots
}

// numberedName is the name of a weight of an HGTConv over types and relations that are called by their numbers: it takes
// no type with a dot in its name, nor one called as a method of torch's dictionaries, such as items.
func numberedName(c *nn.TypedConfig, name string) string {
	for _, of := range []string{".kqv_lin.lins.", ".out_lin.lins.", ".skip."} {
		if before, typ, ok := strings.Cut(name, of); ok {
			rest := ""
			if of != ".skip." {
				at := strings.LastIndexByte(typ, '.')
				typ, rest = typ[:at], typ[at:]
			}
			return fmt.Sprintf("%s%s%d%s", before, of, slices.IndexFunc(c.Types,
				func(t nn.TypeConfig) bool { return t.Name == typ }), rest)
		}
	}
	if before, joined, ok := strings.Cut(name, ".p_rel."); ok {
		for r, rel := range c.Relations {
			if c.Joined(r) == joined {
				return fmt.Sprintf("%s.p_rel.%d__%d__%d", before, rel.Source, r, rel.Target)
			}
		}
	}
	return name
}
