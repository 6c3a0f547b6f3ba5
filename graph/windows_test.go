package graph

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"starling/internal/testseed"
)

// TestWindows: a graph that is written in windows of rows has the bytes of one that was built in memory, and the
// same summary, whatever the windows hold.
func TestWindows(t *testing.T) {
	r := testseed.Rand(t)
	for _, opt := range []BuildOptions{{}, {Symmetrize: true, DropDuplicates: true, DropSelfLoops: true}, {DropDuplicates: true}} {
		n := 1 + r.IntN(200)
		_, src, dst, _ := randomEdges(r, n, 20*n, false)
		source := func(lo int64, s, d []uint32, _ []float32) { copy(s, src[lo:]); copy(d, dst[lo:]) }
		g, err := FromEdges(n, src, dst, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		want, meta := written(t, func(w *Writer) error { return w.Graph(g) })
		for _, most := range []int64{1, 50, 1000, 1 << 20} {
			got, m := written(t, func(w *Writer) error { return w.windows(n, int64(len(src)), source, opt, most) })
			for name := range want {
				if !bytes.Equal(got[name], want[name]) {
					t.Errorf("%+v, windows of %d edges: %s differs", opt, most, name)
				}
			}
			if m.Nodes != meta.Nodes || m.Edges != meta.Edges || m.Symmetric != meta.Symmetric {
				t.Errorf("windows of %d edges: %d vertices, %d edges, symmetric %v", most, m.Nodes, m.Edges, m.Symmetric)
			}
		}
	}
}

// written are the arrays of a folder that fill wrote.
func written(t *testing.T, fill func(*Writer) error) (map[string][]byte, Meta) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "g")
	w, err := Create(dir, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := fill(w); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"indptr.npy", "indices.npy"} {
		if files[name], err = os.ReadFile(filepath.Join(w.tmp, name)); err != nil {
			t.Fatal(err)
		}
	}
	return files, w.Meta
}
