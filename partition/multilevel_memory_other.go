//go:build !unix

package partition

// Without mmap large arrays are ordinary ones.
func mlMap(int) []byte { return nil }
func mlUnmap([]byte)   {}
