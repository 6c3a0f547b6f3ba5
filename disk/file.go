package disk

import (
	"io"
	"os"
	"path/filepath"
)

// File is a file that is being written. Commit or Abort close it.
type File struct {
	*os.File
	h *pending // nil: a pipe or device, written to directly
}

// Create starts a file that will appear at path.
func Create(path string) (*File, error) { return create(path, 0o666) }

// CreatePrivate is Create for a file that only its owner may read.
func CreatePrivate(path string) (*File, error) { return create(path, 0o600) }

func create(path string, mode os.FileMode) (*File, error) {
	path = Target(path)
	info, err := os.Lstat(path)
	there := err == nil
	if there && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		return &File{File: f}, err
	}
	h, err := newPending(path, func(tmp string) (*os.File, error) {
		return os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode) // less the umask
	})
	if err != nil {
		return nil, err
	}
	f := &File{File: h.file, h: h}
	if there && mode != 0o600 {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			f.Abort()
			return nil, err
		}
	}
	return f, nil
}

// Commit gives the file its name, in place of what was there.
func (f *File) Commit() error {
	if f.h == nil {
		return f.Close()
	}
	err := f.Sync()
	if err == nil {
		err = f.h.commit(func() error { return os.Rename(f.h.tmp, f.h.path) })
	}
	if err != nil {
		f.Abort()
		return err
	}
	return Sync(filepath.Dir(f.h.path))
}

// Abort removes the file; what was at its name is untouched. After Commit it does nothing.
func (f *File) Abort() {
	if f.h == nil {
		f.Close()
		return
	}
	f.h.abort()
}

// Write creates a file, calls write, and commits.
func Write(path string, write func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Abort()
		return err
	}
	return f.Commit()
}

// Target follows links to the path that is to be written, whether it exists or not. Links
// in /proc to open files are not followed: /dev/stdout is one, and the file behind it
// belongs to the process that opened it.
func Target(path string) string {
	for range 40 { // the number of links that the system follows
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil || inProc(dir) {
			return path
		}
		to, err := os.Readlink(path)
		if err != nil {
			return path
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path
}
