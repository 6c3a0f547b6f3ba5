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

// hidden is a file or folder on its way to its name.
type hidden struct {
	path string // its name to be
	tmp  string
	file *os.File // open, and locked
}

// errDiscarded is what Commit says of what Discard has removed.
var errDiscarded = errors.New("discarded")

// making is what this process writes now. It is locked while something gets its name.
var making struct {
	sync.Mutex
	all map[*hidden]bool
}

// hide makes something new beside path.
func hide(path string, create func(tmp string) (*os.File, error)) (*hidden, error) {
	sweep(path)
	for range 1000 {
		h := &hidden{path: path, tmp: prefix(path) + strconv.FormatUint(uint64(rand.Uint32()), 10)}
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
			making.all = map[*hidden]bool{}
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

// claim locks what was just made; it is false where a sweep was faster.
func (h *hidden) claim() bool {
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

// commit calls rename, unless it was discarded, and lets go of the lock.
func (h *hidden) commit(rename func() error) error {
	making.Lock()
	defer making.Unlock()
	if !making.all[h] {
		return errDiscarded
	}
	if !locks { // what is open cannot be renamed on such systems
		h.file.Close()
	}
	if err := rename(); err != nil {
		return err
	}
	delete(making.all, h)
	h.file.Close() // all is written and synced
	return nil
}

// abort removes it, while somebody perhaps still writes: under another name nobody finds it
// to write more. After commit it does nothing.
func (h *hidden) abort() {
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
	var found []*hidden
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

// sweep removes what processes that were killed have left beside path. What one of them
// moved aside is left alone if nothing has come in its place.
func sweep(path string) {
	for _, tmp := range beside(path) {
		if strings.HasSuffix(tmp, asideSuffix) && absent(path) {
			continue
		}
		removeIfFree(tmp)
	}
}

// beside lists the hidden names of path that there are: those that hide makes, since a user may
// have a name of their own that begins alike.
func beside(path string) (found []string) {
	dir, name := filepath.Split(prefix(path))
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), name); ok && ofHide.MatchString(rest) {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}

// ofHide is what follows the prefix in a name that hide, abort or moveIn made.
var ofHide = regexp.MustCompile(`^[0-9]+(\.gone|\.old)?$`)

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// removeIfFree removes a file or folder of this user that no process has locked. Where there
// are no locks everything stays.
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
