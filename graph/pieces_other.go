//go:build !linux && !darwin

package graph

import (
	"io"
	"os"
)

func reserveMap(size int64) ([]byte, error) { return make([]byte, size), nil }

func unreserveMap([]byte) error { return nil }

func protectMap([]byte) {}

// placeMap reads the piece where mapping is not available.
func placeMap(f *os.File, offset int64, b []byte, at, n int64) (mapped []byte, err error) {
	if _, err := f.ReadAt(b[at:at+n], offset); err != nil && err != io.EOF {
		return nil, err
	}
	return nil, nil
}
