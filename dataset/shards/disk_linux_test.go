package shards

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"starling/disk/tasks"
	"starling/graph"
)

// smallDisk is a folder of half a MiB.
func smallDisk(t *testing.T) string {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=512k"); err != nil {
		t.Skip("a tmpfs cannot be mounted here, so a full disk is not tried:", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	return disk
}

// TestFullDisk: on a full disk the import ends and keeps what is done, and goes on when there is space.
func TestFullDisk(t *testing.T) {
	dir, out := web(t, map[string]string{"a.csv": random(30_000, 1), "b.csv": random(30_000, 2)})
	disk := smallDisk(t)
	full := filepath.Join(disk, "out")
	_, err := Import(t.Context(), dir, Options{Memory: small}, full)
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, graph.ErrInput) || strings.Contains(err.Error(), "\n") ||
		!strings.HasSuffix(err.Error(), "free some space and give the same command again to go on") {
		t.Fatal(err)
	}
	if graph.IsDataset(full) {
		t.Error("there is a dataset")
	}
	must(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=64m"))
	_, err = Import(t.Context(), dir, Options{Memory: small}, full)
	must(t, err)
	_, err = Import(t.Context(), dir, Options{Memory: small}, out)
	must(t, err)
	a, err := graph.ReadMeta(out)
	must(t, err)
	b, err := graph.ReadMeta(full)
	must(t, err)
	if a.CRC32C != b.CRC32C {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// TestFullDiskOfSeveral: on a full disk all processes end and tell so, none takes half of the work for the whole, and the
// work goes on when there is space.
func TestFullDiskOfSeveral(t *testing.T) {
	dir, out := web(t, map[string]string{"a.csv": random(30_000, 1), "b.csv": random(30_000, 2)})
	disk := smallDisk(t)
	full := filepath.Join(disk, "out")
	several := func() []error {
		errs := make([]error, 3)
		var wg sync.WaitGroup
		for rank := range errs {
			wg.Go(func() {
				role := tasks.Role{Helper: rank > 0, Rank: rank, Size: len(errs), Job: "job"}
				_, errs[rank] = Import(t.Context(), dir, Options{Memory: small, Role: role}, full)
			})
		}
		wg.Wait()
		return errs
	}
	for rank, err := range several() {
		if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") ||
			!strings.HasSuffix(err.Error(), "free some space and give the same command again to go on") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if graph.IsDataset(full) {
		t.Error("there is a dataset")
	}
	must(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=64m"))
	must(t, errors.Join(several()...))
	_, err := Import(t.Context(), dir, Options{Memory: small}, out)
	must(t, err)
	a, err := graph.ReadMeta(out)
	must(t, err)
	b, err := graph.ReadMeta(full)
	must(t, err)
	if a.CRC32C != b.CRC32C {
		t.Errorf("%+v\n%+v", a, b)
	}
	if left, _ := filepath.Glob(filepath.Join(disk, ".*")); left != nil {
		t.Error(left)
	}
}
