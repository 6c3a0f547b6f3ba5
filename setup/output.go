package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/spec"
	"starling/tensor/cpu/simd"
)

// Check is all that can be checked before the data is open.
func Check(s *spec.Spec) error {
	if err := cmp.Or(s.Validate(), s.Machine.CheckSIMD(simd.Supported().String())); err != nil {
		return err
	}
	for _, f := range []struct{ flag, path string }{
		{"--json", s.Output.JSON}, {"--html", s.Output.HTML}, {"--events", s.Output.Events}, {"--trace", s.Output.Trace},
	} {
		if err := spec.CheckFile(f.flag, f.path); err != nil {
			return err
		}
	}
	return cmp.Or(checkFeatureMemory(s), checkModelFolder(s))
}

// checkModelFolder refuses to replace anything but a model folder, and that without --overwrite, unless the run
// that wrote it is resumed.
func checkModelFolder(s *spec.Spec) error {
	dir := s.Output.Dir
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return spec.CheckFile("--out", filepath.Clean(dir))
	}
	if err != nil {
		return spec.Mistake("--out", graph.Sentence(err.Error()), "a folder", "choose another name")
	}
	for _, e := range entries {
		shard, _ := filepath.Match("learnt-*.safetensors", e.Name())
		if e.Name() != spec.WeightsFile && e.Name() != spec.ConfigFile && !shard && !slices.Contains(HeldOutFiles, e.Name()) {
			return spec.Mistake("--out", dir+", which holds "+e.Name(), "a new folder, or one of an earlier run",
				"choose another name")
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return Overwriteable(dir, "this model", s.Output.Overwrite || s.Checkpoints.Resume || s.Checkpoints.ResumeIfAny)
}

// CheckDiskRoom refuses a run whose weights or checkpoints do not fit on the disk: better now than after training.
// A checkpoint has two copies of the weights at least, the last and the best.
func CheckDiskRoom(s *spec.Spec, parameters int) error {
	weights := 4 * int64(parameters)
	for _, o := range []struct {
		flag, dir string
		bytes     int64
	}{{"--out", s.Output.Dir, weights}, {"--checkpoint-dir", s.Checkpoints.Dir, 2 * weights}} {
		if o.dir == "" {
			continue
		}
		if free, known := graph.DiskFree(existing(o.dir)); known && free < o.bytes {
			return spec.Mistake(o.flag, fmt.Sprintf("%s, on a disk with %s free", o.dir, event.Bytes(free)),
				"at least "+event.Bytes(o.bytes)+" of free space", "choose another disk, or delete files on it")
		}
	}
	return nil
}

// existing is the innermost folder of a path that exists.
func existing(dir string) string {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

// Overwriteable refuses to replace what is at path without --overwrite. A pipe or a device is not replaced.
func Overwriteable(path, what string, overwrite bool) error {
	info, err := os.Stat(path)
	if overwrite || errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	return spec.Mistake("--out", path+", which exists", "a new name",
		"choose another, or replace "+what+" with --overwrite")
}

// ShardFile is the file of a model folder with the learnt rows of a rank.
func ShardFile(rank int) string { return fmt.Sprintf("learnt-%d.safetensors", rank) }

// HeldOutFiles are the files of a model folder that list held-out edges and their negatives:
// [n, 2] vertices of the dataset each.
var HeldOutFiles = []string{"val_edges.npy", "val_negatives.npy", "test_edges.npy", "test_negatives.npy"}
