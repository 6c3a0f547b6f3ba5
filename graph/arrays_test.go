package graph

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// arrayChecks says, for every array of a dataset, whether a value of all bits set is refused although checksums
// are right. The others may be any number: it names a vertex, or is the label of a vertex that has none.
var arrayChecks = map[string]bool{
	"indptr.npy": true, "indices.npy": true, "weights.npy": true, "edge_features.npy": true, "features.npy": true,
	"features_indptr.npy": true, "features_indices.npy": true, "features_values.npy": true,
	"train.npy": true, "val.npy": true, "test.npy": true, "labels.npy": false, "ids.npy": false,
}

// The ends of every array of a dataset are set to all bits, with its checksum made right.
func TestEveryArrayIsCheckedOnOpen(t *testing.T) {
	met := map[string]bool{}
	for _, form := range []FeatureKind{Dense, BFloat16, Sparse} {
		d, dir := small(form), filepath.Join(t.TempDir(), "d")
		d.Graph.EdgeDim, d.Graph.EdgeFeatures = 2, make([]float32, 2*d.Graph.Edges())
		write(t, dir, d, []int64{7, 8, 9, 10})
		m, err := ReadMeta(dir)
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range m.Arrays {
			refused, ok := arrayChecks[name]
			if !ok {
				t.Fatalf("%s has no check: add it to the table and to the checks of a dataset", name)
			}
			if met[name] && name != "features.npy" {
				continue
			}
			met[name] = true
			setAllBits(t, dir, name, a, refused)
		}
	}
	for name := range arrayChecks {
		if !met[name] {
			t.Errorf("no dataset of the test has %s", name)
		}
	}
}

func setAllBits(t *testing.T, dir, name string, a ArrayMeta, refused bool) {
	whole, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	wide := int(a.DType[2] - '0')
	data := whole[len(npyHeader(a.DType, a.Shape)):]
	defer forge(t, dir, name, data)
	for _, at := range []int{0, len(data) - wide} {
		bad := slices.Clone(data)
		copy(bad[at:at+wide], bytes.Repeat([]byte{0xff}, wide))
		forge(t, dir, name, bad)
		d, err := OpenWith(dir, OpenOptions{CheckFeatures: true})
		if refused && !errors.Is(err, ErrInput) || err != nil && !errors.Is(err, ErrInput) {
			t.Errorf("%s: all bits set at byte %d: %v", name, at, err)
		}
		if err == nil {
			d.Close()
		}
	}
}
