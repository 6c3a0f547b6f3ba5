package serve

import (
	"encoding/json"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// Rows is the type that rows of vertices are stored in, the one of training: predictions are then those that the run
// measured. Rows of a run in float64 are float32, as its weights are.
func (t *Trained) Rows() tensor.DType {
	if t.settings().DType == "bf16" {
		return tensor.BF16
	}
	return tensor.F32
}

// sumsFirst reports whether the first layer sums features before it multiplies them, as training did that kept these
// sums. It matters where they are rounded.
func (t *Trained) sumsFirst() bool { return t.Rows() == tensor.BF16 && t.settings().CacheFirst == "on" }

// settings are of the run's spec those that change roundings; none of a model without a spec.
func (t *Trained) settings() (s struct {
	DType      string `json:"dtype"`
	CacheFirst string `json:"cache_first"`
}) {
	_ = json.Unmarshal(t.Config.Spec, &s)
	return s
}

// stored is rows of a type that the host has as float32, in place where they need not change; given reports that.
func stored(dev tensor.Device, t tensor.DType, count, cols int, data []float32) (m tensor.Matrix, given bool) {
	m = dev.FromHost(count, cols, data)
	if dev.RowType(t) != tensor.BF16 {
		return m, true
	}
	rounded := dev.Scratch(tensor.BF16, count, cols)
	dev.Copy(rounded, m)
	return rounded, false
}

// input puts features on the device in a type of rows: sparse rows stay sparse, and rows of the type are used
// in place, in which case given is true.
func input(dev tensor.Device, f *graph.Features, t tensor.DType) (x nn.Input, given bool) {
	switch f.Kind() {
	case graph.Sparse:
		return nn.Input{Sparse: tensor.NewSparse(dev, f.Rows, f.Cols, f.Indptr, f.Indices, f.Values)}, true
	case graph.BFloat16:
		m := dev.FromHost(f.Rows, f.Cols, f.BF16)
		if dev.RowType(t) == tensor.BF16 {
			return nn.Input{Matrix: m}, true
		}
		wide := dev.Scratch(dev.Type(), f.Rows, f.Cols)
		dev.Copy(wide, m)
		return nn.Input{Matrix: wide}, false
	}
	m, given := stored(dev, t, f.Rows, f.Cols, f.F32)
	return nn.Input{Matrix: m}, given
}
