package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestScratch(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int64{0, 1, 3<<20 + 5} {
		b, err := Scratch(dir, "rows", size)
		must(t, err)
		if int64(len(b)) != size || len(bytes.Trim(b, "\x00")) > 0 {
			t.Errorf("%d bytes, want %d zeros", len(b), size)
		}
		if size > 0 {
			b[size-1] = 7
		}
		Unmap(b)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v (%v)", entries, err)
	}
	if _, err := Scratch(filepath.Join(dir, "none"), "rows", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	f, err := Nameless(dir, "rows", 0)
	must(t, err, zeros(f, 3<<20+5))
	if info, err := f.Stat(); err != nil || info.Size() != 3<<20+5 {
		t.Error(info, err)
	}
	f.Close()
}

// TestScratchFull: a disk that is full is an error before the memory is used.
func TestScratchFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("only root mounts a small disk:", err)
	}
	defer func() { must(t, syscall.Unmount(dir, 0)) }()
	if _, err := Scratch(dir, "rows", 1<<20); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	b, err := Scratch(dir, "rows", 1<<15)
	must(t, err)
	Unmap(b)
}
