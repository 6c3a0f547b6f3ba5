//go:build linux && amd64 && !static

package cuda_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
)

// TestHostRows: rows that stay on the host are gathered as they are, before some of them are kept on the GPU and after.
func TestHostRows(t *testing.T) {
	needDriver(t)
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const rows, cols = 90, 8
	host := make([]float32, rows*cols)
	for i := range host {
		host[i] = float32(i)
	}
	before, _ := d.Usage()
	far := d.HostRows(tensor.F32, rows, cols, host)
	if now, _ := d.Usage(); now != before {
		t.Errorf("rows of the host take %d bytes of the GPU", now-before)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for k := range 40 {
		list := make([]uint32, 20)
		for i := range list {
			list[i] = uint32(r.IntN(rows) * r.IntN(rows) / rows)
		}
		x := d.Scratch(tensor.F32, len(list), cols)
		d.GatherRows(x, far, tensor.Indices(d, list))
		got := make([]float32, len(list)*cols)
		d.Download(got, x)
		d.Free(x)
		for i, row := range list {
			if want := host[row*cols : (row+1)*cols]; !slices.Equal(got[i*cols:(i+1)*cols], want) {
				t.Fatalf("gather %d: row %d is %v, want %v", k, row, got[i*cols:(i+1)*cols], want)
			}
		}
	}
	if now, _ := d.Usage(); now == before {
		t.Error("no row is kept on the GPU")
	}
}
