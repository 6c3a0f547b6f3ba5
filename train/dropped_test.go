package train_test

import (
	"slices"
	"testing"

	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// returning is a device that copies what the host hands over, and may be told to give that back.
type returning struct {
	tensor.Device
	returned int
}

func (r *returning) FromHost(rows, cols int, host any) tensor.Matrix {
	f, ok := host.([]float32)
	if !ok {
		return r.Device.FromHost(rows, cols, host)
	}
	m := r.Device.New(tensor.F32, rows, cols)
	r.Device.Upload(m, f)
	return m
}

func (r *returning) Return(m tensor.Matrix) {
	r.returned++
	r.Device.Zero(m) // who reads it after has other losses
}

// TestDroppedFeatures: a device gives its copy of the features back once their sum is kept, if the model reads nothing
// else of them, and losses stay the same.
func TestDroppedFeatures(t *testing.T) {
	t.Parallel()
	data := traintest.Communities(t, 60, false)
	for _, c := range []struct {
		name  string
		model string
		set   func(*train.Options)
		want  int
	}{
		{"gcn", "gcn", func(*train.Options) {}, 1},
		{"without the kept sum", "gcn", func(o *train.Options) { o.CacheFirst = false }, 0},
		{"dropout of features", "gcn", func(o *train.Options) { o.Model.InputDropout, o.Model.Dropout = true, 0.3 }, 0},
		{"sage", "sage", func(*train.Options) {}, 0},
		{"mlp", "mlp", func(*train.Options) {}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := traintest.Options(c.model)
			o.Epochs, o.CacheFirst = 4, true
			c.set(&o)
			want := traintest.Full(t, traintest.CPU(t, 1), data, o)
			dev := &returning{Device: traintest.CPU(t, 1)}
			if got := traintest.Full(t, dev, data, o); !slices.Equal(got.Loss, want.Loss) {
				t.Errorf("losses %v, want %v", got.Loss, want.Loss)
			}
			if dev.returned != c.want {
				t.Errorf("%d matrices were given back, want %d", dev.returned, c.want)
			}
		})
	}
}
