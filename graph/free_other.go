//go:build !linux

package graph

// DiskFree is the free space on the file system of a folder; unknown on this system.
func DiskFree(string) (bytes int64, ok bool) { return 0, false }
