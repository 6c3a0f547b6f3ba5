//go:build linux && amd64 && !static

package cuda_test

import (
	"os"
	"slices"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
)

// steps runs a step again and again, with other keys and rates each time as training has, and returns what it left.
func steps(t *testing.T, graphs string) (results []float32, replayed int) {
	t.Helper()
	t.Setenv("STARLING_CUDA_GRAPHS", graphs)
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const rows, cols = 37, 8
	x, w := d.New(tensor.F32, rows, cols), d.New(tensor.F32, cols, cols)
	grad, m, v := d.New(tensor.F32, cols, cols), d.New(tensor.F32, cols, cols), d.New(tensor.F32, cols, cols)
	numbers := make([]float32, rows*cols)
	for i := range numbers {
		numbers[i] = float32(i%13) - 6
	}
	d.Upload(x, numbers)
	d.Upload(w, numbers[:cols*cols])
	for k := 1; k <= 8; k++ {
		d.Zero(grad)
		drop := tensor.Epilogue{Act: tensor.ReLU, Dropout: tensor.Dropout{P: 0.3, Key: uint64(k)}}
		y, z := d.Scratch(tensor.F32, rows, cols), d.Scratch(tensor.F32, rows, cols)
		d.MatMul(y, x, w, tensor.MatMul{Epilogue: drop})
		d.Combine(z, 0.5, y, 0.25, x)
		d.Free(y)
		d.MatMul(grad, x, z, tensor.MatMul{TransA: true})
		d.Adam(w, grad, m, v, tensor.Adam{LR: 0.1 / float64(k), Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Step: k})
		if k == 5 { // a step unlike the others
			d.Combine(w, 0.5, w, 0, tensor.Matrix{})
		}
		out := make([]float32, rows*cols)
		d.Download(out, z)
		d.Free(z)
		results = append(results, out...)
	}
	last := make([]float32, cols*cols)
	d.Download(last, w)
	return append(results, last...), d.Replayed()
}

// TestReplay: a step that comes again is one graph, and gives what it gives without, to the bit.
func TestReplay(t *testing.T) {
	needDriver(t)
	want, none := steps(t, "off")
	got, replayed := steps(t, "on")
	if !slices.Equal(got, want) {
		t.Errorf("replayed steps differ from launched ones: %v, want %v", got, want)
	}
	if none != 0 || replayed < 2 {
		t.Errorf("%d and %d graphs were launched, want none and at least 2", none, replayed)
	}
}

// TestNoReplay: where the driver cannot capture, steps are launched one by one.
func TestNoReplay(t *testing.T) {
	needDriver(t)
	if emulated == "" {
		t.Skip("needs the emulator, whose captures can be made to fail")
	}
	want, _ := steps(t, "off")
	os.Setenv("EMULATOR_NO_CAPTURE", "1")
	defer os.Unsetenv("EMULATOR_NO_CAPTURE")
	if got, n := steps(t, "on"); !slices.Equal(got, want) || n != 0 {
		t.Errorf("without captures, steps differ from launched ones, or %d graphs were launched", n)
	}
}
