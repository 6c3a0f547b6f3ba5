package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"starling/event"
	"starling/graph"
	"starling/spec"
)

// checkDiskRoom refuses a run whose weights or checkpoints do not fit on the disk: better now than after training.
// A checkpoint has two copies of the weights at least, the last and the best.
func checkDiskRoom(s *spec.Spec, parameters int) error {
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

// writeElsewhere is for weights that could not be written to --out: a full disk must not cost a trained model. It
// tries other places, and the error, which has the first one in it, says where they are.
func writeElsewhere(out string, failed error, write func(out string) error) error {
	home, _ := os.UserHomeDir()
	name := fmt.Sprintf("%s-of-%d", filepath.Base(filepath.Clean(out)), os.Getpid())
	for _, place := range []string{filepath.Dir(filepath.Clean(out)), home, ".", os.TempDir(), "/dev/shm"} {
		dir, err := filepath.Abs(filepath.Join(place, name))
		if err != nil || place == "" {
			continue
		}
		if _, err := os.Lstat(dir); err == nil {
			continue
		}
		if write(dir) == nil {
			return fmt.Errorf("--out %s could not be written, so the trained model is in %s: %w", out, dir, failed)
		}
	}
	return fmt.Errorf("--out %s could not be written, nor any other folder: %w", out, failed)
}

// overwriteable refuses to replace what is at path without --overwrite. A pipe or a device is not replaced.
func overwriteable(path, what string, overwrite bool) error {
	info, err := os.Stat(path)
	if overwrite || errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	return spec.Mistake("--out", path+", which exists", "a new name",
		"choose another, or replace "+what+" with --overwrite")
}
