package graph

import "syscall"

// DiskFree is the room on the file system of a folder, for this user; ok is false where
// that cannot be told.
func DiskFree(dir string) (bytes int64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Blocks == 0 { // some have no notion of it
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
