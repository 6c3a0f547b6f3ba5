package cpu

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is what the kernel gives out at once of large mappings.
const hugePage = 2 << 20

// regionBytes is how many addresses a region has, where these can be had.
const regionBytes = 64 << 30

// mappings remembers, by the address of a region, the whole mapping that Munmap needs back.
var mappings sync.Map

// reserve maps addresses, n or many more, that cannot be used yet and count for nothing:
// see writable.
func reserve(n int) ([]byte, error) {
	b, err := mapHuge(max(n, regionBytes))
	if err != nil && n < regionBytes { // addresses may be limited
		b, err = mapHuge(n)
	}
	return b, err
}

// mapHuge maps n bytes. The kernel gives huge pages only to mappings that ask
// (transparent huge pages are commonly in madvise mode) and only where a whole aligned
// huge page fits, so one page more than needed is mapped and the bytes start on a boundary.
func mapHuge(n int) ([]byte, error) {
	raw, err := unix.Mmap(-1, 0, n+hugePage, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	// Without huge pages memory is only slower, so a refusal is not an error.
	_ = unix.Madvise(raw, unix.MADV_HUGEPAGE)
	off := int(-uintptr(unsafe.Pointer(&raw[0])) & (hugePage - 1))
	b := raw[off : off+n : off+n]
	mappings.Store(&b[0], raw)
	return b, nil
}

// writable lets a part of a region be used: zeros, until written to.
func writable(b []byte) error { return unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE) }

// release gives a region back.
func release(b []byte) {
	if raw, ok := mappings.LoadAndDelete(&b[0]); ok {
		_ = unix.Munmap(raw.([]byte))
	}
}
