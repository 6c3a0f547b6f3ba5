package setup

import (
	"os"
	"path/filepath"
	"testing"

	"starling/dataset/generate"
	"starling/graph"
)

// TestFileCutInItsLastPage: reading what is gone gives zeros and no fault, so a run that comes to its end has no result.
func TestFileCutInItsLastPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	p := generate.DefaultParams()
	p.Nodes, p.Edges, p.Features, p.Classes = 300, 2400, 12, 4
	if _, err := generate.Dataset("sbm", p, dir); err != nil {
		t.Fatal(err)
	}
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	result := new(int)
	if r, err := OrShrunk(result, nil); r != result || err != nil {
		t.Fatal(r, err)
	}
	path := filepath.Join(dir, "features.npy")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-4); err != nil {
		t.Fatal(err)
	}
	if r, err := OrShrunk(result, nil); r != nil || err == nil {
		t.Errorf("a result of a file that was cut: %v %v", r, err)
	}
}
