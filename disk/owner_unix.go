//go:build unix

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

// Ours tells whether a file belongs to this user.
func Ours(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Getuid()
}
