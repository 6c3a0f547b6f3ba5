package serve

import (
	"fmt"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// PredictAdded predicts for the added vertices of a typed graph that has grown: what Predict says of them in a dataset
// that had them from the start. Added vertices of types without features have the mean of the type's learnt rows. The
// base has been found to suit the model. Only the neighbourhood of what is predicted is read.
func (t *Trained) PredictAdded(dev tensor.Device, g *graph.Grown, what string) (*Predictions, error) {
	kind := g.Added.Meta.Schema.Type(t.OfType())
	if err := t.suitsAdded(g.Added, kind); err != nil {
		return nil, err
	}
	n := g.Around(kind, t.Config.Model.Layers)
	at := *t
	at.Learnt = map[string]*nn.Tensor{}
	d := &graph.Dataset{Dir: g.Added.Dir, Graph: n.Graph, TypeFeatures: make([]*graph.Features, len(n.Schema.Types)),
		Meta: graph.Meta{Name: g.Added.Meta.Name, Nodes: int64(n.Graph.Nodes()), Edges: n.Graph.Edges(), Schema: n.Schema}}
	for k := range n.Schema.Types {
		if err := at.takeRows(t, g, n, d, k); err != nil {
			return nil, err
		}
	}
	last := func(m *nn.Model, stage int) bool { return t.LeftOut(what) > 0 && stage == m.Stages()-1 }
	out, err := at.forwardTyped(dev, d, last)
	if err != nil {
		return nil, err
	}
	e := out.logits
	if t.LeftOut(what) > 0 {
		e = out.inputs[len(out.inputs)-1]
	}
	k := n.Schema.Type(t.OfType())
	first := (int(n.Schema.Types[k].First) + len(n.Base[k])) * e.width
	rows := e.data[first : first+len(n.Added[k])*e.width]
	return t.FromRows(g.Added.OfType(kind), what, len(n.Added[k]), e.width, rows), nil
}

// suitsAdded refuses added vertices with other features than the model's, and where there are none to predict for.
func (t *Trained) suitsAdded(d *graph.Dataset, kind int) error {
	if kind < 0 {
		return &graph.InputError{File: d.Dir, Field: "nodes", Found: "no type " + t.OfType(),
			Want: "new vertices of the type that is predicted", Fix: "add their table to the schema"}
	}
	c := t.Config.Model.Typed
	for k, have := range nn.TypedOf(d.Meta.Schema).Types {
		at := slices.IndexFunc(c.Types, func(x nn.TypeConfig) bool { return x.Name == have.Name })
		if at < 0 || c.Types[at] != have {
			return &graph.InputError{File: d.Dir, Field: "type " + have.Name, Found: fmt.Sprintf("%d features", have.In),
				Want: "those of the run's dataset", Fix: "name the columns of the run, all of them, in its order"}
		}
		if f := t.Config.TypeFeatures[at]; f != nil {
			one := &Trained{Config: Config{Features: f, Dataset: t.Config.Dataset}}
			if err := one.sameColumns(d.OfType(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeRows copies the features, or learnt rows, of the neighbourhood's vertices of type k.
func (t *Trained) takeRows(from *Trained, g *graph.Grown, n *graph.Neighbourhood, d *graph.Dataset, k int) error {
	typ := &n.Schema.Types[k]
	if typ.Features == nil {
		t.Learnt[typ.Name] = learntOf(from.Learnt[typ.Name], n.Base[k], len(n.Added[k]))
		return nil
	}
	scale := t.Config.TypeFeatures[k].Scale
	all := &graph.Features{Rows: int(typ.Count), Cols: typ.Features.Dim, F32: []float32{}}
	for _, part := range []struct {
		of   *graph.Dataset
		rows []uint32
	}{{g.Base, n.Base[k]}, {g.Added, n.Added[k]}} {
		if len(part.rows) == 0 {
			continue
		}
		at := part.of.Meta.Schema.Type(typ.Name)
		f, err := part.of.TypeFeatures[at].Picked(part.rows).Rescaled(part.of.Meta.Schema.Types[at].Features.Scale, scale)
		if err != nil {
			return graph.InFile(part.of.Dir, err)
		}
		all.F32 = append(all.F32, f.F32...)
	}
	meta := *typ.Features
	meta.Scale, typ.Features, d.TypeFeatures[k] = scale, &meta, all
	return nil
}

// learntOf are the learnt rows of some vertices, and then the mean of all as often as there are added ones.
func learntOf(all *nn.Tensor, rows []uint32, added int) *nn.Tensor {
	width, from := all.Shape[1], all.Numbers()
	out := &nn.Tensor{Name: all.Name, Shape: []int{len(rows) + added, width}, F64: all.F64}
	for _, v := range rows {
		out.Data = append(out.Data, from[int(v)*width:(int(v)+1)*width]...)
	}
	if added > 0 {
		out.Data = append(out.Data, slices.Repeat(meanRow(from, width), added)...)
	}
	return out
}

// meanRow is the mean of rows; of none zeros.
func meanRow(rows []float64, width int) []float64 {
	mean := make([]float64, width)
	for i, x := range rows {
		mean[i%width] += x
	}
	for c := range mean {
		mean[c] /= float64(max(1, len(rows)/width))
	}
	return mean
}
