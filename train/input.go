package train

import (
	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// Input puts features on the device in the form the first layer uses: sparse rows stay
// sparse; dense ones are used in place, unless they must change type or scale.
func Input(dev tensor.Device, f *graph.Features, opt Options) nn.Input {
	if opt.RowNormalize {
		f = f.RowNormalize()
	}
	switch f.Kind() {
	case graph.Sparse:
		return sparseInput(dev, f)
	case graph.BFloat16:
		return dense(dev, dev.FromHost(f.Rows, f.Cols, f.BF16), opt.Rows)
	}
	return dense(dev, dev.FromHost(f.Rows, f.Cols, f.F32), opt.Rows)
}

func dense(dev tensor.Device, m tensor.Matrix, rows tensor.DType) nn.Input {
	if t := dev.RowType(rows); m.Type() != t {
		other := dev.Scratch(t, m.Rows, m.Cols)
		dev.Copy(other, m)
		m = other
	}
	return nn.Input{Matrix: m, Constant: true}
}

// sparseInput is a feature matrix in both orientations: forward rows of vertices
// are multiplied with the weights, backward columns with the gradient.
func sparseInput(dev tensor.Device, f *graph.Features) nn.Input {
	s := tensor.NewSparse(dev, f.Rows, f.Cols, f.Indptr, f.Indices, f.Values)
	ptr, index, perm := graph.TransposeRows(f.Cols, f.Indptr, f.Indices)
	return nn.Input{Sparse: s, SparseT: tensor.Transpose(dev, s, ptr, index, perm), Constant: true}
}

// splits puts the three lists on the device.
func splits(dev tensor.Device, s *graph.Splits) [3]tensor.Index {
	return [3]tensor.Index{tensor.Indices(dev, s.Train), tensor.Indices(dev, s.Val), tensor.Indices(dev, s.Test)}
}
