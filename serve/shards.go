package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"starling/disk"
	"starling/graph"
	"starling/nn"
)

// Shard is a file of a run's folder with the learnt rows of one worker.
type Shard struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	CRC32C string `json:"crc32c"`
}

// readShards adds the tables that workers wrote their rows of to the weights.
func (t *Trained) readShards() error {
	files := make([][]nn.Tensor, len(t.Config.Shards))
	bad := func(k int, found error) error {
		text := graph.Sentence(found.Error())
		if errors.Is(found, fs.ErrNotExist) {
			text = "no such file"
		}
		return &graph.InputError{File: filepath.Join(t.Dir, t.Config.Shards[k].File), Found: text,
			Want: fmt.Sprintf("the learnt rows of worker %d of %d", k, len(files)),
			Fix:  "copy the run's folder again, all files of it, or train again"}
	}
	for k, s := range t.Config.Shards {
		if s.File != filepath.Base(s.File) {
			return bad(k, errors.New("a name of another folder"))
		}
		path := filepath.Join(t.Dir, s.File)
		bytes, sum, err := FileSum(path)
		if err == nil && (bytes != s.Bytes || sum != s.CRC32C) {
			err = fmt.Errorf("%d bytes with checksum %s where %s says %d and %s", bytes, sum, configFile, s.Bytes, s.CRC32C)
		}
		var file []byte
		if err == nil {
			file, err = disk.Map(path)
		}
		defer disk.Unmap(file)
		if err == nil {
			files[k], err = nn.OpenSafetensors(file)
		}
		if err != nil {
			return bad(k, err)
		}
	}
	tables, k, err := nn.JoinRows(files)
	if err != nil {
		return bad(k, err)
	}
	t.Weights = append(t.Weights, tables...)
	return nil
}
