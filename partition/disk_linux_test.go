package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"starling/disk/tasks"
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

// On a full disk all processes that share a partition end and tell so, and go on when there is space.
func TestFullDiskOfSeveral(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=128k"); err != nil {
		t.Skip("a tmpfs cannot be mounted here, so a full disk is not tried:", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	dir, out := saved(t, 3000, 12_000, false, false), filepath.Join(disk, "p")
	opt := Options{Parts: 3, Method: "fennel", Seed: 1, Out: out, Shared: Shared{Processes: 3, Memory: 1 << 16}}
	several := func() []error {
		errs := make([]error, 3)
		var wg sync.WaitGroup
		for rank := range errs {
			wg.Go(func() {
				o := opt
				o.Shared.Role = tasks.Role{Helper: rank > 0, Rank: rank, Size: len(errs), Job: "job"}
				_, errs[rank] = Run(t.Context(), dir, o)
			})
		}
		wg.Wait()
		return errs
	}
	for rank, err := range several() {
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, graph.ErrInput) || strings.Contains(err.Error(), "\n") ||
			!strings.HasSuffix(err.Error(), "free some space and give the same command again to go on") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if IsPartition(out) {
		t.Error("there is a partition")
	}
	must(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=64m"))
	must(t, errors.Join(several()...))
	opt.Out, opt.Shared = filepath.Join(t.TempDir(), "one"), Shared{}
	_, err := Run(t.Context(), dir, opt)
	must(t, err)
	if text, err := exec.Command("diff", "-r", "-x", settingsFile, opt.Out, out).CombinedOutput(); err != nil {
		t.Errorf("%s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(disk, ".*")); left != nil {
		t.Error(left)
	}
}
