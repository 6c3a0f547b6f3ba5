//go:build linux

package elsewhere_test

import (
	"runtime/debug"
	"testing"

	"starling/tensor"
	"starling/tensor/devicetest"
	"starling/tensor/devicetest/elsewhere"
)

func open(t testing.TB) *elsewhere.Device {
	d, err := elsewhere.New(2)
	if err != nil {
		t.Skip(err)
	}
	return d
}

func TestDevice(t *testing.T) {
	devicetest.Run(t, func() tensor.Device { return open(t) })
}

// TestHostCannotLook: reading through a handle is a fault.
func TestHostCannotLook(t *testing.T) {
	d := open(t)
	defer d.Close()
	m := d.New(tensor.F32, 2, 2)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			t.Error("the host reads what is elsewhere")
		}
	}()
	t.Logf("the host sees %v", tensor.Row[float32](m, 0))
}

// TestNothingWaits: an operation may run after its call has returned, and the host sees its
// result where it asks.
func TestNothingWaits(t *testing.T) {
	d := open(t)
	defer d.Close()
	x, y := d.New(tensor.F32, 300, 300), d.New(tensor.F32, 300, 300)
	one := make([]float64, 300*300)
	for i := range one {
		one[i] = 1
	}
	d.Upload(x, one)
	clear(one) // the device has what it needs
	for range 20 {
		d.MatMul(y, x, x, tensor.MatMul{})
	}
	sum := d.New(tensor.F64, 1, 1)
	d.Dot(sum, x, y)
	d.Free(x)
	d.Free(y)
	got := []float64{0}
	if d.Download(got, sum); got[0] != 300*300*300 {
		t.Errorf("the sum is %g", got[0])
	}
}
