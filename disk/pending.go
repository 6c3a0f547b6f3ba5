package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// pending is a file or folder that is being written under a hidden name.
type pending struct {
	path string // its name after commit
	tmp  string
	file *os.File // open, and locked
}

// errDiscarded is the error of Commit after Discard.
var errDiscarded = errors.New("discarded")

// making lists what this process is writing. It is locked during a rename.
var making struct {
	sync.Mutex
	all map[*pending]bool
}

// newPending creates and locks a file or folder beside path.
func newPending(path string, create func(tmp string) (*os.File, error)) (*pending, error) {
	sweep(path)
	for range 1000 {
		h := &pending{path: path, tmp: prefix(path) + strconv.FormatUint(uint64(rand.Uint32()), 10)}
		var err error
		h.file, err = create(h.tmp)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !h.claim() {
			h.file.Close()
			continue
		}
		making.Lock()
		defer making.Unlock()
		if making.all == nil {
			making.all = map[*pending]bool{}
		}
		making.all[h] = true
		return h, nil
	}
	return nil, fmt.Errorf("no name is free beside %s", path)
}

// prefix is what the hidden names of path begin with.
func prefix(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp-")
}

// claim locks the new file or folder; it is false if another process removed it first.
func (h *pending) claim() bool {
	if free, err := lock(h.file); !free && err == nil && locks {
		return false
	}
	mine, err := h.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(h.tmp)
	return err == nil && os.SameFile(mine, there)
}

// commit calls rename, unless it was discarded, and releases the lock.
func (h *pending) commit(rename func() error) error {
	making.Lock()
	defer making.Unlock()
	if !making.all[h] {
		return errDiscarded
	}
	if !locks { // open files cannot be renamed on such systems
		h.file.Close()
	}
	if err := rename(); err != nil {
		return err
	}
	delete(making.all, h)
	h.file.Close() // everything is written and synced
	return nil
}

// abort removes it, even if another goroutine still writes: it is renamed first, so that
// nothing new is created inside. After commit it does nothing.
func (h *pending) abort() {
	making.Lock()
	defer making.Unlock()
	if !making.all[h] {
		return
	}
	delete(making.all, h)
	if !locks {
		h.file.Close()
	}
	gone := h.tmp + ".gone"
	if os.Rename(h.tmp, gone) == nil {
		os.RemoveAll(gone)
	}
	h.file.Close()
}

// Discard removes what this process is writing that was to appear at path.
func Discard(path string) {
	path = Target(filepath.Clean(path))
	making.Lock()
	var found []*pending
	for h := range making.all {
		if h.path == path {
			found = append(found, h)
		}
	}
	making.Unlock()
	for _, h := range found {
		h.abort()
	}
}

// sweep removes what killed processes have left beside path. A folder that one of them
// moved aside is kept if nothing has taken its place.
func sweep(path string) {
	for _, tmp := range beside(path) {
		if strings.HasSuffix(tmp, asideSuffix) && absent(path) {
			continue
		}
		removeIfFree(tmp)
	}
}

// beside lists the existing hidden names of path: only those that newPending makes, since
// a user's own file may begin alike.
func beside(path string) (found []string) {
	dir, name := filepath.Split(prefix(path))
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), name); ok && pendingName.MatchString(rest) {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}

// pendingName is what follows the prefix in a name that newPending, abort or moveIn made.
var pendingName = regexp.MustCompile(`^[0-9]+(\.gone|\.old)?$`)

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// removeIfFree removes a file or folder of this user that no process has locked. Without
// locks nothing is removed.
func removeIfFree(path string) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() || !Ours(info) {
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if free, err := lock(f); free && err == nil {
		os.RemoveAll(path)
	}
}
