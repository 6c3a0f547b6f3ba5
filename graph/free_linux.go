package graph

import "syscall"

// DiskFree is the free space on the file system of a folder, for this user; ok is false if
// it is unknown.
func DiskFree(dir string) (bytes int64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Blocks == 0 { // not reported by some file systems
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
