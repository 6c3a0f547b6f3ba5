//go:build unix

package partition

import "syscall"

// mlMap asks the system for zeroed memory; nil if it has none to give.
func mlMap(size int) []byte {
	raw, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return raw
}

func mlUnmap(raw []byte) { syscall.Munmap(raw) }
