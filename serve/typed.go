package serve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// learntName is the name of the learnt rows of a type among the weights.
func learntName(t string) string { return "node_encoder.embeddings." + t + ".weight" }

// takeLearnt puts the learnt rows of types apart from the weights of layers.
func (t *Trained) takeLearnt() {
	c := t.Config.Model.Typed
	if c == nil {
		return
	}
	t.Learnt = map[string]*nn.Tensor{}
	for i := range c.Types {
		name := learntName(c.Types[i].Name)
		at := slices.IndexFunc(t.Weights, func(w nn.Tensor) bool { return w.Name == name })
		if c.Types[i].In == 0 && at >= 0 {
			rows := t.Weights[at]
			t.Learnt[c.Types[i].Name], t.Weights = &rows, slices.Delete(slices.Clone(t.Weights), at, at+1)
		}
	}
}

// checkTypes refuses a config whose types contradict each other.
func (c *Config) checkTypes() error {
	typed := c.Model.Typed
	if typed == nil {
		return nil
	}
	bad := func(field, found, want string) error {
		return &graph.InputError{Field: field, Found: found, Want: want, Fix: "name the folder that starling train --out wrote"}
	}
	switch {
	case c.Model.Decoder != "": // its target is a relation
	case !slices.ContainsFunc(typed.Types, func(t nn.TypeConfig) bool { return t.Name == c.Target }):
		return bad("target", fmt.Sprintf("%q", c.Target), "one of the model's types")
	case len(c.TypeFeatures) != len(typed.Types):
		return bad("type_features", fmt.Sprint(len(c.TypeFeatures)), fmt.Sprintf("%d, one per type", len(typed.Types)))
	}
	for i, t := range typed.Types {
		f := c.TypeFeatures[i]
		if t.In < 0 || t.In > 1<<26 || (f == nil) != (t.In == 0) || f != nil && f.Dim != t.In {
			return bad("type_features", "other widths than the model's", fmt.Sprintf("%d of type %q", t.In, t.Name))
		}
		if f != nil && f.Scale != nil && f.Scale.Validate(t.In) != nil {
			return bad("type_features.scale", graph.Sentence(f.Scale.Validate(t.In).Error()), "")
		}
	}
	for _, r := range typed.Relations {
		if n := len(typed.Types); r.Source < 0 || r.Source >= n || r.Target < 0 || r.Target >= n {
			return bad("model", fmt.Sprintf("relation %q of types %d and %d", r.Name, r.Source, r.Target), fmt.Sprintf("0 to %d", n-1))
		}
	}
	return nil
}

// suitsTypes refuses a graph whose types are not the model's.
func (t *Trained) suitsTypes(d *graph.Dataset) error {
	c := t.Config.Model.Typed
	bad := func(field, found, want string) error {
		return &graph.InputError{File: d.Dir, Field: field, Found: found,
			Want: fmt.Sprintf("%s, which the model was trained on (dataset %q)", want, t.Config.Dataset),
			Fix:  "name the dataset that goes with the run"}
	}
	switch {
	case c == nil && !d.Typed():
		return nil
	case c == nil:
		return bad("schema", "a typed graph", "a graph without types")
	case !d.Typed():
		return bad("schema", "a graph without types", fmt.Sprintf("a typed graph of %d types", len(c.Types)))
	}
	have := nn.TypedOf(d.Meta.Schema)
	if !slices.Equal(have.Relations, c.Relations) || len(have.Types) != len(c.Types) {
		return bad("schema", "other types or relations", "those of the run")
	}
	for k := range c.Types {
		if have.Types[k] != c.Types[k] {
			return bad("schema", fmt.Sprintf("type %q of %d features", have.Types[k].Name, have.Types[k].In),
				fmt.Sprintf("%q of %d", c.Types[k].Name, c.Types[k].In))
		}
		if err := t.suitsType(d, k); err != nil {
			return err
		}
	}
	return nil
}

// suitsType refuses learnt rows of other vertices, and features in other columns.
func (t *Trained) suitsType(d *graph.Dataset, k int) error {
	typ := &d.Meta.Schema.Types[k]
	if f := t.Config.TypeFeatures[k]; f != nil {
		one := &Trained{Config: Config{Features: f, Dataset: t.Config.Dataset}}
		return one.sameColumns(d.OfType(k))
	}
	if t.SameVertices(typ) {
		return nil
	}
	found := "no learnt rows"
	if rows := t.Learnt[typ.Name]; rows != nil {
		found = fmt.Sprintf("learnt rows of %d other vertices", rows.Shape[0])
	}
	return &graph.InputError{File: t.Dir, Field: "type " + typ.Name, Found: found,
		Want: fmt.Sprintf("those of the %d vertices in %s", typ.Count, d.Dir),
		Fix:  "a model knows nothing of new vertices of a type without features: name the dataset of the run"}
}

// SameVertices reports whether there are learnt rows of a type, of the vertices that it has.
func (t *Trained) SameVertices(typ *graph.VertexType) bool {
	rows := t.Learnt[typ.Name]
	if rows == nil || len(rows.Shape) != 2 || rows.Shape[1] != t.Config.Model.Hidden || int64(rows.Shape[0]) != typ.Count {
		return false
	}
	k := slices.IndexFunc(t.Config.Model.Typed.Types, func(c nn.TypeConfig) bool { return c.Name == typ.Name })
	if k < 0 || k >= len(t.Config.TypeIDs) || t.Config.TypeIDs[k] == "" || typ.IDs == "" {
		return true // one of them is of a version that kept no checksum, or has numbers for names
	}
	return t.Config.TypeIDs[k] == typ.IDs
}

