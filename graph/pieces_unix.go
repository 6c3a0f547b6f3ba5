//go:build linux || darwin

package graph

import (
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserveMap is memory for an array in pieces. It is shared, so that the kernel does not drop what was copied into it
// when pages are released.
func reserveMap(size int64) ([]byte, error) {
	if size == 0 {
		return []byte{}, nil
	}
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON|unix.MAP_NORESERVE)
}

func unreserveMap(b []byte) error { return unmapFile(b) }

// protectMap makes the array as read-only as a mapped file.
func protectMap(b []byte) {
	if len(b) > 0 {
		_ = unix.Mprotect(b, unix.PROT_READ)
	}
}

// placeMap puts n bytes of f from offset on to b[at:]: whole pages are mapped, if they can be, and the rest is copied.
func placeMap(f *os.File, offset int64, b []byte, at, n int64) (mapped []byte, err error) {
	page := int64(os.Getpagesize())
	lo, hi := (at+page-1)/page*page, (at+n)/page*page
	if lo >= hi || at%page != offset%page {
		lo, hi = at+n, at+n
	}
	for _, part := range [][2]int64{{at, min(lo, at+n)}, {hi, at + n}} {
		if part[0] < part[1] {
			if _, err := f.ReadAt(b[part[0]:part[1]], offset+part[0]-at); err != nil && err != io.EOF {
				return nil, err
			}
		}
	}
	if lo >= hi {
		return nil, nil
	}
	if _, err := unix.MmapPtr(int(f.Fd()), offset+lo-at, unsafe.Pointer(&b[lo]), uintptr(hi-lo), unix.PROT_READ,
		unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		return nil, &os.PathError{Op: "map", Path: f.Name(), Err: err}
	}
	return b[lo:hi], nil
}
