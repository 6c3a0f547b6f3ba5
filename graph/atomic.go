package graph

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"starling/disk"
)

// NewFolder starts a folder that will appear at dir when it is complete.
func NewFolder(dir string) (*disk.Folder, error) {
	if err := CheckParent(dir); err != nil {
		return nil, err
	}
	f, err := disk.NewFolder(dir)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, &InputError{File: dir, Found: "that " + filepath.Dir(dir) + " cannot be written to",
			Want: "a folder that can", Fix: "choose another place"}
	}
	return f, err
}

// MovedAside is the error for a missing folder that another process has moved away to replace
// it, and may have been killed meanwhile; nil if that is not why it is missing.
func MovedAside(dir string) error {
	aside := disk.Aside(dir)
	if aside == "" {
		return nil
	}
	return &InputError{File: dir, Found: "no such folder, but " + aside, Want: "a folder",
		Fix: "a command was killed while it replaced the folder: rename that one back"}
}

// CheckParent refuses a new folder whose parent does not exist.
func CheckParent(dir string) error {
	parent := filepath.Dir(filepath.Clean(dir)) // dir may end with a slash
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return &InputError{File: dir, Found: "no folder " + parent, Want: "an existing parent folder",
			Fix: "create it first (mkdir -p)"}
	}
	return nil
}

// WriteNPY writes an array to an .npy file, as disk.Write does; without a shape it has
// one dimension.
func WriteNPY[T element](path string, s []T, shape ...int64) error {
	if len(shape) == 0 {
		shape = []int64{int64(len(s))}
	}
	return disk.Write(path, func(w io.Writer) error {
		if _, err := w.Write(npyHeader(descrOf[T](), shape)); err != nil {
			return err
		}
		_, err := w.Write(asBytes(s))
		return err
	})
}