// forwardTyped runs a typed model over the whole graph, and keeps the inputs of some stages.
func (t *Trained) forwardTyped(dev tensor.Device, d *graph.Dataset, keep func(m *nn.Model, stage int) bool) (*pass,
	error) {
	model, err := t.Model(dev)
	if err != nil {
		return nil, err
	}
	schema := d.Meta.Schema
	runs, topology := schema.AllRuns(), nn.NewTopology(dev, d.Graph)
	topology.SetTypes(schema, runs, runs)
	p := &nn.Pass{Dev: dev, Agg: nn.NewLocal(topology, false), Rows: t.Rows(), Types: runs}
	x, err := t.typedInput(dev, d, runs, p.Rows)
	if err != nil {
		return nil, err
	}
	return through(model, p, nn.Input{Typed: x}, true, keep)
}

// predictTyped runs a typed model over the whole graph, and predicts for the vertices of its target.
func (t *Trained) predictTyped(dev tensor.Device, d *graph.Dataset, what string) (*Predictions, error) {
	last := func(m *nn.Model, stage int) bool { return t.LeftOut(what) > 0 && stage == m.Stages()-1 }
	out, err := t.forwardTyped(dev, d, last)
	if err != nil {
		return nil, err
	}
	e := out.logits
	if t.LeftOut(what) > 0 {
		e = out.inputs[len(out.inputs)-1]
	}
	return t.FromTypedRows(d, what, e.width, e.data), nil
}

// FromTypedRows is FromRows for the vertices of the type asked of, from the rows of all vertices.
func (t *Trained) FromTypedRows(d *graph.Dataset, what string, width int, data []float32) *Predictions {
	k := d.Meta.Schema.Type(t.OfType())
	typ := &d.Meta.Schema.Types[k]
	return t.FromRows(d.OfType(k), what, int(typ.Count), width, data[int(typ.First)*width:int(typ.End())*width])
}

// ForType has embeddings be those of the vertices of a type; "": of the target.
func (t *Trained) ForType(name string) error {
	switch c := t.Config.Model.Typed; {
	case name == "":
		return nil
	case c == nil:
		return &graph.InputError{Field: "--type", Found: fmt.Sprintf("%q, and a model of --model %s", name, t.Config.Model.Model),
			Want: "a model of a typed graph", Fix: "leave it out"}
	case !slices.ContainsFunc(c.Types, func(x nn.TypeConfig) bool { return x.Name == name }):
		var names []string
		for _, x := range c.Types {
			names = append(names, x.Name)
		}
		return &graph.InputError{Field: "--type", Found: fmt.Sprintf("%q", name), Want: "one of " + strings.Join(names, ", ")}
	}
	t.of = name
	return nil
}

// OfType is the type that is predicted for; "": the graph has no types.
func (t *Trained) OfType() string { return cmp.Or(t.of, t.Config.Target) }

// ModelConfig is the model's. Where rows of another type than the target are asked for, no rows are left out.
func (t *Trained) ModelConfig() nn.Config {
	c := t.Config.Model
	if c.Typed != nil && t.of != "" {
		all := *c.Typed
		all.Outputs, c.Typed = nil, &all
	}
	return c
}

// OfAllTypes is the same model, of which the rows of no type are left out.
func (t *Trained) OfAllTypes() *Trained {
	all := *t
	if t.Config.Model.Typed == nil {
		return &all
	}
	all.of = t.Config.Model.Typed.Types[0].Name
	return &all
}

// TypeScales are what the features of each type were standardized by in training.
func (t *Trained) TypeScales() (list []*graph.Scale) {
	for _, f := range t.Config.TypeFeatures {
		if f == nil {
			list = append(list, nil)
			continue
		}
		list = append(list, f.Scale)
	}
	return list
}

// typedInput are the features of all types, by the scales of the data that the model was trained on, and learnt rows.
func (t *Trained) typedInput(dev tensor.Device, d *graph.Dataset, runs []graph.Run, rows tensor.DType) (*nn.TypedInput, error) {
	x := &nn.TypedInput{Runs: runs}
	for k, f := range d.TypeFeatures {
		var m tensor.Matrix
		var learnt *nn.Param
		if f == nil {
			learnt = t.learntRows(dev, d.Meta.Schema.Types[k].Name)
		} else {
			f, err := f.Rescaled(d.Meta.Schema.Types[k].Features.Scale, t.Config.TypeFeatures[k].Scale)
			if err != nil {
				return nil, graph.InFile(d.Dir, err)
			}
			if t.Config.RowNormalize {
				f = f.RowNormalize()
			}
			in, _ := input(dev, f, rows)
			m = in.Matrix
		}
		x.X, x.Learnt = append(x.X, m), append(x.Learnt, learnt)
	}
	return x, nil
}

// learntRows are the learnt rows of a type on the device.
func (t *Trained) learntRows(dev tensor.Device, name string) *nn.Param {
	rows := t.Learnt[name]
	p := &nn.Param{Name: rows.Name, Shape: rows.Shape, Value: dev.New(dev.Type(), rows.Shape[0], rows.Shape[1])}
	dev.Upload(p.Value, rows.Numbers())
	return p
}
