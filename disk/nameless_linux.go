package disk

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Nameless makes a file that has no name in its folder, so that it goes with its process, however that ends.
// Messages call it name. Flags are added to those of opening, as unix.O_DIRECT.
func Nameless(dir, name string, flags int) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC|flags, 0o600)
	if err != nil { // a file system without such files, or no such folder: that error names it
		return unlinked(dir)
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir, name)), nil
}
