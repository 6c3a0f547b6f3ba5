package graph

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"starling/internal/testdeadline"
)

// A real full disk: a tmpfs of 256 KiB, where mounting is allowed.
func TestFullDiskLeavesNothing(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("a tmpfs cannot be mounted here, so a full disk is not tried:", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	d := small(Dense)
	d.Features = &Features{Rows: 4, Cols: 1 << 16, F32: make([]float32, 4<<16)}
	err := Save(disk+"/d", d, WriterOptions{})
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrInput) {
		t.Fatal(err)
	}
	onlyChild(t, disk)
	if err := Save(disk+"/d", small(Dense), WriterOptions{}); err != nil {
		t.Fatal("the disk is still full:", err)
	}
}

// A folder that cannot be written to, not even by root, is the user's to change.
func TestNoPlaceToWrite(t *testing.T) {
	if err := Save("/sys/kernel/d", small(Dense), WriterOptions{}); !errors.Is(err, ErrInput) ||
		!strings.Contains(err.Error(), "/sys/kernel cannot be written to") {
		t.Error(err)
	}
}

// An array that is a pipe is refused; opening it would block.
func TestArrayIsAPipe(t *testing.T) {
	dir := t.TempDir() + "/d"
	write(t, dir, small(Dense), nil)
	path := dir + "/indices.npy"
	if err := errors.Join(unix.Unlink(path), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	testdeadline.Do(t, time.Minute, "opening a dataset with a pipe", func() {
		if _, err := Open(dir); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), path) {
			t.Error(err)
		}
	})
}
