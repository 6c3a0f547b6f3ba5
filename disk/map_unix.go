//go:build linux || darwin

package disk

import (
	"os"
	"syscall"
)

// Map is the contents of a file, which are read when they are used. They stay readable when the file is removed.
func Map(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return []byte{}, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "map", Path: path, Err: err}
	}
	return b, nil
}

// Unmap ends what Map began: the contents are not readable any more.
func Unmap(b []byte) {
	if len(b) > 0 {
		syscall.Munmap(b)
	}
}
