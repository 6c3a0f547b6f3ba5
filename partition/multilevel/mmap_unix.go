//go:build unix

package multilevel

import "syscall"

// mapPages maps zeroed memory; nil if the system has none.
func mapPages(size int) []byte {
	raw, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return raw
}

func unmapPages(raw []byte) { syscall.Munmap(raw) }
