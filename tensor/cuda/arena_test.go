//go:build linux && amd64 && !static

package cuda_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
)

// piecewise is a device whose large matrices share an arena, which tests otherwise do without.
func piecewise(t *testing.T) *cuda.Device {
	needDriver(t)
	t.Setenv("STARLING_CUDA_STRICT", "")
	d, err := cuda.Open(cuda.Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// TestArena: large matrices of all sizes are made and freed in any order; each keeps its numbers, and what is taken of
// the GPU is little more than what was in use at most.
func TestArena(t *testing.T) {
	d := piecewise(t)
	type kept struct {
		m tensor.Matrix
		x float32
	}
	var all []kept
	r := rand.New(rand.NewPCG(1, 2))
	most := int64(0)
	for k := range 120 {
		if len(all) > 8 || len(all) > 0 && r.IntN(3) == 0 {
			i := r.IntN(len(all))
			rows := all[i].m.Rows
			got := make([]float32, 2)
			d.Download(got[:1], all[i].m.Slice(0, 1).Columns(0, 1))
			d.Download(got[1:], all[i].m.Slice(rows-1, rows).Columns(255, 256))
			if got[0] != all[i].x || got[1] != all[i].x {
				t.Fatalf("a matrix has %v, want %g", got, all[i].x)
			}
			d.Free(all[i].m)
			all = append(all[:i], all[i+1:]...)
			continue
		}
		m := kept{d.Scratch(tensor.F32, 1024+r.IntN(3000), 256), float32(k)}
		one := []float32{m.x}
		d.Upload(m.m.Slice(0, 1).Columns(0, 1), one)
		d.Upload(m.m.Slice(m.m.Rows-1, m.m.Rows).Columns(255, 256), one)
		all = append(all, m)
		inUse, _ := d.Usage()
		most = max(most, inUse)
	}
	if _, peak := d.Usage(); peak > most+most/4+8<<20 || peak < most {
		t.Errorf("%d bytes were taken for %d in use", peak, most)
	}
}

// TestReturn: what FromHost copied can be given back, and serves the next.
func TestReturn(t *testing.T) {
	d := piecewise(t)
	host := make([]float32, 4096*256)
	for i := range host {
		host[i] = float32(i % 7)
	}
	before, _ := d.Usage()
	for range 20 {
		m := d.FromHost(4096, 256, host)
		d.Return(m)
	}
	now, peak := d.Usage()
	if now != before || peak > before+16<<20 {
		t.Errorf("%d bytes are in use and %d were taken, want %d and those of one copy", now, peak, before)
	}
}

// TestGroups: sums over long rows are the same to the bit when pieces of these come in groups.
func TestGroups(t *testing.T) {
	d := piecewise(t)
	const rows, cols, degree = 30, 8, 700
	ptr, index := []int64{0}, []uint32{}
	for i := range rows {
		n := degree * (i % 4)
		for k := range n {
			index = append(index, uint32((k*7+i)%rows))
		}
		ptr = append(ptr, int64(len(index)))
	}
	adj := tensor.NewSparse(d, rows, rows, ptr, index, nil)
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = 1 / float32(1+i%97)
	}
	src, dst := d.FromHost(rows, cols, x), d.Scratch(tensor.F32, rows, cols)
	sums := func(pieces int) []float32 {
		defer cuda.SetPartBytes(pieces * cols * 4)()
		out := make([]float32, rows*cols)
		d.Aggregate(dst, adj, src, tensor.Aggregate{Self: 1})
		d.Download(out, dst)
		return out
	}
	want := sums(1 << 20)
	for _, pieces := range []int{1, 7, 20} {
		if got := sums(pieces); !slices.Equal(got, want) {
			t.Errorf("in groups of %d pieces: %v, want %v", pieces, got, want)
		}
	}
}
