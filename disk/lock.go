package disk

import (
	"os"
	"path/filepath"
)

// heldFile is locked by the process that a folder belongs to. The system releases the
// lock when the process ends, however it ends, so a folder whose lock is free was left
// behind.
const heldFile = "held"

// Hold locks a temporary folder for this process, until release.
func Hold(dir string) (release func(), err error) {
	// Lock first, rename then: no other process finds it unlocked.
	tmp, err := os.CreateTemp(dir, "."+heldFile+"-*")
	if err != nil {
		return nil, err
	}
	if _, err = lock(tmp); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, heldFile))
	}
	if err != nil {
		tmp.Close()
		return nil, err
	}
	return func() { tmp.Close() }, nil
}

// Sweep removes folders of this user whose process held them and was killed. Folders that
// were never held are left alone: their owner is unknown.
func Sweep(pattern string) (removed []string) {
	dirs, _ := filepath.Glob(pattern)
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !Ours(info) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, heldFile), os.O_RDWR|noFollow, 0)
		if err != nil {
			continue
		}
		if free, err := lock(f); free && err == nil && os.RemoveAll(dir) == nil {
			removed = append(removed, dir)
		}
		f.Close()
	}
	return removed
}

// Claim locks an existing folder for this process, until release; free is false if another
// process has it. The folder itself is locked, so nothing is left in it. Where there are no
// such locks, as on some network file systems, every claim succeeds.
func Claim(dir string) (release func(), free bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	if free, err := lock(f); !free && err == nil && locks {
		f.Close()
		return nil, false, nil
	}
	return func() { f.Close() }, true, nil
}
