package disk

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Scratch is memory of zeros that a file in a folder backs, which has no name there: the system may write it to that
// disk where memory is short. All its space is taken at once: a disk that is full is an error here, and not a fault
// later. Unmap ends it.
func Scratch(dir, name string, size int64) ([]byte, error) {
	if size == 0 {
		return []byte{}, nil
	}
	f, err := Nameless(dir, name, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = zeros(f, size)
	}
	if err != nil {
		return nil, &os.PathError{Op: "write", Path: f.Name(), Err: err}
	}
	// Through syscall, as Unmap is.
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "map", Path: f.Name(), Err: err}
	}
	return b, nil
}

// zeros takes a file's space where the file system cannot do it at once.
func zeros(f *os.File, size int64) error {
	block := make([]byte, 1<<20)
	for size > 0 {
		n, err := f.Write(block[:min(size, int64(len(block)))])
		if size -= int64(n); err != nil {
			return err
		}
	}
	return nil
}
