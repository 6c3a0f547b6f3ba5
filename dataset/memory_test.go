package dataset

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zip"
)

// An import holds neither the array nor the edges: what it ever allocates, kept or not,
// hardly grows with them.
func TestImportsOfEdgesAllocateLittle(t *testing.T) {
	const n, few, many = 300_000, 500_000, 2_000_000
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		var took [2]uint64
		for i, m := range []int{few, many} {
			ends := make([]int64, 2*m)
			for e := range ends {
				ends[e] = int64(e) * 7919 % (n - 1)
			}
			for e := range m {
				ends[e] = int64(e) * 104729 % n
			}
			dir := folder(t, map[string][]byte{"raw/data.npz": npzOf(t, method, map[string][]byte{
				"edge_index": npyOf(fmt.Sprintf("(2, %d)", m), ends), "num_nodes_list": npyOf("(1,)", []int64{n})})})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := Import("ogb", dir, ImportOptions{}, filepath.Join(t.TempDir(), "d")); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			took[i] = after.TotalAlloc - before.TotalAlloc
		}
		// Half of what the array grew by is capacity of buffers that are not yet full.
		if took[1] > took[0]+8*(many-few) {
			t.Errorf("zip method %d: %d bytes allocated for %d edges, %d for %d", method, took[0], few, took[1], many)
		}
	}
}
