//go:build linux && amd64 && !static

package cuda_test

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
)

// fedSteps are steps whose rows are gathered ahead, or each when it begins, with memory that is used again all the time.
func fedSteps(t *testing.T, ahead bool) (sums []float32) {
	t.Helper()
	d, err := cuda.Open(cuda.Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const rows, cols, n, steps = 50, 8, 20, 12
	all := make([]float32, rows*cols)
	for i := range all {
		all[i] = float32(i)
	}
	from, far := d.FromHost(rows, cols, all), d.HostRows(tensor.F32, rows, cols, all)
	type laid struct {
		x, y tensor.Matrix
		fed  tensor.Fed
	}
	parcels := []tensor.Parcel{d.NewParcel(), d.NewParcel(), d.NewParcel()}
	lists := make([][]uint32, len(parcels))
	lay := func(k int) *laid {
		list := make([]uint32, n)
		if ahead { // the slice is packed again when its step is over
			list = slices.Grow(lists[k%len(lists)][:0], n)[:n]
			lists[k%len(lists)] = list
		}
		for i := range list {
			list[i] = uint32((7*k + 3*i) % rows)
		}
		l := &laid{}
		bring := func() {
			l.x, l.y = d.Scratch(tensor.F32, n, cols), d.Scratch(tensor.F32, n, cols)
			tmp := d.Scratch(tensor.F32, n, cols)
			x := tensor.Indices(d, list)
			d.GatherRows(tmp, from, x)
			d.Copy(l.x, tmp)
			d.GatherRows(l.y, far, x)
			d.Free(tmp)

		}
		if !ahead {
			bring()
			return l
		}
		parcels[k%len(parcels)].Pack(list)
		l.fed = d.Ahead(bring)
		return l
	}
	total, last := d.New(tensor.F32, n, cols), d.New(tensor.F32, n, cols)
	next := lay(0)
	for k := range steps {
		l := next
		if ahead && k+1 < steps {
			next = lay(k + 1)
		}
		runtime.GC()
		if l.fed != nil {
			l.fed.Join()
		}
		z := d.Scratch(tensor.F32, n, cols)
		d.Combine(z, 1, l.x, 0.5, l.y)
		d.Combine(total, 0.9, total, 1, last) // which no matrix of a step ahead may have taken the place of
		d.Free(last)
		last = z
		d.Free(l.x)
		d.Free(l.y)
		if l.fed != nil {
			l.fed.Free()
		}
		if !ahead && k+1 < steps {
			next = lay(k + 1)
		}
	}
	out := make([]float32, n*cols)
	d.Download(out, total)
	return out
}

// TestAhead: what is brought beside the compute of the step before is the same to the bit, whichever of the two streams
// is the later one.
func TestAhead(t *testing.T) {
	needDriver(t)
	want := fedSteps(t, false)
	if got := fedSteps(t, true); !slices.Equal(got, want) {
		t.Errorf("ahead: %v, want %v", got, want)
	}
	if emulated == "" {
		return
	}
	os.Setenv("EMULATOR_LATE", "1")
	defer os.Unsetenv("EMULATOR_LATE")
	if got := fedSteps(t, true); !slices.Equal(got, want) {
		t.Errorf("ahead, with late streams: %v, want %v", got, want)
	}
	if got := fedSteps(t, false); !slices.Equal(got, want) {
		t.Errorf("with late streams: %v, want %v", got, want)
	}
}
