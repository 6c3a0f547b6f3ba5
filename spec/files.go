package spec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"starling/disk"
	"starling/graph"
)

// The files of a trained model's folder.
const (
	WeightsFile = "model.safetensors"
	ConfigFile  = "config.json"
)

// CheckFile makes sure before a long run that a file can be written after it.
func CheckFile(flag, path string) error {
	if path == "" || path == "-" {
		return nil
	}
	path = disk.Target(path)
	dir := "."
	if i := strings.LastIndexByte(path, os.PathSeparator); i >= 0 {
		dir = path[:i+1]
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return Mistake(flag, path, "a file in a folder that exists", "make the folder "+dir+" first")
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Mistake(flag, path, "a file", "this is a folder: name a file in it")
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() { // it is written to, not replaced
		return nil
	}
	if of := owner(dir, filepath.Base(path)); of != "" {
		return Mistake(flag, path+", which is part of "+of, "a file that may be replaced", "choose another name")
	}
	return CheckWritable(flag, dir)
}

// owner is the dataset, partition or model that would lose one of its files; "": none.
func owner(dir, name string) string {
	if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
		return ""
	}
	switch _, err := os.Stat(filepath.Join(dir, WeightsFile)); {
	case name == "meta.json" && graph.IsDataset(dir):
		return "a dataset"
	case name == "book.json":
		return "a partition"
	case name == WeightsFile || name == ConfigFile && err == nil:
		return "a trained model"
	}
	if m, err := graph.ReadMeta(dir); err == nil {
		if _, ok := m.Arrays[name]; ok {
			return "a dataset"
		}
	}
	return ""
}

// CheckNotStdout refuses "-", standard output, where a folder is written.
func CheckNotStdout(flag, dir string) error {
	if dir == "-" {
		return Mistake(flag, dir, "a folder to write", "a folder cannot be written to standard output; one of that "+
			"name is ./-")
	}
	return nil
}

// MakeNewFolder makes a folder, or takes one that is empty: files in it are not replaced.
func MakeNewFolder(flag, dir string) error {
	if err := CheckWritable(flag, dir); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return Mistake(flag, dir+", which holds "+entries[0].Name(), "a new folder",
			"choose another name, or remove this one yourself")
	}
	return os.MkdirAll(dir, 0o755)
}

// CheckWritable makes sure that files can be created in a folder, or in the one in which it
// will be made.
func CheckWritable(flag, dir string) error {
	f, err := disk.Nameless(dir, "a file", 0)
	switch above := filepath.Dir(dir); {
	case errors.Is(err, fs.ErrNotExist) && above != dir:
		return CheckWritable(flag, above)
	case err != nil:
		return Mistake(flag, graph.Sentence(dir+": "+errors.Unwrap(err).Error()), "a folder to write to",
			"choose another")
	}
	return f.Close()
}
