package dataset

import (
	"fmt"
	"io"
	"os"

	"starling/dataset/table"
	"starling/graph"
)

// readMatrix reads dense features from an npy with one row per vertex.
func readMatrix(path string, rows int) (*graph.Features, error) {
	f, err := os.Open(path)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, badFile(path, "", "no such file", "features", "check the path")
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	const fix = "save a [vertices, features] array with numpy.save"
	a, err := readArray(io.Reader(f), info.Size())
	if err != nil {
		return nil, table.Because(path, "", err, "an npy of numbers", fix)
	}
	x, err := a.float32s()
	if err != nil {
		return nil, badFile(path, "", graph.Sentence(err.Error()), "an npy of numbers", fix)
	}
	if len(a.shape) != 2 || a.shape[0] != int64(rows) || a.shape[1] == 0 {
		return nil, badFile(path, "shape", fmt.Sprint(a.shape), fmt.Sprintf("[%d, features]", rows), fix)
	}
	return &graph.Features{Rows: rows, Cols: int(a.shape[1]), F32: x}, nil
}
