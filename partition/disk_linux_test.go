package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"starling/graph"
)

// A real full disk: a tmpfs of 64 KiB, where mounting is allowed.
func TestFullDiskLeavesNothing(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("a tmpfs cannot be mounted here, so a full disk is not tried:", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	dir := randomDataset(t, rand.New(rand.NewPCG(2, 2)), 3000)
	_, err := Run(context.Background(), dir, Options{Parts: 3, Method: "chunk", Out: filepath.Join(disk, "p")})
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, graph.ErrInput) {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(disk); len(left) != 0 {
		t.Fatal("left behind:", left)
	}
}
