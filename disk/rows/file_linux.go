package rows

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"starling/disk"
)

// openDirect opens a file past the page cache, or through it where the file system cannot do otherwise.
func openDirect(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
	if err == nil {
		return f, nil
	}
	return os.Open(path)
}

// openScratch makes a file without a name in a folder.
func openScratch(dir string) (*os.File, error) {
	return disk.Nameless(dir, scratchName, unix.O_DIRECT)
}

// reserve has a file have n bytes, and reports a full disk before anything is written.
func reserve(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(n)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// inMemory reports whether a folder is of a file system that keeps files in memory.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}

// memory is n bytes that begin at a block, outside the heap.
func memory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, max(n, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("memory for rows of features: %w", err)
	}
	return b[:n], nil
}

// free ends the use of memory.
func free(b []byte) {
	if cap(b) > 0 {
		_ = unix.Munmap(b[:cap(b)])
	}
}
