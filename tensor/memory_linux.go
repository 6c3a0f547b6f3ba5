package tensor

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// mappings remembers, by the address of the aligned block, the whole mapping
// that Munmap needs back.
var mappings sync.Map

// mapHuge maps n zero bytes. The kernel gives huge pages only to mappings that
// ask (transparent huge pages are commonly in madvise mode) and only where a
// whole aligned huge page fits, so one page more than needed is mapped and the
// block starts on a boundary.
func mapHuge(n int) ([]byte, error) {
	raw, err := unix.Mmap(-1, 0, n+hugePage, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	// Without huge pages the block is only slower, so a refusal is not an error.
	_ = unix.Madvise(raw, unix.MADV_HUGEPAGE)
	off := int(-uintptr(unsafe.Pointer(&raw[0])) & (hugePage - 1))
	block := raw[off : off+n : off+n]
	mappings.Store(&block[0], raw)
	return block, nil
}

func unmap(block []byte) {
	if raw, ok := mappings.LoadAndDelete(&block[0]); ok {
		_ = unix.Munmap(raw.([]byte))
	}
}
