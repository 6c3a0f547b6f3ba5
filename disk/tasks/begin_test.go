package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// target is a file that work makes.
func target(path string, overwrite bool) Target {
	return Target{Overwrite: overwrite, Made: func() bool { return exists(path) }, Free: func() error {
		if exists(path) && !overwrite {
			return errors.New("there is one")
		}
		return nil
	}}
}

// share does work of three tasks as a process of a role does; it tells how many it did.
func share(ctx context.Context, dir string, role Role, to string, overwrite bool) (did int, f *Folder, err error) {
	f, err = Begin(ctx, dir, "a plan", role, target(to, overwrite))
	if f == nil || err != nil {
		return 0, f, err
	}
	defer f.Close()
	if err := f.Do(ctx, "s", 3, func(int, *Out) (any, error) { did++; return nil, nil }); err != nil || role.Helper {
		return did, f, err
	}
	return did, f, f.Finish(ctx, func() error {
		if exists(to) && !f.Overwrites() {
			return errors.New("it may not be replaced")
		}
		return os.WriteFile(to, nil, 0o666)
	})
}

// TestTasksOfALauncher: in whatever order they start, the tasks of a job do the work once, also where it replaces what
// is there, and nothing is left of it.
func TestTasksOfALauncher(t *testing.T) {
	const size = 3
	for _, overwrite := range []bool{false, true} {
		for first := range size {
			dir, to := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "made")
			if overwrite {
				must(t, os.WriteFile(to, nil, 0o666))
			}
			var did atomic.Int32
			var wg sync.WaitGroup
			for i := range size {
				rank := (first + i) % size
				wg.Go(func() {
					n, _, err := share(t.Context(), dir, Role{rank > 0, rank, size, "job"}, to, overwrite)
					did.Add(int32(n))
					if err != nil {
						t.Error(rank, err)
					}
				})
				time.Sleep(pollEvery) // so that one does most of it
			}
			wg.Wait()
			if did.Load() != 3 {
				t.Errorf("first rank %d: %d tasks were done", first, did.Load())
			}
			if exists(dir) || !exists(to) {
				t.Errorf("first rank %d: work left %v, result %v", first, exists(dir), exists(to))
			}
		}
	}
}

// TestRankThatNeverJoins: rank 0 does not wait for ever for a task that was lost, and names it.
func TestRankThatNeverJoins(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "made")
	f, err := Begin(t.Context(), dir, "a plan", Role{Size: 3, Job: "job"}, target(to, false))
	must(t, err)
	defer f.Close()
	_, _, err = share(t.Context(), dir, Role{true, 1, 3, "job"}, to, false)
	must(t, err)
	at := time.Now()
	f.now = func() time.Time { at = at.Add(startWithin / 4); return at }
	must(t, f.Finish(t.Context(), func() error { return nil }))
	if fmt.Sprint(f.Absent) != "[2]" || !strings.Contains(f.WithoutRanks(), "ranks 2 of 3 did not join") {
		t.Error(f.Absent, f.WithoutRanks())
	}
}

// TestHelpersBeginNothing: one that comes when the work is finished, or being removed, does not begin it again.
func TestHelpersBeginNothing(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "made")
	for _, overwrite := range []bool{false, true} {
		_, _, err := share(t.Context(), dir, Role{}, to, overwrite)
		must(t, err)
		if f, err := Begin(t.Context(), dir, "a plan", Role{Helper: true}, target(to, true)); f != nil || err != nil {
			t.Error(f, err)
		}
	}
	late, err := Open(dir, "a plan")
	must(t, err)
	defer late.Close()
	must(t, os.RemoveAll(dir)) // by one that did not see it
	err = late.Do(t.Context(), "next", 1, func(int, *Out) (any, error) { return nil, nil })
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if exists(dir) {
		t.Error("the folder is there again")
	}
	// What may not be replaced is refused by all tasks of a job at once.
	if _, err := Begin(t.Context(), dir, "a plan", Role{true, 1, 2, "job"}, Target{Made: func() bool { return false },
		Free: func() error { return errors.New("another's") }}); err == nil || err.Error() != "another's" {
		t.Error(err)
	}
}

// TestOverwriteIsKnownToAll: one that joins without --overwrite may finish work that replaces what is there.
func TestOverwriteIsKnownToAll(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "made")
	must(t, os.WriteFile(to, nil, 0o666))
	f, err := Begin(t.Context(), dir, "a plan", Role{}, target(to, true))
	must(t, err)
	f.Close()
	if did, _, err := share(t.Context(), dir, Role{}, to, false); did != 3 || err != nil {
		t.Error(did, err)
	}
}
