package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Folder is a folder that is being written: fill Tmp, then Commit.
type Folder struct {
	Tmp string
	h   *pending
}

// NewFolder starts a folder that will appear at dir.
func NewFolder(dir string) (*Folder, error) {
	h, err := newPending(Target(filepath.Clean(dir)), func(tmp string) (*os.File, error) {
		if err := os.Mkdir(tmp, 0o777); err != nil { // less the umask
			return nil, err
		}
		return os.Open(tmp)
	})
	if err != nil {
		return nil, err
	}
	return &Folder{Tmp: h.tmp, h: h}, nil
}

// Commit gives the folder its name, and removes the folder that had it.
func (f *Folder) Commit() error {
	old := ""
	if err := f.h.commit(func() (err error) {
		old, err = moveIn(f.h.tmp, f.h.path)
		return err
	}); err != nil {
		return err
	}
	if old != "" {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	return Sync(filepath.Dir(f.h.path))
}

// Abort removes the folder. After Commit it does nothing.
func (f *Folder) Abort() { f.h.abort() }

// swap exchanges two names atomically; tests replace it.
var swap = exchange

// asideSuffix ends the name of a folder that moveIn moved aside.
const asideSuffix = ".old"

// moveIn renames tmp to dir, and returns where the folder that was at dir is now. Where the
// file system cannot exchange two names, as NFS, dir is missing for a moment: see Aside.
func moveIn(tmp, dir string) (old string, err error) {
	if swap(tmp, dir) == nil {
		return tmp, nil
	}
	before, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", os.Rename(tmp, dir)
	}
	if err != nil {
		return "", err
	}
	defer before.Close()
	lock(before) // so that no other process removes it meanwhile
	old = tmp + asideSuffix
	if err := os.Rename(dir, old); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return "", errors.Join(err, os.Rename(old, dir))
	}
	return old, nil
}

// Aside finds the folder that a process killed in the middle of Commit has moved away from
// dir; "" if dir exists, or there is none.
func Aside(dir string) string {
	dir = Target(filepath.Clean(dir))
	if !absent(dir) {
		return ""
	}
	for _, tmp := range beside(dir) {
		if filepath.Ext(tmp) == asideSuffix {
			return tmp
		}
	}
	return ""
}

// Unexpected names an entry of dir that matches none of the patterns (path.Match), so that
// no folder with other files in it is replaced; "" if there is none.
func Unexpected(dir string, patterns ...string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, e.Name()); return ok }) {
			return e.Name(), nil
		}
	}
	return "", nil
}

// Sync makes a rename inside dir survive a power failure. The errors of file systems that
// cannot sync a folder are ignored.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrInvalid) &&
		!errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}
