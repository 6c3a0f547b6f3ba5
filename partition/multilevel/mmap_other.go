//go:build !unix

package multilevel

// Without mmap, large arrays are on the heap.
func mapPages(int) []byte { return nil }
func unmapPages([]byte)   {}
