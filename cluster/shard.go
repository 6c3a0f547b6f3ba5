package cluster

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Shard is a safetensors file that the worker whose arrays it has wrote itself, into a folder that the coordinator's host
// sees too. The coordinator learns its size and checksum, never its contents, and moves it into a checkpoint.
type Shard struct {
	Path string `json:"path"`
	fileMark
}

// WriteShard writes a file of a name that begins with name, which is synced when it is moved into a checkpoint: its worker
// does not wait for the disk. Of a file that could not be written nothing is left.
func WriteShard(dir, name string, write func(io.Writer) error) (*Shard, error) {
	s := &Shard{Path: filepath.Join(dir, fmt.Sprintf("%s-%016x", name, rand.Uint64()))}
	var err error
	if s.fileMark, err = writeAnd(func(*os.File) error { return nil }, s.Path, write); err != nil {
		os.Remove(s.Path)
		return nil, err
	}
	return s, nil
}

// Remove removes a shard that is not needed any more; nil: there is none.
func (s *Shard) Remove() {
	if s != nil {
		os.Remove(s.Path)
	}
}

// MoveTo gives the file a second name: a folder that cannot be completed does not take it with it. Where a file has
// one name only, it is copied.
func (s *Shard) MoveTo(path string) error {
	if os.Link(s.Path, path) != nil {
		from, err := os.Open(s.Path)
		if err != nil {
			return err
		}
		defer from.Close()
		if _, err := writeFile(path, func(w io.Writer) error { _, err := io.Copy(w, from); return err }); err != nil {
			return err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() != s.Bytes {
		err = fmt.Errorf("%s: found %d bytes, want the %d that its worker wrote", s.Path, info.Size(), s.Bytes)
	}
	return cmp.Or(err, f.Sync())
}
