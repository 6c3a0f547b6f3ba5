package disk

import (
	"strings"

	"golang.org/x/sys/unix"
)

// exchange swaps two names atomically.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// inProc tells whether a folder is in /proc, where links lead to open files.
func inProc(dir string) bool { return strings.HasPrefix(dir+"/", "/proc/") }
