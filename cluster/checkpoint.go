package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"starling/disk"
	"starling/nn"
)

// Checkpoint is everything a run needs to go on as if it had never stopped.
type Checkpoint struct {
	Position
	Steps   int // optimiser steps done
	Spec    json.RawMessage
	History json.RawMessage
	Groups  map[string][]nn.Tensor
	// Files are groups by rank, as the safetensors files that they are on disk: they may be
	// large, and are read by their worker only.
	Files map[string][]byte
	// Shards are groups by rank that their workers have written already.
	Shards map[string]*Shard
}

// Position is how far a run is: epochs done, and batches of the epoch after them.
type Position struct {
	Epoch int `json:"epoch"`
	Batch int `json:"batch,omitempty"`
}

// Compare orders positions by time.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Epoch, o.Epoch), cmp.Compare(p.Batch, o.Batch))
}

func (p Position) String() string {
	if p.Batch > 0 {
		return fmt.Sprintf("epoch %d, step %d", p.Epoch, p.Batch)
	}
	return fmt.Sprintf("epoch %d", p.Epoch)
}

// Folder is the folder of the position's checkpoint inside dir.
func (p Position) Folder(dir string) string { return filepath.Join(dir, p.name()) }

// name is the name of the position's folder.
func (p Position) name() string {
	if p.Batch > 0 {
		return fmt.Sprintf("epoch-%06d-step-%06d", p.Epoch, p.Batch)
	}
	return fmt.Sprintf("epoch-%06d", p.Epoch)
}

// ErrNoCheckpoint is what errors.Is finds when a folder holds no usable checkpoint.
var ErrNoCheckpoint = errors.New("no checkpoint")

const (
	stateFile         = "state.json"
	checkpointFormat  = "starling-checkpoint"
	checkpointVersion = 1
	maxStateBytes     = 1 << 30
	maxGroups         = 1 << 16 // some are by rank
	noSum             = "00000000"
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	folderName = pattern(`^epoch-(\d{6,9})(?:-step-(\d{6,9}))?$`)
	groupName  = pattern(`^[a-z]+(-\d{1,5})?$`) // some are by rank
	byRank     = pattern(`-\d+$`)
	unfinished = pattern(`^\.epoch-\d+(-step-\d+)?\.(tmp|old)-`)
)

// pattern is compiled when it is first wanted: every start of the program would pay for it.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// state is state.json.
type state struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Position
	Steps   int                 `json:"steps"`
	Spec    json.RawMessage     `json:"spec"`
	History json.RawMessage     `json:"history"`
	Groups  map[string]fileMark `json:"groups"`
	CRC32C  string              `json:"crc32c"`
}

// fileMark is how a damaged file is recognised.
type fileMark struct {
	Bytes  int64  `json:"bytes"`
	CRC32C string `json:"crc32c"`
}

// reached is called where a crash would leave the disk in another state; tests crash there.
var reached = func(point string) {}

// Save writes c to its folder inside dir, which is made if need be, and then
// removes all but the newest keep checkpoints (0: none is removed). It returns
// the folder and its size.
func Save(dir string, c *Checkpoint, keep int) (path string, size int64, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", 0, err
	}
	path = filepath.Join(dir, c.name())
	tmp, err := os.MkdirTemp(dir, "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return "", 0, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	if size, err = write(tmp, c); err != nil {
		return "", 0, err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", 0, err
	}
	reached("written")
	if err := replace(tmp, path); err != nil {
		return "", 0, err
	}
	reached("in place")
	return path, size, prune(dir, keep)
}

// write fills a folder with the files of c.
func write(tmp string, c *Checkpoint) (size int64, err error) {
	s := state{Format: checkpointFormat, Version: checkpointVersion, Position: c.Position, Steps: c.Steps,
		Spec: c.Spec, History: c.History, Groups: map[string]fileMark{}, CRC32C: noSum}
	group := func(name string, write func(io.Writer) error) error {
		if !groupName().MatchString(name) {
			return fmt.Errorf("a group of arrays cannot be called %q", name)
		}
		mark, err := writeFile(filepath.Join(tmp, name+".safetensors"), write)
		s.Groups[name] = mark
		size += mark.Bytes
		return err
	}
	for name, tensors := range c.Groups {
		if err := group(name, func(w io.Writer) error {
			return nn.WriteSafetensors(w, tensors, map[string]string{"epoch": strconv.Itoa(c.Epoch)})
		}); err != nil {
			return 0, err
		}
	}
	for name, file := range c.Files {
		if err := group(name, streamOf(file).Write); err != nil {
			return 0, err
		}
	}
	for name, shard := range c.Shards {
		if !byRank().MatchString(name) {
			return 0, fmt.Errorf("a group of arrays that is a rank's cannot be called %q", name)
		}
		if err := shard.MoveTo(filepath.Join(tmp, name+".safetensors")); err != nil {
			return 0, err
		}
		s.Groups[name] = shard.fileMark
		size += shard.Bytes
	}
	b, err := s.encode()
	if err != nil {
		return 0, err
	}
	mark, err := writeFile(filepath.Join(tmp, stateFile), func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return 0, err
	}
	return size + mark.Bytes, disk.Sync(tmp)
}

// encode gives state.json with its own checksum.
func (s *state) encode() ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	at := bytes.LastIndex(b, []byte(noSum))
	copy(b[at:], fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)))
	return b, nil
}

// writeFile writes and syncs one file and takes its mark on the way.
func writeFile(path string, write func(io.Writer) error) (fileMark, error) {
	return writeAnd((*os.File).Sync, path, write)
}

// writeAnd writes a file and then calls last.
func writeAnd(last func(*os.File) error, path string, write func(io.Writer) error) (m fileMark, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return m, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	sum := crc32.New(castagnoli)
	if err := write(io.MultiWriter(f, sum)); err != nil {
		return m, err
	}
	info, err := f.Stat()
	if err != nil {
		return m, err
	}
	return fileMark{Bytes: info.Size(), CRC32C: fmt.Sprintf("%08x", sum.Sum32())}, last(f)
}

// replace renames tmp to path. What is at path, a damaged checkpoint that a run
// now writes again, is moved aside first: a folder cannot be renamed over another.
func replace(tmp, path string) error {
	dir := filepath.Dir(path)
	if _, err := os.Lstat(path); err == nil {
		old := filepath.Join(dir, "."+filepath.Base(path)+".old-"+filepath.Base(tmp))
		if err := os.Rename(path, old); err != nil {
			return err
		}
		defer os.RemoveAll(old)
		reached("old one aside")
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return disk.Sync(dir)
}

// Checkpoints lists those in dir, damaged or not, oldest first. A folder that does not exist
// has none.
func Checkpoints(dir string) ([]Position, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Position
	for _, e := range entries {
		if m := folderName().FindStringSubmatch(e.Name()); m != nil && e.IsDir() {
			epoch, _ := strconv.Atoi(m[1]) // nine digits at most
			batch, _ := strconv.Atoi(m[2]) // or none
			list = append(list, Position{epoch, batch})
		}
	}
	slices.SortFunc(list, Position.Compare)
	return list, nil
}

// prune removes all but the newest keep checkpoints, and what a crash left unfinished.
func prune(dir string, keep int) error {
	list, err := Checkpoints(dir)
	if err != nil {
		return err
	}
	if keep > 0 && len(list) > keep {
		for _, p := range list[:len(list)-keep] {
			if err := os.RemoveAll(filepath.Join(dir, p.name())); err != nil {
				return err
			}
			reached("pruned")
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if unfinished().MatchString(e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
