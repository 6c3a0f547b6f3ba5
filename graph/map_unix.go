//go:build linux || darwin

package graph

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of f for reading.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if size == 0 {
		return []byte{}, nil
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "map", Path: f.Name(), Err: err}
	}
	return b, nil
}

func unmapFile(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return unix.Munmap(b)
}

var advices = map[Access]int{Normal: unix.MADV_NORMAL, Random: unix.MADV_RANDOM, Sequential: unix.MADV_SEQUENTIAL,
	WillNeed: unix.MADV_WILLNEED, Release: unix.MADV_DONTNEED}

// advise passes a hint to the kernel, which may ignore it.
func advise(b []byte, a Access) {
	if len(b) > 0 {
		_ = unix.Madvise(b, advices[a])
	}
}
