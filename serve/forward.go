package serve

import (
	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// rows is a dense matrix with one row per vertex.
type rows struct {
	width int
	data  []float32
}

// of is the row of a vertex.
func (r rows) of(v uint32) []float32 { return r.data[int(v)*r.width : (int(v)+1)*r.width] }

// pass is the result of a forward pass over the whole graph.
type pass struct {
	inputs []rows // of each stage, where it was to be kept
	logits rows
}

// forward runs the model over the whole graph and keeps the inputs of the stages
// that keep selects. That of the first stage is the dataset's features.
func (t *Trained) forward(dev tensor.Device, d *graph.Dataset, f *graph.Features,
	keep func(m *nn.Model, stage int) bool) (*pass, error) {
	if err := t.timeless(); err != nil {
		return nil, err
	}
	if err := d.Graph.CheckLocal(); err != nil {
		return nil, err
	}
	model, err := t.Model(dev)
	if err != nil {
		return nil, err
	}
	p := &nn.Pass{Dev: dev, Agg: nn.NewLocal(nn.NewTopology(dev, d.Graph), t.sumsFirst()), Rows: t.Rows()}
	x, given := input(dev, f, p.Rows)
	x.Constant = t.sumsFirst()
	return through(model, p, x, given, keep)
}

// timeless refuses a pass over the whole graph with a model that was never shown what comes later.
func (t *Trained) timeless() error {
	if t.Config.Temporal == nil {
		return nil
	}
	return &graph.InputError{File: t.Dir, Field: "temporal", Found: "a model that sees what is from before a vertex's time",
		Want: "one that sees the whole graph", Fix: "use starling predict, which shows it the past alone"}
}

// WholeGraph refuses a model that does not go over the whole graph.
func (t *Trained) WholeGraph() error { return t.timeless() }

// Features are the features of a dataset as the model takes them.
func (t *Trained) Features(d *graph.Dataset) (*graph.Features, error) { return t.features(d) }

// through runs all stages of a model. given: the first input is not to be freed.
func through(model *nn.Model, p *nn.Pass, x nn.Input, given bool, keep func(m *nn.Model, stage int) bool) (*pass, error) {
	dev := p.Dev
	out := &pass{inputs: make([]rows, model.Stages())}
	for i := range model.Stages() {
		y := model.Stage(p, i, x)
		if !given {
			dev.Free(x.Matrix)
		}
		x, given = nn.Input{Matrix: y}, false
		if next := i + 1; next < model.Stages() && keep(model, next) {
			out.inputs[next] = download(dev, y)
		}
	}
	out.logits = download(dev, x.Matrix)
	dev.Free(x.Matrix)
	return out, dev.Err()
}

func download(dev tensor.Device, m tensor.Matrix) rows {
	r := rows{m.Cols, make([]float32, m.Rows*m.Cols)}
	dev.Download(r.data, m)
	return r
}

// features are the dataset's, prepared as in training: by the scale of the data the model was
// trained on, whatever the dataset itself was standardized by.
func (t *Trained) features(d *graph.Dataset) (*graph.Features, error) {
	if d.Features == nil { // it has learnt rows alone
		return t.withEmbeddings(&graph.Features{Rows: d.Graph.Nodes()}), nil
	}
	f, err := d.Features.Rescaled(scaleOf(d), t.Config.scale())
	if err != nil {
		return nil, graph.InFile(d.Dir, err)
	}
	if t.Config.RowNormalize {
		f = f.RowNormalize()
	}
	return t.withEmbeddings(f), nil
}

// withEmbeddings are features with the learnt rows of vertices beside them, if there are any.
func (t *Trained) withEmbeddings(f *graph.Features) *graph.Features {
	width := t.learnt()
	if width == 0 {
		return f
	}
	out := &graph.Features{Rows: f.Rows, Cols: f.Cols + width, F32: make([]float32, f.Rows*(f.Cols+width))}
	learnt := t.Embeddings.Numbers()
	for v := range f.Rows {
		row := out.F32[v*out.Cols : (v+1)*out.Cols]
		f.CopyRow(row, uint32(v))
		for c, x := range learnt[v*width : (v+1)*width] {
			row[f.Cols+c] = float32(x)
		}
	}
	return out
}

func scaleOf(d *graph.Dataset) *graph.Scale {
	if d.Meta.Features == nil {
		return nil
	}
	return d.Meta.Features.Scale
}
