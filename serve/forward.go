package serve

import (
	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// rows are numbers of all vertices, row by row.
type rows struct {
	width int
	data  []float32
}

// of is the row of a vertex.
func (r rows) of(v uint32) []float32 { return r.data[int(v)*r.width : (int(v)+1)*r.width] }

// pass is what a forward pass over the whole graph left.
type pass struct {
	inputs []rows // of each stage, where it was to be kept
	logits rows
}

// forward runs the model over the whole graph and keeps the inputs of the stages
// that keep names. That of the first is the features, which are the dataset's.
func (t *Trained) forward(dev tensor.Device, d *graph.Dataset, f *graph.Features, keep func(m *nn.Model, stage int) bool) (*pass, error) {
	model, err := t.Model(dev)
	if err != nil {
		return nil, err
	}
	p := &nn.Pass{Dev: dev, Agg: nn.NewLocal(nn.NewTopology(dev, d.Graph), false)}
	x, given := input(dev, f)
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
	return out, nil
}

func download(dev tensor.Device, m tensor.Matrix) rows {
	r := rows{m.Cols, make([]float32, m.Rows*m.Cols)}
	dev.Download32(r.data, m)
	return r
}

// input puts features on the device: sparse rows stay sparse, and singles are used
// where they lie, which is what given says.
func input(dev tensor.Device, f *graph.Features) (x nn.Input, given bool) {
	switch f.Kind() {
	case graph.Sparse:
		return nn.Input{Sparse: dev.SparseMatrix(f.Rows, f.Cols, f.Indptr, f.Indices, f.Values)}, true
	case graph.BFloat16:
		m := dev.Scratch(dev.Type(), f.Rows, f.Cols)
		dev.Copy(m, dev.FromHostBF16(f.Rows, f.Cols, f.BF16))
		return nn.Input{Matrix: m}, false
	}
	return nn.Input{Matrix: dev.FromHost(f.Rows, f.Cols, f.F32)}, true
}

// features are the dataset's, prepared as in training.
func (t *Trained) features(d *graph.Dataset) *graph.Features {
	if t.Config.RowNormalize {
		return d.Features.RowNormalise()
	}
	return d.Features
}
