package train

import (
	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// input puts features on the device in the form the first layer uses: sparse rows
// stay sparse; dense ones are used where they lie, unless they must change type or scale.
func input(dev tensor.Device, f *graph.Features, opt Options) nn.Input {
	if opt.RowNormalise {
		f = f.RowNormalise()
	}
	switch f.Kind() {
	case graph.Sparse:
		return sparseInput(dev, f)
	case graph.BFloat16:
		return dense(dev, dev.FromHostBF16(f.Rows, f.Cols, f.BF16), opt.Rows)
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

// sparseInput is a feature matrix in both orientations: forwards rows of vertices
// meet the weights, backwards columns meet the gradient.
func sparseInput(dev tensor.Device, f *graph.Features) nn.Input {
	s := dev.SparseMatrix(f.Rows, f.Cols, f.Indptr, f.Indices, f.Values)
	ptr, index, perm := graph.TransposeRows(f.Cols, f.Indptr, f.Indices)
	return nn.Input{Sparse: s, SparseT: dev.SparseTranspose(s, ptr, index, perm), Constant: true}
}

// splits puts the three lists on the device.
func splits(dev tensor.Device, s *graph.Splits) [3]tensor.Index {
	return [3]tensor.Index{dev.Indices(s.Train), dev.Indices(s.Val), dev.Indices(s.Test)}
}
