//go:build unix

package cluster

import (
	"io/fs"
	"os"
	"syscall"
)

// ours tells whether a file belongs to this user.
func ours(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Getuid()
}
