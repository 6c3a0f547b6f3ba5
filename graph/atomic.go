package graph

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// TempFolder makes a folder beside dir, for what will appear there when it is whole.
func TempFolder(dir string) (string, error) {
	if err := CheckParent(dir); err != nil {
		return "", err
	}
	parent := filepath.Dir(dir)
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".tmp-")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return "", &InputError{File: dir, Found: "that " + parent + " cannot be written to", Want: "a folder that can", Fix: "choose another place"}
	}
	return tmp, err
}

// CheckParent refuses a folder that is to be made where there is none to make it in.
func CheckParent(dir string) error {
	parent := filepath.Dir(dir)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return &InputError{File: dir, Found: "no folder " + parent, Want: "an existing parent folder", Fix: "create it first (mkdir -p)"}
	}
	return nil
}

// WriteFileAtomic calls write with a temporary file beside path, syncs it, and
// renames it to path: readers see the old file or the whole new one, also after
// a crash or on a full disk. On any error the temporary file is removed and what
// was at path is untouched.
func WriteFileAtomic(path string, write func(io.Writer) error) (err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return writeThrough(path, write)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// WriteNPY writes an array to an .npy file, as WriteFileAtomic does; without a shape it has
// one dimension.
func WriteNPY[T element](path string, s []T, shape ...int64) error {
	if len(shape) == 0 {
		shape = []int64{int64(len(s))}
	}
	return WriteFileAtomic(path, func(w io.Writer) error {
		if _, err := w.Write(npyHeader(descrOf[T](), shape)); err != nil {
			return err
		}
		_, err := w.Write(asBytes(s))
		return err
	})
}

// writeThrough is for what must not be replaced by a file: a link, a pipe, or a device
// such as /dev/stdout.
func writeThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// syncDir makes a rename inside dir last through a power cut. Some file systems
// cannot sync a folder; they say so with an error that is no failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrInvalid) && !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}
