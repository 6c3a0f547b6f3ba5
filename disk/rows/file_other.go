//go:build !linux

package rows

import (
	"os"
	"unsafe"

	"starling/disk"
)

func openDirect(path string) (*os.File, error) { return os.Open(path) }
func openScratch(dir string) (*os.File, error) { return disk.Nameless(dir, scratchName, 0) }
func reserve(f *os.File, n int64) error        { return f.Truncate(n) }
func inMemory(string) bool                     { return false }
func free([]byte)                              {}

// memory is n bytes that begin at a block.
func memory(n int) ([]byte, error) {
	b := make([]byte, n+block)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (block - 1)
	return b[skip : skip+n], nil
}
