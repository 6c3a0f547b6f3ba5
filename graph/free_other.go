//go:build !linux

package graph

// DiskFree is the room on the file system of a folder; here it cannot be told.
func DiskFree(string) (bytes int64, ok bool) { return 0, false }
