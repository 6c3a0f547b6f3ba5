package dataset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zip"
)

// A file that says how it is packed, or what array it is, has at least that to say: one of no
// bytes was cut off, and is not taken for one of nothing.
func TestEmptyFiles(t *testing.T) {
	s := func() *sample { return newSample(1, 10, 30) }
	for format, kinds := range map[string][]map[string][]byte{
		"ogb":        {s().ogbFiles(false), s().ogbBinary(t, zip.Deflate)},
		"saint":      {s().saintFiles(t, false)},
		"dgl-reddit": {s().redditFiles(t)},
		"dgl":        {dglFiles(t)},
		"parquet":    {parquetBytes(t)},
	} {
		for _, files := range kinds {
			for name := range files {
				dir := folder(t, files)
				if err := os.Truncate(filepath.Join(dir, name), 0); err != nil {
					t.Fatal(err)
				}
				refused(t, format, dir, ImportOptions{}, filepath.Base(name))
			}
		}
	}
	for _, format := range []string{"npz", "edgelist", "metis"} {
		refused(t, format, written(t, "e.gz", ""), ImportOptions{}, "e.gz")
	}
	good := written(t, "e.csv", "0,1\n1,2\n")
	for _, opt := range []ImportOptions{{Labels: written(t, "l.csv.gz", "")}, {Features: written(t, "f.csv.gz", "")},
		{Features: written(t, "f.npy", "")}} {
		refused(t, "edgelist", good, opt, filepath.Base(opt.Labels+opt.Features))
	}
}
