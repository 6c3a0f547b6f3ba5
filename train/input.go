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
	if f.Kind() == graph.Sparse {
		return sparseInput(dev, f)
	}
	var host any = f.F32
	t := dev.RowType(opt.Rows)
	if f.Kind() == graph.BFloat16 {
		host = f.BF16
	}
	if far, ok := dev.(tensor.HostReader); ok && opt.HostFeatures && (f.Kind() != graph.BFloat16 || t == tensor.BF16) {
		return nn.Input{Matrix: far.HostRows(t, f.Rows, f.Cols, host), Constant: true}
	}
	if d, ok := dev.(tensor.Returner); ok && (t == tensor.BF16) != (f.Kind() == graph.BFloat16) {
		return nn.Input{Matrix: converted(dev, d, f, t), Constant: true}
	}
	return dense(dev, dev.FromHost(f.Rows, f.Cols, host), t)
}

// typedInput puts the features of every type on the device, and makes the rows of those that have none. ids are the
// vertices of the rows; nil: row i is vertex i.
func typedInput(dev tensor.Device, runs []graph.Run, features []*graph.Features, ids []uint32, schema *graph.Schema,
	opt Options) *nn.TypedInput {
	x := &nn.TypedInput{Runs: runs, X: make([]tensor.Matrix, len(features)), Learnt: make([]*nn.Param, len(features)),
		Vertices: make([][]uint32, len(features))}
	for t, f := range features {
		if f != nil {
			x.X[t] = Input(dev, f, opt).Matrix
			continue
		}
		x.Vertices[t] = verticesOf(runs, t, ids)
		x.Learnt[t] = nn.NewLearnt(dev, schema.Types[t].Name, x.Vertices[t], opt.Model.Hidden, opt.Seed)
	}
	return x
}

// TypedInput is the input of rows that are timed, whatever their vertices.
func TypedInput(dev tensor.Device, runs []graph.Run, features []*graph.Features, schema *graph.Schema,
	opt Options) nn.Input {
	return nn.Input{Typed: typedInput(dev, runs, features, nil, schema, opt)}
}

// verticesOf are the vertices of the rows of a type.
func verticesOf(runs []graph.Run, t int, ids []uint32) (list []uint32) {
	for _, run := range runs {
		if run.Type != t {
			continue
		}
		for i := run.Lo; i < run.Hi; i++ {
			v := uint32(i)
			if ids != nil {
				v = ids[i]
			}
			list = append(list, v)
		}
	}
	return list
}

// dense is features as rows of a type.
func dense(dev tensor.Device, m tensor.Matrix, t tensor.DType) nn.Input {
	if m.Type() != t {
		other := dev.Scratch(t, m.Rows, m.Cols)
		dev.Copy(other, m)
		m = other
	}
	return nn.Input{Matrix: m, Constant: true}
}

// convertedAtOnce is how many bytes of features are on a device in both types.
const convertedAtOnce = 64 << 20

// converted is features in another type than the host's, on a device that would hold all of both.
func converted(dev tensor.Device, back tensor.Returner, f *graph.Features, t tensor.DType) tensor.Matrix {
	m := dev.Scratch(t, f.Rows, f.Cols)
	step := max(1, convertedAtOnce/max(1, 4*f.Cols))
	for lo := 0; lo < f.Rows; lo += step {
		hi := min(lo+step, f.Rows)
		var host any
		if f.Kind() == graph.BFloat16 {
			host = f.BF16[lo*f.Cols : hi*f.Cols]
		} else {
			host = f.F32[lo*f.Cols : hi*f.Cols]
		}
		part := dev.FromHost(hi-lo, f.Cols, host)
		dev.Copy(m.Slice(lo, hi), part)
		back.Return(part)
	}
	return m
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
